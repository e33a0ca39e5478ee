"""The server over real HTTP."""

import json
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairseq_capsule_lab.pages.server import application, requests
from fairseq_capsule_lab.pages.server.limits import HEADERS
from fairseq_capsule_lab.pages.server.requests import MOST_BEAM, MOST_BYTES, MOST_CHARACTERS, SentenceRequest
from fairseq_capsule_lab.pages.template import script_hash
from tests.pages.inspections import scripts_of
from tests.pages.server.conftest import serving

POLICY = "content-security-policy"
POSTS = ("/translate", "/inspect")


def refused(answer, status):
    """Check that an answer is a refusal with one line, and return the line."""
    assert answer.status == status, answer.body
    assert answer.json.keys() == {"error"} and "\n" not in answer.json["error"]
    return answer.json["error"]


class TestAnswers:
    def test_model_describes_the_models_and_defaults(self, server):
        found = server.ask("GET", "/model").json
        assert [Path(system["name"]).name for system in found["systems"]] == ["model.pt", "other.pt"]
        assert found["systems"][0]["architecture"].startswith("gdr_transformer_tiny (")
        assert (found["beam"], found["longest"]) == (3, 30) and "PAST and FUTURE" in found["views"]

    def test_translations_are_those_of_the_model(self, server, translator):
        found = server.translate("  a b\n c d ", beam=4).json
        assert found["text"] == "a b c d" and found["source"] == ["a", "b", "c", "d", "</s>"]
        hub = translator.hubs[0]
        for system in found["systems"]:
            assert len(system["hypotheses"]) == 4
            assert system["hypotheses"][0]["translation"] == hub.translate("a b c d", beam=4)
            scores = [hypothesis["score"] for hypothesis in system["hypotheses"]]
            assert scores == sorted(scores, reverse=True)
            for hypothesis in system["hypotheses"]:
                assert len(hypothesis["subwords"]) == len(hypothesis["log_probabilities"])

    def test_inspect_returns_arrays_and_views(self, server, translator):
        found = server.post("/inspect", {"text": "a b c", "arrays": ["assignment"]}).json
        assert found["source"] == ["a", "b", "c", "</s>"] and found["arrays"].keys() == {"assignment"}
        array = found["arrays"]["assignment"]
        assert list(array["axes"]) == ["target", "source", "content"]
        assert all(abs(sum(shares) - 1) < 1e-4 for step in array["values"] for shares in step)
        assert {"name": "past_future", "title": "PAST and FUTURE"} in found["views"]
        every = server.post("/inspect", {"text": "a b c", "arrays": "all"}).json["arrays"]
        assert {"assignment", "past_words", "against.assignment"} <= every.keys()
        assert "assignment" in refused(server.post("/inspect", {"text": "a", "arrays": ["no"]}), 422)

    def test_page_returns_html(self, server):
        answer = server.ask("GET", "/page?text=a+b&beam=2")
        assert answer.status == 200 and b"<!DOCTYPE html>" in answer.body

    @pytest.mark.parametrize("path", ["/", "/live.js", "/live.css"])
    def test_the_files_of_the_page_are_served(self, server, path, monkeypatch):
        monkeypatch.delattr(application, "read")  # they were read when the server started
        assert server.ask("GET", path).status == 200

    @pytest.mark.parametrize(
        "method, path",
        [("GET", "/"), ("GET", "/page?text=a"), ("GET", "/model"), ("GET", "/no"), ("PUT", "/translate")],
    )
    def test_every_answer_has_the_headers(self, server, method, path):
        headers = server.ask(method, path).headers
        assert HEADERS.keys() <= set(headers.keys()) | {name.title() for name in headers}
        assert "default-src 'none'" in headers[POLICY]
        assert "unsafe-eval" not in headers[POLICY]
        assert not any(name.lower().startswith("access-control") for name in headers)


class TestHostileText:
    @settings(max_examples=15)
    @given(st.text(st.sampled_from("ab<>\"'&/script!-\u2028\u200f𝔘é "), min_size=1, max_size=25))
    @example("<script>alert(1)</script>")
    @example("</script><!--<script>")
    def test_a_page_runs_no_script_of_the_text(self, server, translator, text):
        if not text.split():
            return
        own = scripts_of(translator.page(SentenceRequest("a")))
        page = translator.page(SentenceRequest(" ".join(text.split())))
        assert scripts_of(page) == own and script_hash(own[0]) in server.ask("GET", "/page?text=a").headers[POLICY]


class TestManyRequests:
    def test_fifty_requests_are_answered_one_after_the_other(self, server, translator, monkeypatch):
        inside, most = [], []
        translate = translator.translate

        def watched(asked):
            inside.append(asked)
            most.append(len(inside))
            try:
                return translate(asked)
            finally:
                inside.remove(asked)

        monkeypatch.setattr(translator, "translate", watched)
        with serving(translator) as own, ThreadPoolExecutor(50) as pool:
            texts = ["a b c d e"[: 1 + 2 * (i % 5)] for i in range(50)]
            answers = list(pool.map(own.translate, texts))
        assert [answer.status for answer in answers] == [200] * 50
        assert [answer.json["text"] for answer in answers] == texts
        assert max(most) == 1 and len(most) == 50

    def test_requests_beyond_the_queue_get_503(self, translator, monkeypatch):
        begun, going_on = threading.Event(), threading.Event()

        def slow(asked):
            begun.set()
            going_on.wait(30)
            return {}

        monkeypatch.setattr(translator, "translate", slow)
        with serving(translator, waiting=4) as own, ThreadPoolExecutor(50) as pool:
            first = pool.submit(own.translate, "a")
            begun.wait(30)
            others = [pool.submit(own.translate, "a") for _ in range(49)]
            while sum(other.done() for other in others) < 45:
                assert not going_on.wait(0.01)
            going_on.set()
            answers = [each.result() for each in (first, *others)]
            assert own.translate("a").status == 200
        full = [answer for answer in answers if answer.status != 200]
        assert len(full) == 45
        for answer in full:
            assert "requests are already waiting" in refused(answer, 503) and answer.headers["retry-after"] == "1"

    def test_an_address_over_its_rate_gets_429(self, translator):
        with serving(translator, per_minute=3) as own:
            answers = [own.translate("a") for _ in range(5)]
            assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
            assert int(answers[-1].headers["retry-after"]) >= 1
            assert own.ask("GET", "/").status == 200


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
# Objects with valid names and any values.
FIELDS = st.fixed_dictionaries({}, optional=dict.fromkeys(("text", "beam", "arrays", "other"), JSON))


class TestMalformed:
    def survives(self, server, answer):
        assert 400 <= answer.status < 500, answer.body
        refused(answer, answer.status)
        assert server.ask("GET", "/model").status == 200

    @settings(max_examples=60)
    @given(body=st.binary(max_size=80), path=st.sampled_from(POSTS))
    @example(b"", "/translate")
    @example(b"[" * 50_000, "/translate")
    @example(b'{"text": ' + b"9" * 10_000 + b"}", "/translate")
    @example(b'{"text": NaN}', "/translate")
    @example(b'{"text": "a", "beam": 1e9999}', "/inspect")
    @example(b'{"text": "\xff"}', "/translate")
    def test_any_bytes_are_answered(self, server, body, path):
        self.survives(server, server.post(path, body))

    @settings(max_examples=120)
    @given(body=JSON | FIELDS, path=st.sampled_from(POSTS))
    @example({"text": "a", "beam": True}, "/translate")
    @example({"text": "a", "beam": 0}, "/translate")
    @example({"text": "a", "arrays": []}, "/translate")
    @example({"text": ["a"]}, "/inspect")
    @example({"text": "a\0b"}, "/translate")
    @example({"text": "\ud800"}, "/translate")
    @example({"text": " \n "}, "/translate")
    def test_any_json_is_answered(self, server, body, path):
        answer = server.post(path, json.dumps(body).encode())
        asked = body if isinstance(body, dict) else {}
        allowed = {"text", "beam"} | ({"arrays"} if path == "/inspect" else set())
        right = (
            isinstance(asked.get("text"), str)
            and asked["text"].isprintable()
            and asked["text"].strip()
            and asked.keys() <= allowed
            and (asked.get("beam") is None or (type(asked["beam"]) is int and 1 <= asked["beam"] <= MOST_BEAM))
            and asked.get("arrays") in (None, [], "all")
        )
        if answer.status != 200 or not right:
            self.survives(server, answer)
        if right and asked.get("arrays", []) is not None:
            assert answer.status == 200

    @settings(max_examples=30)
    @given(query=st.text(st.sampled_from("textbeam=&%0+9é<"), max_size=20))
    @example("text=a&beam=0")
    @example("text=a&beam=²")
    @example("text=%00")
    @example("text=%ED%A0%80%00")
    @example("beam=3")
    def test_any_query_is_answered(self, server, query):
        answer = server.ask("GET", f"/page?{query.encode().decode('latin-1')}" if query.isascii() else "/page?x=1")
        assert answer.status == 200 or self.survives(server, answer) is None

    def test_long_sentences_and_bodies_are_refused(self, server):
        characters = refused(server.translate("a" * (MOST_CHARACTERS + 1)), 413)
        assert str(MOST_CHARACTERS) in characters
        assert "31 subwords, more than 30" in refused(server.translate("a " * 30), 413)
        assert server.translate("a " * 29).status == 200
        assert "bytes" in refused(server.post("/translate", b" " * (MOST_BYTES + 1)), 413)
        # without a declared length
        parts = [b" " * 1000] * (MOST_BYTES // 1000 + 1)
        assert "bytes" in refused(server.post("/translate", parts), 413)

    @pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonp"])
    def test_other_content_types_are_refused(self, server, kind):
        answer = server.ask("POST", "/translate", b'{"text": "a"}', {"Content-Type": kind})
        assert "application/json" in refused(answer, 415)

    @pytest.mark.parametrize(
        "method, path", [("GET", "/translate"), ("DELETE", "/inspect"), ("POST", "/"), ("OPTIONS", "/translate")]
    )
    def test_other_methods_are_refused(self, server, method, path):
        answer = server.ask(method, path)
        refused(answer, 405)
        assert answer.headers["allow"]

    def test_unknown_addresses_are_refused(self, server):
        for path in ("/no", "/live.html", "/../pyproject.toml", "/%2e%2e/x"):
            refused(server.ask("GET", path), 404)

    def test_invalid_http_is_refused(self, server):
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as connection:
            connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
            assert b" 400 " in connection.recv(1000)
        assert server.translate("a").status == 200

    def test_a_slow_body_is_refused(self, translator, monkeypatch):
        monkeypatch.setattr(requests, "SECONDS_FOR_A_BODY", 0.1)
        with serving(translator) as own, socket.create_connection(("127.0.0.1", own.port), timeout=10) as connection:
            head = f"POST /translate HTTP/1.1\r\nHost: {own.host}\r\nContent-Type: application/json\r\n"
            connection.sendall(head.encode() + b"Content-Length: 20\r\n\r\n{")
            assert b" 408 " in connection.recv(1000)

    def test_an_internal_error_does_not_stop_the_server(self, translator, monkeypatch, capsys):
        with serving(translator) as own:
            with monkeypatch.context() as patch:
                patch.setattr(translator, "translate", lambda asked: 1 / 0)
                assert "the terminal of the server shows the error" in refused(own.translate("a"), 500)
            assert own.translate("a").status == 200
        assert "ZeroDivisionError" in capsys.readouterr().err


class TestHostsAndOrigins:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST:80", "[::1]:8000", "192.168.0.7:8000"])
    def test_own_hosts_are_accepted(self, server, host):
        assert server.ask("GET", "/model", headers={"Host": host}).status == 200

    @pytest.mark.parametrize(
        "host",
        ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8000", "", "a b", "[::1", "localhost:x"],
    )
    def test_other_hosts_are_refused(self, server, host):
        for method, path in (("GET", "/"), ("POST", "/translate"), ("GET", "/no")):
            refused(server.ask(method, path, headers={"Host": host}), 421)

    def test_a_configured_name_is_accepted(self, translator):
        with serving(translator, names=frozenset({"lab.example"})) as own:
            assert own.ask("GET", "/model", headers={"Host": "lab.example:8000"}).status == 200

    def test_other_origins_are_refused(self, server):
        own = {"Origin": f"http://{server.host}", "Sec-Fetch-Site": "same-origin"}
        assert server.post("/translate", {"text": "a"}, **own).status == 200
        for other in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
            refused(server.post("/translate", {"text": "a"}, **other), 403)
            refused(server.ask("GET", "/page?text=a", headers=other), 403)
