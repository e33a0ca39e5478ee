"""`fairseq-capsule picture`: one picture of `inspect`, for one sentence."""

import io
from argparse import ArgumentParser, Namespace

from fairseq_capsule.inspection import all_views
from fairseq_capsule_lab.cli.arguments import (
    add_model_arguments,
    label,
    load_model,
    note_missing_characters,
    note_unknown_words,
    output_file,
    unicode_text,
)
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.pages.figures import missing_characters
from fairseq_capsule_lab.pages.inspection import inspect_sources
from fairseq_capsule_lab.pages.sentences import sentences_of_text

SUFFIXES = (".png", ".svg", ".pdf")
# Short names of views. Where a short name has several views, a model has only one of them.
SHORT = {"attention": ("encoder_attention",), "assignment": ("past_future", "past_future_attention")}


def add_arguments(parser: ArgumentParser) -> None:
    add_model_arguments(parser)
    parser.add_argument(
        "--text",
        type=unicode_text,
        required=True,
        help="the source sentence; --codes and --tokenizer say how to split it",
    )
    views = [view.name for view in all_views()]
    parser.add_argument(
        "--show",
        choices=[*SHORT, *views],
        metavar="VIEW",
        default="attention",
        help="attention: the encoder's, with and without routing (default); assignment: which words are PAST, FUTURE "
        f"or neither at each step of the model's own translation; or a view of inspect: {', '.join(views)}",
    )
    parser.add_argument("--layer", type=label, help="a layer, from 1 (default: the top layer, as in the paper)")
    parser.add_argument("--out", type=output_file, required=True, help="picture to write: .png, .svg or .pdf")


def run(args: Namespace) -> None:
    if args.out.suffix not in SUFFIXES:
        raise LabError(f"--out {args.out}: not a picture; choose a name that ends in one of {', '.join(SUFFIXES)}")
    hub = load_model(args, args.checkpoint)
    sources = sentences_of_text(hub, [args.text])
    note_unknown_words(args, hub, sources)
    (inspection,) = inspect_sources(hub, sources)
    places = {} if args.layer is None else {"layer": args.layer}
    names = SHORT.get(args.show, (args.show,))
    offered = {view.name for view in inspection.views}
    figure = inspection.plot(next((name for name in names if name in offered), names[0]), **places)
    picture = io.BytesIO()
    with missing_characters() as missing:
        figure.savefig(picture, format=args.out.suffix[1:], dpi=110)
    note_missing_characters(args, missing)
    write_whole(args.out, picture.getvalue())
    words = f"{len(inspection.source)} subwords of the source, {len(inspection.target)} of the translation"
    print(f"{args.out}: {words}: {inspection.translation}")
