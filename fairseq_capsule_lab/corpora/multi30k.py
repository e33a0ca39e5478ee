"""Multi30k task 1 (Elliott et al. 2016): scripts/prepare-multi30k.sh."""

import re
from collections.abc import Sequence
from functools import partial

from fairseq_capsule_lab.corpora import own, recipe
from fairseq_capsule_lab.corpora.help_texts import LIMIT, RESUMES
from fairseq_capsule_lab.corpora.preparation import Corpus, Options
from fairseq_capsule_lab.corpora.recipe import Page
from fairseq_capsule_lab.errors import LabError

SCRIPT = "prepare-multi30k.sh"
OPTIONS = ("pair", "from", "bpe", "merges", "share", "codes", "dict", "limit")
ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
MERGES = "10000"
HELP = f"""\
Prepare Multi30k task 1 from the raw archives, and binarise it for fairseq, in OUT/bin.

    prepare-multi30k.sh [--pair en-de] [OPTION VALUE]... OUT

  --pair SOURCE-TARGET
                 two of en, de, fr and cs (en-de). fairseq can train both directions. A configuration without languages
                 takes the first as the source
  --from DIR     the folder of {{train,val,test_2016_flickr,test_2017_flickr,test_2017_mscoco}}.LANG.gz;
                 without it they are downloaded (MIRROR=URL: from there instead of from the project)
  --bpe HOW, --merges N, --share HOW
                 the options of prepare.sh (subword-nmt, 10,000 and joint)
  --codes FILE --dict FILE
                 BPE codes and dictionary of an earlier run, needed to start from a checkpoint of that run
{LIMIT}

Punctuation is normalised, words are tokenised (XML escapes kept) and lower-cased. Joint BPE of 10,000 merges, joint
dictionary.

  OUT/bin        binarised: train, valid, test (2016 Flickr), test1 (2017 Flickr), test2 (2017 MSCOCO). Czech has no
                 text of 2017; its test1 is 2018 Flickr
  OUT/raw        the original text and references for sacreBLEU; OUT/tokenised and OUT/bpe: its later stages
  OUT/codes, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts, hashes

{RESUMES}"""


def _corpus(choices: Options, words: Sequence[str]) -> Corpus:
    options = recipe.shared_options(choices, {"pair": "en-de", "merges": MERGES})
    pair = options["pair"]
    source, _, target = pair.partition("-")
    if not re.fullmatch(r"(en|de|fr|cs)-(en|de|fr|cs)", pair) or source == target:
        raise LabError(f"--pair takes two of en, de, fr and cs, such as en-fr, not '{pair}'")
    recipe.require_libraries(options["bpe"], (source, target))
    options["tokenise"] = "moses" if options["bpe"] == "subword-nmt" else "none"
    base = recipe.mirror() or ADDRESS
    tests = ["2016_flickr", "2018_flickr"] if "cs" in pair.split("-") else ["2016_flickr", "2017_flickr", "2017_mscoco"]
    stems = {"train": ["train"], "valid": ["val"], "test": [f"test_{name}" for name in tests]}
    texts = {
        split: [own.Text(f"{base}/{name}.{source}.gz", f"{base}/{name}.{target}.gz") for name in names]
        for split, names in stems.items()
    }
    # Options with their default values are no settings, so that older folders stay valid.
    bound = ["from", "limit", "codes", "dict"]
    bound += ["bpe", "tokenise"] if options["bpe"] != "subword-nmt" else []
    bound += ["merges"] if options["merges"] != MERGES else []
    bound += ["share"] if options["share"] != "joint" else []
    settings = [f"pair {pair}"] if pair != "en-de" else []
    settings += recipe.settings(options, bound, (source, target), base)
    changes = own.changes((source, target), [options["tokenise"]] * 2, lower=True)
    raw = partial(own.write_raw, texts=texts)
    return Corpus(SCRIPT, (source, target), options, settings, raw, changes, base)


MULTI30K = Page(SCRIPT, HELP, OPTIONS, _corpus)
