"""A server for this machine: a text, its translations by one or several models, and what was routed."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from urllib.parse import parse_qsl, urlsplit

from fairseq.hub_utils import GeneratorHubInterface

from capsule_routing.errors import UserError
from fairseq_capsule_lab.pages.described_models import describe_model
from fairseq_capsule_lab.pages.inspected import InspectedSentence, generate, inspect_sources, require_readable
from fairseq_capsule_lab.pages.page import page_html
from fairseq_capsule_lab.pages.sentences import SourceSentence, sentences_of_text, text_of
from fairseq_capsule_lab.pages.template import render

ADDRESS = "127.0.0.1"  # only this machine


class Translator:
    """The pages of the server. They are made one at a time.

    Args:
        hubs: models with the same dictionaries.
        beam: the beam size of a request without one.

    Raises:
        UserError: the models have different dictionaries.
    """

    def __init__(self, hubs: Sequence[GeneratorHubInterface], beam: int = 5):
        self.hubs = hubs
        self.models = [describe_model(hub) for hub in hubs]
        self.beam = beam
        self.lock = Lock()
        require_readable(hubs, [])  # a model that does not fit is refused now
        self.has_views = bool(self._inspect("a", beam).views)  # and the first request is as fast as the others

    def home(self, fields: Mapping[str, str]) -> str:
        """The page with the text and its translations; each line of the text is a sentence."""
        text, beam = fields.get("text", ""), int(fields.get("beam", self.beam))
        lines = [line for line in map(str.strip, text.split("\n")) if line]
        error, translations = "", []
        try:
            with self.lock:
                sources = sentences_of_text(self.hubs[0], lines)
                require_readable(self.hubs, sources)
                translations = [[_hypotheses(hub, source, beam) for hub in self.hubs] for source in sources]
        except UserError as refused:
            error = str(refused)
        return render(
            "serve.html",
            models=self.models,
            languages=[getattr(self.hubs[0].task.cfg, f"{side}_lang", None) or "?" for side in ("source", "target")],
            text=text,
            beam=beam,
            error=error,
            sentences=list(zip(lines, translations)),
            sentence=int(fields.get("sentence", 1)),
            has_views=self.has_views,
        )

    def inside(self, fields: Mapping[str, str]) -> str:
        """The page of the inspector for one sentence. `home` has refused what cannot be read."""
        with self.lock:
            return page_html(self._inspect(fields.get("text", ""), int(fields.get("beam", self.beam))))

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
        content = pages[address.path](dict(parse_qsl(address.query))).encode()
        with suppress(ConnectionError):  # the reader has left
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Log nothing: the text of the user does not belong into a terminal."""
