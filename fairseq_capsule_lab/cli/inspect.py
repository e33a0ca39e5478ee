"""`fairseq-capsule inspect` and `picture`: pages, pictures and arrays of what a model routes while it translates."""

import io
from pathlib import Path

import click

from capsule_routing.errors import UserError
from capsule_routing.text.files import read_lines
from fairseq_capsule_lab.cli import arguments
from fairseq_capsule_lab.cli.arguments import (
    BEAM,
    MODEL,
    MOST,
    given,
    input_file,
    load_model,
    note_unknown_words,
    text_file,
)
from fairseq_capsule_lab.cli.commands import command, one_of, option
from fairseq_capsule_lab.files import write_whole

SUFFIXES = (".png", ".svg", ".pdf")
IDS = "Sentences of the data by the numbers of fairseq-generate, such as 3,17."
FILE = "A file with one raw source sentence per line. The line number names the page."
AGAINST = "A second model, shown beside the first on the same translation."
PAGES = "Folder for pages, pictures and arrays. Existing pages stay, and index.html lists all."
SHOW = (
    "attention: that of the encoder, with and without routing. assignment: which words are PAST, FUTURE or neither at "
    "each step of the model's own translation. Or another view of inspect (docs/inspecting.md)."
)


@command("inspect", "runs/capsule/checkpoint_best.pt data/multi30k --ids 3,17 --out pages")
@MODEL
@option("--ids", arguments.whole_numbers(0, MOST), "N,N,…", IDS)
@option("--text", str, "TEXT", "One source sentence, raw.")
@option("--file", text_file, "FILE", FILE)
@option("--split", given, "NAME", "The split that --ids refers to.", default="test")
@BEAM
@option("--against", input_file, "CHECKPOINT", AGAINST)
@option("--out", arguments.output_path, "DIR", PAGES, required=True)
def inspect(
    checkpoint: Path,
    data: Path,
    codes: Path | None,
    tokenizer: str | None,
    ids: list[int] | None,
    text: str | None,
    file: Path | None,
    split: str,
    beam: int,
    against: Path | None,
    out: Path,
) -> None:
    """Write pages, pictures and arrays of what a model routes while it translates.

    Name the sentences by --ids, --text or --file.
    """
    one_of({"--ids": ids, "--text": text, "--file": file}, required=True)
    from tqdm import tqdm

    from fairseq_capsule_lab.pages.folder import write_inspection, write_lists
    from fairseq_capsule_lab.pages.inspected import inspect_sources
    from fairseq_capsule_lab.pages.page import INDEX
    from fairseq_capsule_lab.pages.sentences import sentences_of_data, sentences_of_text

    hub = load_model(checkpoint, data, codes, tokenizer)
    other = load_model(against, data, codes, tokenizer) if against else None
    if ids is not None:
        sentences = sentences_of_data(hub, split, ids)
    else:
        lines = read_lines(file) if file else [text or ""]
        sentences = sentences_of_text(hub, lines, "line" if file else "text")
        note_unknown_words(hub, sentences, data, codes)
    inspections = inspect_sources(hub, sentences, beam=beam, against=other)
    kind = type(hub.models[0]).__name__
    page = None
    try:
        for inspection in tqdm(inspections, total=len(sentences), desc="inspect", unit=" sentences", disable=None):
            if not inspection.views:
                raise UserError(f"{checkpoint}: a {kind} has no attention or capsules to show; give another model")
            page = write_inspection(out, inspection)
    finally:
        if page:  # list the pages that were written before an error too
            write_lists(out)
    titles = ", ".join(view.title for view in inspection.views)
    plain = "" if inspection.routed else f"; a {kind} routes nothing, so only its attention is shown"
    print(f"{out / INDEX}: sentences: {len(sentences)}; {titles}{plain}")


@command("picture", 'runs/capsule/checkpoint_best.pt data/multi30k --text "A dog runs." --out attention.png')
@MODEL
@option("--text", str, "TEXT", "The source sentence, raw.")
@option("--id", click.IntRange(0), "N", "A sentence of the data by the number of fairseq-generate.")
@option("--split", given, "NAME", "The split that --id refers to.", default="test")
@option("--show", given, "VIEW", SHOW, default="attention")
@option("--out", arguments.output_path, "FILE", "Picture to write: .png, .svg or .pdf.", required=True)
def picture(
    checkpoint: Path,
    data: Path,
    codes: Path | None,
    tokenizer: str | None,
    text: str | None,
    id: int | None,
    split: str,
    show: str,
    out: Path,
) -> None:
    """Draw one picture of inspect, of the sentence that --text or --id names."""
    one_of({"--text": text, "--id": id}, required=True)
    if out.suffix not in SUFFIXES:
        raise UserError(f"--out {out}: not a picture; choose a name that ends in one of {', '.join(SUFFIXES)}")
    from fairseq_capsule_lab.pages.inspected import inspect_sources
    from fairseq_capsule_lab.pages.sentences import sentences_of_data, sentences_of_text

    hub = load_model(checkpoint, data, codes, tokenizer)
    if id is None:
        sources = sentences_of_text(hub, [text or ""])
        note_unknown_words(hub, sources, data, codes)
    else:
        sources = sentences_of_data(hub, split, [id])
    (inspection,) = inspect_sources(hub, sources)
    drawn = io.BytesIO()
    inspection.plot(show).savefig(drawn, format=out.suffix[1:], dpi=110)
    write_whole(out, drawn.getvalue())
    words = f"{len(inspection.source)} subwords of the source, {len(inspection.target)} of the translation"
    print(f"{out}: {words}: {inspection.translation}")
