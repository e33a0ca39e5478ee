"""Measure the time of `fairseq-capsule serve` for a sentence, and of `translate` with the same model and process.

    python benchmarks/serving.py CHECKPOINT DATA [--sentence TEXT] [--json]

The server runs in a thread. Each request uses its own HTTP connection to 127.0.0.1. The measurements alternate.
"""

import argparse
import contextlib
import http.client
import json
import socket
import threading
import warnings
from statistics import median
from typing import Iterator
from urllib.parse import urlencode

import uvicorn
from measure import alternate

from fairseq_capsule.hub import CapsuleHub
from fairseq_capsule_lab.cli.arguments import add_model_arguments, load_model
from fairseq_capsule_lab.pages.server.application import application
from fairseq_capsule_lab.pages.server.translator import Translator

SENTENCE = "a man in a red shirt and a woman in a blue dress walk home"  # 15 words


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_model_arguments(parser)
    parser.add_argument("--sentence", default=SENTENCE)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", action="store_true", help="print a JSON object as the last line")
    args = parser.parse_args()
    warnings.filterwarnings("ignore", "'pin_memory'")  # fairseq's data loader uses it even without a GPU
    hub = load_model(args, args.checkpoint)
    body = json.dumps({"text": args.sentence}).encode()
    query = urlencode({"text": args.sentence})
    with serving(hub, args.beam) as port:
        work = {
            "translate": lambda: hub.translate(args.sentence, beam=args.beam),
            "POST /translate": lambda: ask(port, "POST", "/translate", body),
            "GET /page": lambda: ask(port, "GET", f"/page?{query}", None),
        }
        times = alternate(work, args.rounds, "cpu")
    medians = {name: 1000 * median(seconds) for name, seconds in times.items()}
    alone = medians["translate"]
    for name, milliseconds in medians.items():
        print(f"{name:16} {milliseconds:8.1f} ms  {milliseconds / alone:5.2f} × translate")
    if args.json:
        print(json.dumps({"milliseconds": medians, "rounds": args.rounds, "words": len(args.sentence.split())}))


@contextlib.contextmanager
def serving(hub: CapsuleHub, beam: int) -> Iterator[int]:
    """Serve a model in a thread, and yield the port."""
    app = application(Translator(hub, beam=beam), frozenset(), 64, 1_000_000)
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none", http="h11"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join()


def ask(port, method, path, body):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request(method, path, body, {"Content-Type": "application/json"})
    response = connection.getresponse()
    content = response.read()
    connection.close()
    if response.status != 200:
        raise SystemExit(f"{path}: {response.status} {content[:200]!r}")


if __name__ == "__main__":
    main()
