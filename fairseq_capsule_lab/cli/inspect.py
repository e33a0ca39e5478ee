"""`fairseq-capsule inspect`: pages, pictures and arrays of what a model routes while it translates."""

from argparse import ArgumentParser, Namespace
from typing import List

from tqdm import tqdm

from fairseq_capsule.data.files import read_lines
from fairseq_capsule.hub import CapsuleHub
from fairseq_capsule_lab.cli.arguments import (
    MOST,
    add_model_arguments,
    beam_size,
    input_file,
    label,
    load_model,
    note_missing_characters,
    note_unknown_words,
    output_folder,
    unicode_text,
    whole_numbers,
)
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.pages.figures import missing_characters
from fairseq_capsule_lab.pages.folder import write_inspection, write_lists
from fairseq_capsule_lab.pages.inspection import Source, inspect_sources
from fairseq_capsule_lab.pages.page import INDEX
from fairseq_capsule_lab.pages.sentences import sentences_of_data, sentences_of_text


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(parser)
    sentences = parser.add_mutually_exclusive_group(required=True)
    sentences.add_argument(
        "--ids",
        type=whole_numbers(0, MOST),
        help="sentences of the data by the numbers of fairseq-generate, such as 3,17",
    )
    sentences.add_argument(
        "--text", type=unicode_text, help="one source sentence; --codes and --tokenizer say how to split it"
    )
    sentences.add_argument(
        "--file", type=input_file, help="a file with one source sentence per line; the line number names the page"
    )
    parser.add_argument(
        "--split", type=label, default="test", help="the split that --ids refers to (default: %(default)s)"
    )
    parser.add_argument("--beam", type=beam_size, default=5, help="beam size (default: %(default)s)")
    parser.add_argument(
        "--against",
        type=input_file,
        metavar="CHECKPOINT",
        help="a second model, shown beside the first on the same translation",
    )
    parser.add_argument(
        "--out",
        type=output_folder,
        required=True,
        help="folder for pages, pictures and arrays; existing pages stay, and index.html lists all pages",
    )


def run(args: Namespace) -> None:
    hub = load_model(args, args.checkpoint)
    against = load_model(args, args.against) if args.against else None
    sentences = _sentences(hub, args)
    if args.ids is None:
        note_unknown_words(args, hub, sentences)
    inspections = inspect_sources(hub, sentences, beam=args.beam, against=against)
    kind = type(hub.models[0]).__name__
    written, without_font = 0, dict[str, None]()
    try:
        for inspection in tqdm(inspections, total=len(sentences), desc="inspect", unit=" sentences", disable=None):
            shown = [view.title for view in inspection.views]
            if not shown:
                raise LabError(f"{args.checkpoint}: a {kind} has no attention or capsules to show; give another model")
            with missing_characters() as missing:
                write_inspection(args.out, inspection)
            without_font |= missing
            written += 1
    finally:
        if written:  # list the pages that were written before an error too
            write_lists(args.out)
    note_missing_characters(args, without_font)
    plain = "" if inspection.routed else f"; a {kind} routes nothing, so only its attention is shown"
    print(f"{args.out / INDEX}: sentences: {len(sentences)}; {', '.join(shown)}{plain}")


def _sentences(hub: CapsuleHub, args: Namespace) -> List[Source]:
    if args.ids is not None:
        return sentences_of_data(hub, args.split, args.ids)
    if args.text is not None:
        return sentences_of_text(hub, [args.text])
    return sentences_of_text(hub, read_lines(args.file), "line")
