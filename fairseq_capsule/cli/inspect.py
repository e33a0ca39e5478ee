"""`fairseq-capsule inspect`: what a model routes while it translates, as pages, pictures and arrays."""

import io
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import List

from tqdm import tqdm

from fairseq_capsule.checkpoints.hub import CapsuleHub
from fairseq_capsule.cli.arguments import MOST, beam_size, input_file, label, output_folder, unicode_text, whole_numbers
from fairseq_capsule.cli.model_arguments import add_model_arguments, load_model
from fairseq_capsule.data.files import read_lines, write_whole
from fairseq_capsule.errors import UserError
from fairseq_capsule.inspector.inspection import Inspection, Source, inspect
from fairseq_capsule.inspector.page import page_name, write_index, write_page
from fairseq_capsule.inspector.sentences import sentences_of_data, sentences_of_text


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(parser)
    sentences = parser.add_mutually_exclusive_group(required=True)
    sentences.add_argument(
        "--ids", type=whole_numbers(0, MOST), help="sentences of the data, as fairseq-generate numbers them: 3,17"
    )
    sentences.add_argument(
        "--text", type=unicode_text, help="one source sentence, raw or as --codes and --tokenizer say"
    )
    sentences.add_argument("--file", type=input_file, help="such sentences, one a line; a page is called by its line")
    parser.add_argument(
        "--split", type=label, default="test", help="the part of the data with --ids (default: %(default)s)"
    )
    parser.add_argument("--beam", type=beam_size, default=5, help="of the translation (default: %(default)s)")
    parser.add_argument(
        "--against",
        type=input_file,
        metavar="CHECKPOINT",
        help="another model, to be shown beside it on the same translation",
    )
    parser.add_argument("--out", type=output_folder, required=True, help="folder for pages, pictures and arrays")


def run(args: Namespace) -> None:
    hub = load_model(args, args.checkpoint)
    against = load_model(args, args.against) if args.against else None
    sentences = _sentences(hub, args)
    inspections = inspect(hub, sentences, beam=args.beam, against=against)
    for inspection in tqdm(inspections, total=len(sentences), desc="inspect", unit=" sentences", disable=None):
        shown = [view.title for view in inspection.views]
        if not shown:
            raise UserError(
                f"{args.checkpoint}: a {type(hub.models[0]).__name__} without attention or capsules: nothing to show"
            )
        _write(inspection, sentences, args.out)
    write_whole(args.out / "index.html", write_index(sentences))
    kind = type(hub.models[0]).__name__
    plain = "" if inspection.routed else f"; a {kind} routes nothing, its attention is all there is to show"
    print(f"{args.out / 'index.html'}: sentences: {len(sentences)}; {', '.join(shown)}{plain}")


def _write(inspection: Inspection, sentences: List[Source], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    number = inspection.number
    inspection.save(folder / f"{number}.npz")
    for view in inspection.views:
        picture = io.BytesIO()
        inspection.plot(view.name).savefig(picture, format="png", dpi=110)
        write_whole(folder / f"{number}-{view.name.replace('_', '-')}.png", picture.getvalue())
    write_whole(folder / page_name(number), write_page(inspection, sentences))


def _sentences(hub: CapsuleHub, args: Namespace) -> List[Source]:
    if args.ids is not None:
        return sentences_of_data(hub, args.split, args.ids)
    return sentences_of_text(hub, read_lines(args.file) if args.text is None else [args.text])
