"""`fairseq-capsule serve`: translate in a browser and see what the model routes. The model is loaded once."""

import ipaddress
import sys
from argparse import ArgumentParser, Namespace
from contextlib import suppress

from fairseq_capsule_lab.cli.arguments import add_model_arguments, input_file, label, load_model, whole_number
from fairseq_capsule_lab.pages.origin import describe_model
from fairseq_capsule_lab.pages.server.bodies import MOST_BEAM
from fairseq_capsule_lab.pages.server.translator import System, Translator

LOOPBACK = "127.0.0.1"


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "--against",
        type=input_file,
        metavar="CHECKPOINT",
        help="a second model of the same data, shown beside the first",
    )
    parser.add_argument("--host", default=LOOPBACK, type=label, help="address to listen on (default: %(default)s)")
    parser.add_argument(
        "--port",
        default=8000,
        type=whole_number(0, 65535),
        help="port to listen on; 0 takes any free port (default: %(default)s)",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        type=label,
        help="a host name that requests may use, besides localhost and numeric addresses; may be repeated",
    )
    parser.add_argument(
        "--beam",
        type=whole_number(1, MOST_BEAM),
        default=5,
        help="beam size of a request without one (default: %(default)s)",
    )
    parser.add_argument(
        "--longest",
        type=whole_number(1, 10_000),
        default=256,
        metavar="SUBWORDS",
        help="maximum length of a sentence, with its end-of-sentence token (default: %(default)s)",
    )
    parser.add_argument(
        "--waiting",
        type=whole_number(0, 1000),
        default=64,
        metavar="REQUESTS",
        help="maximum length of the queue; the server answers one request at a time (default: %(default)s)",
    )
    parser.add_argument(
        "--rate",
        type=whole_number(1, 1_000_000),
        default=240,
        metavar="REQUESTS",
        help="maximum number of requests from one address in a minute (default: %(default)s)",
    )


def run(args: Namespace) -> None:
    from fairseq_capsule_lab.pages.server import application, running  # they need the libraries of the extra "serve"

    with running.bound(args.host, args.port) as listening:
        translator = _translator(args)
        names = frozenset(name.lower() for name in args.name)
        app = application.application(translator, names, args.waiting, args.rate)
        if not _is_loopback(args.host):
            print(
                f"fairseq-capsule serve: note: --host {args.host}: whoever reaches this computer can translate here; "
                "there is no password and no encryption",
                file=sys.stderr,
            )
        print(f"{running.address(listening)} (Ctrl-C stops the server)", flush=True)
        with suppress(KeyboardInterrupt):  # uvicorn raises it again after it has ended
            running.run(app, listening)
        print("stopped")


def _translator(args: Namespace) -> Translator:
    hubs = [load_model(args, path) for path in (args.checkpoint, args.against) if path is not None]
    system, *others = [System(describe_model(hub).name, hub) for hub in hubs]
    return Translator(system, others[0] if others else None, args.beam, args.longest)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
