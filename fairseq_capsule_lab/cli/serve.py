"""`fairseq-capsule serve`: translate in a browser and see what the model routes. The model is loaded once."""

import ipaddress
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress

from fairseq_capsule_lab.cli.arguments import add_model_arguments, input_file, label, load_model, whole_number
from fairseq_capsule_lab.pages.server.requests import MOST_BEAM
from fairseq_capsule_lab.pages.server.translator import Translator

LOOPBACK = "127.0.0.1"
LOCAL = "made for this computer; if others shall use it, put a proxy before it (docs/serving-and-reports.md, Proxy)"
OPEN = "whoever reaches this computer can translate here; there is no password and no encryption"


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(parser)
    text = "a second model of the same data, shown beside the first"
    parser.add_argument("--against", type=input_file, metavar="CHECKPOINT", help=text)
    parser.add_argument("--host", default=LOOPBACK, type=label, help="address to listen on (default: %(default)s)")

    def add_number(name: str, default: int, least: int, most: int, metavar: str | None, text: str) -> None:
        kind = whole_number(least, most)
        parser.add_argument(name, default=default, type=kind, metavar=metavar, help=f"{text} (default: %(default)s)")

    add_number("--port", 8000, 0, 65535, None, "port to listen on; 0 takes any free port")
    text = "a host name that requests may use, besides localhost and numeric addresses; may be repeated"
    parser.add_argument("--name", action="append", default=[], type=label, help=text)
    add_number("--beam", 5, 1, MOST_BEAM, None, "beam size of a request without one")
    text = "maximum length of a sentence, with its end-of-sentence token"
    add_number("--longest", 256, 1, 10_000, "SUBWORDS", text)
    text = "maximum length of the queue; the server answers one request at a time"
    add_number("--waiting", 64, 0, 1000, "REQUESTS", text)
    text = "maximum number of requests from one address in a minute"
    add_number("--rate", 240, 1, 1_000_000, "REQUESTS", text)


def run(args: Namespace) -> None:
    from fairseq_capsule_lab.pages.server import application, limits  # they need the libraries of the extra "serve"

    with limits.listen(args.host, args.port) as listening:
        hubs = [load_model(args, path) for path in (args.checkpoint, args.against) if path is not None]
        translator = Translator(*hubs, beam=args.beam, longest=args.longest)
        names = frozenset(name.lower() for name in args.name)
        app = application.application(translator, names, args.waiting, args.rate)
        notes = [LOCAL] if _is_loopback(args.host) else [f"--host {args.host}: {OPEN}", LOCAL]
        for note in notes:
            print(f"fairseq-capsule serve: note: {note}", file=sys.stderr)
        print(f"{limits.address(listening)} (Ctrl-C stops the server)", flush=True)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after it has ended
            limits.run(app, listening)
        print("stopped")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
