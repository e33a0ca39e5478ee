"""`fairseq-capsule serve`: translate in a browser and see what the model routes. The models are loaded once."""

from collections.abc import Sequence
from pathlib import Path

import click

from capsule_routing.errors import UserError
from fairseq_capsule_lab.cli.arguments import BEAM, MODEL, input_file, load_model
from fairseq_capsule_lab.cli.commands import command, option

AGAINST = "A further model of the same data, shown beside the first. May be repeated, for further translations."


@command("serve", "runs/capsule/checkpoint_best.pt data/multi30k --against runs/transformer/checkpoint_best.pt")
@MODEL
@option("--against", input_file, "CHECKPOINT", AGAINST, multiple=True)
@option("--port", click.IntRange(0, 65535), "N", "Port to listen on. 0 takes any free port.", default=8000)
@BEAM
def serve(
    checkpoint: Path,
    data: Path,
    codes: Path | None,
    tokenizer: str | None,
    against: Sequence[Path],
    port: int,
    beam: int,
) -> None:
    """Serve a page that translates and shows what the model routes. The model is loaded once."""
    from fairseq_capsule_lab.pages.server import Server, Translator

    try:
        server = Server(port)
    except OSError as error:
        raise UserError(f"--port {port}: {error.strerror}; choose another") from error
    with server:
        hubs = [load_model(path, data, codes, tokenizer) for path in (checkpoint, *against)]
        server.translator = Translator(hubs, beam)
        print(f"{server.address} (Ctrl-C stops the server)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")
