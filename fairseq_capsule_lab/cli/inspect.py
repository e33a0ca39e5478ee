"""`fairseq-capsule inspect` and `picture`: pages, pictures and arrays of what a model routes while it translates."""

import io
from argparse import ArgumentParser, Namespace

from tqdm import tqdm

from capsule_routing.text.files import read_lines
from fairseq_capsule.inspection import all_views
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.files import write_whole
from fairseq_capsule_lab.pages.figures import missing_characters
from fairseq_capsule_lab.pages.folder import write_inspection, write_lists
from fairseq_capsule_lab.pages.inspection import inspect_sources
from fairseq_capsule_lab.pages.page import INDEX
from fairseq_capsule_lab.pages.sentences import sentences_of_data, sentences_of_text

SUFFIXES = (".png", ".svg", ".pdf")
# Short names of views. Where a short name has several views, a model has only one of them.
SHORT = {"attention": ("encoder_attention",), "assignment": ("past_future", "past_future_attention")}


def add_inspect_arguments(parser: ArgumentParser) -> None:
    arguments.add_model_arguments(parser)
    sentences = parser.add_mutually_exclusive_group(required=True)
    numbers = arguments.whole_numbers(0, arguments.MOST)
    text = "sentences of the data by the numbers of fairseq-generate, such as 3,17"
    sentences.add_argument("--ids", type=numbers, help=text)
    text = "one source sentence, raw"
    sentences.add_argument("--text", type=arguments.unicode_text, help=text)
    text = "a file with one raw source sentence per line; the line number names the page"
    sentences.add_argument("--file", type=arguments.input_file, help=text)
    text = "the split that --ids refers to (default: %(default)s)"
    parser.add_argument("--split", type=arguments.label, default="test", help=text)
    parser.add_argument("--beam", type=arguments.beam_size, default=5, help="beam size (default: %(default)s)")
    text = "a second model, shown beside the first on the same translation"
    parser.add_argument("--against", type=arguments.input_file, metavar="CHECKPOINT", help=text)
    text = "folder for pages, pictures and arrays; existing pages stay, and index.html lists all pages"
    parser.add_argument("--out", type=arguments.output_folder, required=True, help=text)


def run_inspect(args: Namespace) -> None:
    hub = arguments.load_model(args, args.checkpoint)
    against = arguments.load_model(args, args.against) if args.against else None
    if args.ids is not None:
        sentences = sentences_of_data(hub, args.split, args.ids)
    else:
        lines, collection = (read_lines(args.file), "line") if args.text is None else ([args.text], "text")
        sentences = sentences_of_text(hub, lines, collection)
        arguments.note_unknown_words(args, hub, sentences)
    inspections = inspect_sources(hub, sentences, beam=args.beam, against=against)
    kind = type(hub.models[0]).__name__
    written, without_font = 0, dict[str, None]()
    try:
        for inspection in tqdm(inspections, total=len(sentences), desc="inspect", unit=" sentences", disable=None):
            if not inspection.views:
                raise LabError(f"{args.checkpoint}: a {kind} has no attention or capsules to show; give another model")
            with missing_characters() as missing:
                write_inspection(args.out, inspection)
            without_font |= missing
            written += 1
    finally:
        if written:  # list the pages that were written before an error too
            write_lists(args.out)
    arguments.note_missing_characters(args, without_font)
    titles = ", ".join(view.title for view in inspection.views)
    plain = "" if inspection.routed else f"; a {kind} routes nothing, so only its attention is shown"
    print(f"{args.out / INDEX}: sentences: {len(sentences)}; {titles}{plain}")


def add_picture_arguments(parser: ArgumentParser) -> None:
    arguments.add_model_arguments(parser)
    sentence = parser.add_mutually_exclusive_group(required=True)
    text = "the source sentence, raw"
    sentence.add_argument("--text", type=arguments.unicode_text, help=text)
    text = "a sentence of the data by the number of fairseq-generate"
    sentence.add_argument("--id", type=arguments.whole_number(0, arguments.MOST), metavar="N", help=text)
    text = "the split that --id refers to (default: %(default)s)"
    parser.add_argument("--split", type=arguments.label, default="test", help=text)
    views = [view.name for view in all_views()]
    text = (
        "attention: the encoder's, with and without routing (default); assignment: which words are PAST, FUTURE "
        f"or neither at each step of the model's own translation; or a view of inspect: {', '.join(views)}"
    )
    parser.add_argument("--show", choices=[*SHORT, *views], metavar="VIEW", default="attention", help=text)
    text = "a layer, from 1 (default: the top layer, as in the paper)"
    parser.add_argument("--layer", type=arguments.label, help=text)
    text = "picture to write: .png, .svg or .pdf"
    parser.add_argument("--out", type=arguments.output_file, required=True, help=text)


def run_picture(args: Namespace) -> None:
    """Write one picture of `inspect`, for one sentence."""
    if args.out.suffix not in SUFFIXES:
        raise LabError(f"--out {args.out}: not a picture; choose a name that ends in one of {', '.join(SUFFIXES)}")
    hub = arguments.load_model(args, args.checkpoint)
    if args.id is None:
        sources = sentences_of_text(hub, [args.text])
        arguments.note_unknown_words(args, hub, sources)
    else:
        sources = sentences_of_data(hub, args.split, [args.id])
    (inspection,) = inspect_sources(hub, sources)
    names = SHORT.get(args.show, (args.show,))
    own = {view.name for view in inspection.views}
    places = {} if args.layer is None else {"layer": args.layer}
    figure = inspection.plot(next((name for name in names if name in own), names[0]), **places)
    picture = io.BytesIO()
    with missing_characters() as missing:
        figure.savefig(picture, format=args.out.suffix[1:], dpi=110)
    arguments.note_missing_characters(args, missing)
    write_whole(args.out, picture.getvalue())
    words = f"{len(inspection.source)} subwords of the source, {len(inspection.target)} of the translation"
    print(f"{args.out}: {words}: {inspection.translation}")
