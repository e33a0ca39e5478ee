"""`fairseq-capsule serve`: translate in a browser and see what the model routes. The models are loaded once."""

from argparse import ArgumentParser, Namespace

from fairseq_capsule_lab.cli.arguments import add_model_arguments, beam_size, input_file, load_model, whole_number
from fairseq_capsule_lab.errors import LabError


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(parser)
    text = "a further model of the same data, shown beside the first; may be repeated"
    parser.add_argument("--against", type=input_file, action="append", default=[], metavar="CHECKPOINT", help=text)
    text = "port to listen on; 0 takes any free port (default: %(default)s)"
    parser.add_argument("--port", type=whole_number(0, 65535), default=8000, help=text)
    text = "beam size of a request without one (default: %(default)s)"
    parser.add_argument("--beam", type=beam_size, default=5, help=text)


def run(args: Namespace) -> None:
    from fairseq_capsule_lab.pages.server import Server, Translator

    try:
        server = Server(args.port)
    except OSError as error:
        raise LabError(f"--port {args.port}: {error.strerror}; choose another") from error
    with server:
        hubs = [load_model(args, path) for path in (args.checkpoint, *args.against)]
        server.translator = Translator(hubs, args.beam)
        print(f"{server.address} (Ctrl-C stops the server)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
