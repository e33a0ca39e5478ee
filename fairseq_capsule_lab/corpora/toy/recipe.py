"""The embedded English-German corpus: scripts/prepare-toy.sh."""

from collections.abc import Callable, Iterable
from functools import partial

from fairseq_capsule_lab.corpora import filters
from fairseq_capsule_lab.corpora.help_texts import RESUMES
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import Options, Recipe, positive
from fairseq_capsule_lab.corpora.splits import draw_splits, write_parallel
from fairseq_capsule_lab.corpora.toy.sampler import sentence_pairs

MOST = 10_000_000  # pairs of a split
SIZES = {"train": "30000", "valid": "500", "test": "500"}
OPTIONS = (*SIZES, "seed")


def write_drawn(raw: RawTexts, options: Options, pairs: Callable[[int], Iterable[tuple[str, ...]]]) -> None:
    """Draw the splits from the pairs of a seed, and note their files as sources. Alignments get their own folder."""
    splits = draw_splits(pairs(int(options["seed"])), {split: int(options[split]) for split in SIZES})
    write_parallel(raw.folder, raw.languages, splits)
    links = {split: [pair[2:] for pair in drawn] for split, drawn in splits.items()}
    if any(links["train"]):
        write_parallel(raw.folder / "alignments", ["align"], links)
    for language in raw.languages:
        for file in sorted(raw.folder.glob(f"*.{language}")):
            raw.note(file)


def require_sizes(options: Options) -> Options:
    """Refuse wrong sizes of splits, or a wrong seed."""
    for split in SIZES:
        positive(f"--{split}", options[split], MOST)
    positive("--seed", options["seed"])
    return options


TOY = Recipe(
    script="prepare-toy.sh",
    help=f"""\
Generate the embedded English-German corpus and binarise it for fairseq, in OUT/bin. Nothing is downloaded.

    prepare-toy.sh [--train N] [--valid N] [--test N] [--seed N] OUT

  --train N, --valid N, --test N
                 sentence pairs of each split (30,000, 500 and 500)
  --seed N       seed of the corpus (1)

Punctuation is normalised, words are tokenised (XML escapes kept), case is kept. Joint BPE of 2,500 merges, joint
dictionary.

  OUT/bin        binarised: train, valid, test
  OUT/raw        the generated text and references for sacreBLEU; OUT/tokenised and OUT/bpe: its later stages
  OUT/raw/alignments
                 SPLIT.align: the words of OUT/tokenised that translate each other, as 0-0 1-2, source and target,
                 from 0
  OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes

{RESUMES}""",
    languages=("en", "de"),
    version=("grammar 2",),
    options=OPTIONS,
    raw=partial(write_drawn, pairs=sentence_pairs),
    filters=lambda options: [filters.moses],
    defaults={**SIZES, "seed": "1", "merges": "2500"},
    check=require_sizes,
)
