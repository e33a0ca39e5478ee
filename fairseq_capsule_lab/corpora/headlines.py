"""The embedded corpus of Chinese news with headlines: scripts/prepare-headlines.sh."""

from collections.abc import Sequence
from functools import partial

from fairseq_capsule_lab.corpora.chinese_headlines.articles import article_pairs
from fairseq_capsule_lab.corpora.help_texts import RESUMES
from fairseq_capsule_lab.corpora.recipe import Options, Page
from fairseq_capsule_lab.corpora.summaries import VOCABULARY, prepare_characters
from fairseq_capsule_lab.corpora.toy import recipe as toy
from fairseq_capsule_lab.processes import require_tools

SCRIPT = "prepare-headlines.sh"
HELP = f"""\
Generate the embedded summarisation corpus, short Chinese news with headlines, and binarise it for fairseq, in OUT/bin.
Nothing is downloaded.

    prepare-headlines.sh [--train N] [--valid N] [--test N] [--seed N] OUT

  --train N, --valid N, --test N
                 pairs of each split (30,000, 500 and 500)
  --seed N       seed of the corpus (1)

The tokens are characters. Source and target are called `text` and `summary` and share a dictionary.

  OUT/bin        binarised: train, valid, test
  OUT/raw        the generated text and references for ROUGE; OUT/characters: its next stage
  OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes

{RESUMES}"""


def prepare_headlines(program: str, words: Sequence[str], given: Options, out: str) -> None:
    """Prepare the embedded headlines in the folder `out`; see `Recipe.prepare`."""
    options = {name: given[name] or toy.TOY.defaults[name] for name in toy.OPTIONS}
    toy.require_sizes(options)
    require_tools("fairseq-preprocess")
    raw = partial(toy.write_drawn, pairs=article_pairs, options=options)
    settings = [f"{name} {options[name]}" for name in toy.OPTIONS]
    prepare_characters(SCRIPT, settings, raw, VOCABULARY, None, program, words, out)


HEADLINES = Page(SCRIPT, HELP, toy.OPTIONS, prepare_headlines)
