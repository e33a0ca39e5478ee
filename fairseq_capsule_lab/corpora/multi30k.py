"""Multi30k task 1 (Elliott et al. 2016): scripts/prepare-multi30k.sh."""

from functools import partial
from pathlib import Path

from capsule_routing.errors import UserError
from fairseq_capsule_lab.corpora import own, recipe
from fairseq_capsule_lab.corpora.archives import mirror
from fairseq_capsule_lab.corpora.recipe import Corpus, Option, Options, Recipe

ADDRESS = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw"
DEFAULTS = {"pair": "en-de", "merges": 10_000, "bpe": "subword-nmt", "share": "joint"}
PAIR = (
    "Two of en, de, fr and cs. fairseq can train both directions. A configuration without languages takes the first as "
    "the source."
)
FROM = (
    "The folder of {train,val,test_2016_flickr,test_2017_flickr,test_2017_mscoco}.LANG.gz; without it they are "
    "downloaded (MIRROR=URL: from there instead of from the project)."
)


def _corpus(options: Options) -> Corpus:
    pair = options["pair"]
    source, _, target = pair.partition("-")
    if {source, target} - {"en", "de", "fr", "cs"} or source == target:
        raise UserError(f"--pair takes two of en, de, fr and cs, such as en-fr, not '{pair}'")
    options["tokenise"] = "moses" if options["bpe"] == "subword-nmt" else "none"
    tests = ["2016_flickr", "2018_flickr"] if "cs" in pair.split("-") else ["2016_flickr", "2017_flickr", "2017_mscoco"]
    stems = {"train": ["train"], "valid": ["val"], "test": [f"test_{name}" for name in tests]}
    base = mirror() or ADDRESS
    texts = {
        split: [(f"{base}/{name}.{source}.gz", f"{base}/{name}.{target}.gz") for name in names]
        for split, names in stems.items()
    }
    # Options with their default values are no settings.
    changed = [name for name, value in DEFAULTS.items() if options[name] != value]
    bound = ["from", "limit", "codes", "dict", *(["bpe", "tokenise"] if "bpe" in changed else [])]
    bound += [name for name in ("merges", "share") if name in changed]
    settings = {"pair": pair} if "pair" in changed else {}
    return Corpus((source, target), partial(own.write_raw, texts=texts), settings, bound, ADDRESS)


MULTI30K = Recipe(
    script="prepare-multi30k.sh",
    title="Prepare Multi30k task 1 from the raw archives, and binarise it for fairseq, in OUT/bin.",
    corpus=_corpus,
    options=[
        Option("pair", str, "SOURCE-TARGET", PAIR, DEFAULTS["pair"]),
        Option("from", Path, "DIR", FROM),
        recipe.BPE,
        recipe.merges_option(10_000),
        recipe.share_option("joint"),
        recipe.CODES_FILE,
        recipe.DICT_FILE,
        recipe.UNKNOWN_UP_TO,
        recipe.LIMIT,
    ],
    notes="Punctuation is normalised, words are tokenised (XML escapes kept) and lower-cased.",
    results={
        "OUT/raw": "the original text and references for sacreBLEU; OUT/tokenised and OUT/bpe: its later stages",
        **recipe.CODES,
    },
    sets="train, valid, test (2016 Flickr), test1 (2017 Flickr), test2 (2017 MSCOCO). Czech has no text of 2017; its "
    "test1 is 2018 Flickr",
)
