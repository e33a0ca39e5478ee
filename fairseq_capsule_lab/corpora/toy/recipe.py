"""The embedded English-German corpus: scripts/prepare-toy.sh. And what the embedded corpora share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from capsule_routing.text.preparation import split_into_words
from fairseq_capsule_lab.corpora import recipe
from fairseq_capsule_lab.corpora.parallel import Filter
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import Corpus, Options, Recipe
from fairseq_capsule_lab.corpora.splits import draw_splits, write_parallel
from fairseq_capsule_lab.corpora.toy.sampler import sentence_pairs
from fairseq_capsule_lab.errors import whole

MOST = 10_000_000  # pairs of a split
SIZES = {"train": 30_000, "valid": 500, "test": 500}
Pairs = Callable[[int], Iterable[tuple[str, ...]]]  # of a seed


def embedded(
    script: str,
    title: str,
    languages: tuple[str, str],
    pairs: Pairs,
    filters: Sequence[Filter],
    notes: str,
    results: Mapping[str, str],
    settings: Sequence[str] = (),
    vocabulary: int = 0,
    defaults: Mapping[str, str] = {},
) -> Recipe:
    """Return the recipe of a corpus that is drawn from the pairs of a seed."""

    def corpus(options: Options) -> Corpus:
        sizes = {split: whole(f"--{split}", options[split], high=MOST) for split in SIZES}
        raw = partial(write_drawn, drawn=pairs(whole("--seed", options["seed"])), sizes=sizes)
        return Corpus(languages, raw, filters, settings, vocabulary=vocabulary)

    return Recipe(
        script=script,
        title=f"Generate the embedded {title} and binarise it for fairseq, in OUT/bin. Nothing is downloaded.",
        corpus=corpus,
        options={
            **{f"{split} N": f"pairs in {split} ({size:,})" for split, size in SIZES.items()},
            "seed N": "seed of the corpus (1)",
        },
        defaults={**{split: str(size) for split, size in SIZES.items()}, "seed": "1", **defaults},
        notes=notes,
        results=results,
    )


def write_drawn(raw: RawTexts, drawn: Iterable[tuple[str, ...]], sizes: Mapping[str, int]) -> None:
    """Draw the splits, and note their files as sources. Alignments get their own folder."""
    splits = draw_splits(drawn, sizes)
    write_parallel(raw.folder, raw.languages, splits)
    links = {split: [pair[2:] for pair in of_split] for split, of_split in splits.items()}
    if any(links["train"]):
        write_parallel(raw.folder / "alignments", ["align"], links)
    for language in raw.languages:
        raw.note(*sorted(raw.folder.glob(f"*.{language}")))


TOY = embedded(
    script="prepare-toy.sh",
    title="English-German corpus",
    languages=("en", "de"),
    pairs=sentence_pairs,
    filters=[partial(split_into_words, settings={"script": "prepare-toy.sh"})],
    settings=("grammar 2",),
    defaults={"merges": "2500"},
    notes="Punctuation is normalised, words are tokenised (XML escapes kept), case is kept. Joint BPE of 2,500 merges, "
    "joint dictionary.",
    results={
        "OUT/raw": "the generated text and references for sacreBLEU; OUT/tokenised and OUT/bpe: its later stages",
        "OUT/raw/alignments": "SPLIT.align: the words of OUT/tokenised that translate each other, as 0-0 1-2, source "
        "and target, from 0",
        **recipe.CODES,
    },
)
