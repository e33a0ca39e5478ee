"""A server for this machine: a text, its translations by one or several models, and what was routed.

A text comes in the body of a request, because addresses are limited. The server keeps it, and pages name its number.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from fairseq.hub_utils import GeneratorHubInterface

from capsule_routing.errors import UserError
from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.pages.described_models import describe_model
from fairseq_capsule_lab.pages.inspected import InspectedSentence, generate, inspect_sources, require_readable
from fairseq_capsule_lab.pages.page import page_html
from fairseq_capsule_lab.pages.sentences import SourceSentence, sentences_of_text, text_of
from fairseq_capsule_lab.pages.template import render
from fairseq_capsule_lab.values import checked_integer

ADDRESS = "127.0.0.1"  # only this machine
LONGEST = 100_000  # characters of a text
KEPT = 100  # texts; older ones are forgotten
MOST_BYTES = 12 * LONGEST + 1000  # of a form: a character has up to four bytes, each of them written as %XX


class Request(NamedTuple):
    """A text to translate, one sentence a line, and the beam size."""

    text: str
    beam: int

    @property
    def lines(self) -> list[str]:
        return [line for line in map(str.strip, self.text.split("\n")) if line]


class Translator:
    """The pages of the server. They are made one at a time.

    Args:
        hubs: models with the same dictionaries.
        beam: the beam size of a request without one.

    Raises:
        UserError: the models have different dictionaries or directions.
    """

    def __init__(self, hubs: Sequence[GeneratorHubInterface], beam: int = defaults.BEAM):
        self.hubs = hubs
        self.models = [describe_model(hub) for hub in hubs]
        self.beam = beam
        self.lock = Lock()
        self.requests: dict[int, Request] = {}
        self.number = 0  # of the newest request
        require_readable(hubs, [])  # a model that does not fit is refused now
        self.has_views = bool(self._inspect("a", beam).views)  # and the first request is as fast as the others

    def keep(self, fields: Mapping[str, str]) -> int:
        """Keep the text and the beam size of a form, and return the number of the request."""
        text = fields.get("text", "")
        if len(text) > LONGEST:
            raise UserError(f"the text has {len(text):,} characters, more than {LONGEST:,}; shorten it")
        request = Request(text, checked_integer("beam", fields.get("beam", self.beam)))
        with self.lock:
            self.number += 1
            self.requests[self.number] = request
            self.requests.pop(self.number - KEPT, None)
            return self.number

    def refused(self, fields: Mapping[str, str], error: UserError) -> str:
        """The page for a form that `keep` refused, with its text."""
        return self._page(Request(fields.get("text", "")[:LONGEST], self.beam), error=str(error))

    def home(self, fields: Mapping[str, str]) -> str:
        """The page with a text and its translations; each line of the text is a sentence."""
        if not fields:
            return self._page(Request("", self.beam))
        request = Request("", self.beam)
        try:
            number, request, sentence = self._chosen(fields)
            with self.lock:
                sources = sentences_of_text(self.hubs[0], request.lines)
                require_readable(self.hubs, sources)
                translations = [[_hypotheses(hub, source, request.beam) for hub in self.hubs] for source in sources]
        except UserError as refused:
            return self._page(request, error=str(refused))
        return self._page(request, number, sentence, list(zip(request.lines, translations)))

    def inside(self, fields: Mapping[str, str]) -> str:
        """The page of the inspector for one sentence. `home` has refused what cannot be read."""
        _, request, sentence = self._chosen(fields)
        with self.lock:
            return page_html(self._inspect(request.lines[sentence - 1], request.beam))

    def _chosen(self, fields: Mapping[str, str]) -> tuple[int, Request, int]:
        """The number of a request, the request, and the number of the sentence that is inspected."""
        number = checked_integer("text", fields.get("text", ""))
        if number not in self.requests:
            raise UserError(f"text {number} is not kept any more; translate it again")
        request = self.requests[number]
        sentence = checked_integer("sentence", fields.get("sentence", 1))
        if sentence > max(1, len(request.lines)):
            raise UserError(f"sentence {sentence}: the text has {len(request.lines)}; choose one of them")
        return number, request, sentence

    def _page(
        self,
        request: Request,
        number: int = 0,
        sentence: int = 1,
        sentences: Sequence[tuple[str, list[list[tuple[str, float]]]]] = (),
        error: str = "",
    ) -> str:
        return render(
            "serve.html",
            models=self.models,
            languages=[getattr(self.hubs[0].task.cfg, f"{side}_lang", None) or "?" for side in ("source", "target")],
            text=request.text,
            beam=request.beam,
            longest=LONGEST,
            error=error,
            number=number,
            sentences=sentences,
            sentence=sentence,
            has_views=self.has_views,
        )

    def _inspect(self, line: str, beam: int) -> InspectedSentence:
        """Inspect the first model, beside the second if there is one."""
        sources = sentences_of_text(self.hubs[0], [line])
        against = self.hubs[1] if len(self.hubs) > 1 else None
        (inspection,) = inspect_sources(self.hubs[0], sources, beam=beam, against=against)
        return inspection


def _hypotheses(hub: GeneratorHubInterface, source: SourceSentence, beam: int) -> list[tuple[str, float]]:
    """The n-best list: translations and fairseq's scores, which are normalised by length."""
    found = generate(hub, source.tokens.to(hub.device), beam)
    return [(text_of(hub, hypothesis["tokens"]), float(hypothesis["score"])) for hypothesis in found]


class Server(ThreadingHTTPServer):
    """Serves the pages of `translator` on a port of this machine. The port is taken before a model is loaded."""

    translator: Translator

    def __init__(self, port: int):
        super().__init__((ADDRESS, port), Handler)

    @property
    def address(self) -> str:
        return f"http://{ADDRESS}:{self.server_port}/"


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        pages: dict[str, Callable[[Mapping[str, str]], str]] = {
            "/": self.server.translator.home,
            "/inside": self.server.translator.inside,
        }
        if address.path not in pages:
            self.send_error(404)
            return
        try:
            self._answer(pages[address.path](dict(parse_qsl(address.query, keep_blank_values=True))))
        except UserError as refused:
            self.send_error(404, explain=str(refused))

    def do_POST(self) -> None:
        """Keep the text of a form, and lead the browser to the page of its translations, which it can load again."""
        size = self.headers.get("Content-Length", "")
        if urlsplit(self.path).path != "/" or not size.isdecimal():
            self.send_error(400)
            return
        if int(size) > MOST_BYTES:
            self.send_error(413, explain=f"A text has at most {LONGEST:,} characters.")
            return
        body = self.rfile.read(int(size)).decode(errors="replace")
        fields = dict(parse_qsl(body, keep_blank_values=True))
        try:
            number = self.server.translator.keep(fields)
        except UserError as refused:
            self._answer(self.server.translator.refused(fields, refused))
            return
        with suppress(ConnectionError):
            self.send_response(303)
            self.send_header("Location", f"/?text={number}")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def _answer(self, page: str) -> None:
        content = page.encode()
        with suppress(ConnectionError):  # the reader has left
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing: the text of the user does not belong into a terminal."""
