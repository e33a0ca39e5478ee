"""The user's own parallel text: scripts/prepare.sh."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from capsule_routing.errors import UserError
from capsule_routing.text.folders import settings_of
from capsule_routing.text.languages import is_chinese
from capsule_routing.text.preparation import SPACE
from fairseq_capsule_lab import defaults
from fairseq_capsule_lab.corpora import recipe
from fairseq_capsule_lab.corpora.held_out import hold_out
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import Corpus, Find, Option, Options, Recipe, Text, Words
from fairseq_capsule_lab.corpora.round_trip import evenly_spaced
from fairseq_capsule_lab.corpora.texts import encoded, fault, read_text, side_of
from fairseq_capsule_lab.manifests import fingerprint

SPLITS = ("train", "valid", "test")
UNBOUND = (*SPLITS, "reference", "protect", "source", "target", "lower")  # they stand before the other settings
CONTROL_SYMBOLS = ("<s>", "<pad>", "</s>", "<unk>")
_TOKENISERS = ("moses", "jieba", "characters", "none")
_LANGUAGE = re.compile(r"[A-Za-z]([A-Za-z_]*[A-Za-z])?")

Texts = dict[str, Sequence[Text]]  # by split


def is_address(text: str) -> bool:
    return re.fullmatch(r"[a-z]+://\S+", text) is not None


def _corpus(options: Options) -> Corpus:
    source, target = languages = (options["source"], options["target"])
    for option, language in zip(("--source", "--target"), languages):
        if not _LANGUAGE.fullmatch(language):
            raise UserError(f"{option} takes letters and _, such as en or pt_BR, not '{language}'")
    if source == target:
        raise UserError(f"--source and --target are both {source}: they name the files, so they must differ")
    protected = _protected(options)
    texts = _texts(options)
    for text in chain.from_iterable(texts.values()):
        for place, other in zip(text, (target, source)):
            if place.removesuffix(".gz").endswith(f".{other}"):
                raise UserError(f"{place}: the text of {other}; give that of {source} first, then that of {target}")
    options["bpe"] = options["bpe"] or "subword-nmt"
    default = "jieba" if any(map(is_chinese, languages)) else "moses"
    options["tokenise"] = options["tokenise"] or (default if options["bpe"] == "subword-nmt" else "none")
    tokenisers = _tokenisers(options)
    if "jieba" in options["tokenise"]:
        recipe.require_library("jieba", "chinese")
    if set(tokenisers) == {"characters"}:
        options["bpe"] = "none"  # characters are subwords already
    addresses = any(is_address(place) for of_split in texts.values() for text in of_split for place in text)
    if options["from"] and not addresses:
        problem = "is the folder of downloaded files, so give addresses with --train, --valid or --test"
        raise UserError(f"--from {options['from']} {problem}")
    unbound = UNBOUND if addresses else (*UNBOUND, "from")
    bound = [option.name for option in OWN.options if option.name not in unbound]
    sizes = {split: options[f"{split}-lines"] or 0 for split in ("valid", "test")}
    reference = options["reference"] or ""
    raw = partial(write_raw, texts=texts, sizes=sizes, seed=options["seed"], reference=reference)
    cut = [side for side, name in enumerate(tokenisers) if name in ("moses", "jieba")]
    sample = partial(_sample, texts=texts["train"], languages=languages, sides=cut, options=options)
    return Corpus(languages, raw, _settings(options, texts, protected), bound, sample=sample)


def _settings(options: Options, texts: Texts, protected: Sequence[str]) -> dict[str, str]:
    """Return what a second run must have like the first. Of files their content counts, of addresses their text."""
    contents = {
        split: [f"{place}\n".encode() if is_address(place) else Path(place) for text in of_split for place in text]
        for split, of_split in texts.items()
    }
    return {
        **{split: fingerprint(*contents[split]) for split in SPLITS if split in texts},
        **({"reference": options["reference"]} if options["reference"] else {}),
        **({"protect": " ".join(protected)} if protected else {}),
        **{side: options[side] for side in ("source", "target")},
        "lower": "yes" if options["lower"] else "no",
    }


def _texts(options: Options) -> Texts:
    """Return the texts of the splits that have any."""
    texts: Texts = {split: options[split] for split in SPLITS if options[split]}
    for split in ("valid", "test"):
        lines = options[f"{split}-lines"]
        if split in texts and lines:
            raise UserError(f"--{split} and --{split}-lines: give one of the two")
        if split not in texts and not lines:
            other = f"take some of the training text by --{split}-lines N"
            raise UserError(f"give the {split} pairs by --{split}, or {other}")
    addresses: dict[str, str] = {}  # by the name of the download
    for split, of_split in texts.items():
        for address in filter(is_address, chain.from_iterable(of_split)):
            name = address.rpartition("/")[2]
            if not name:
                raise UserError(f"--{split} {address}: the address of a folder; give the address of a file")
            if addresses.setdefault(name, address) != address:
                problem = f"{addresses[name]} has the same file name; download one of the two and give its file"
                raise UserError(f"--{split} {address}: {problem}")
    return texts


def _protected(options: Options) -> Sequence[str]:
    """Return the words of --protect, after a check; and refuse an earlier run that protects others."""
    protected: Sequence[str] = options["protect"]
    for word in protected:
        if len(word.split()) != 1 or word.split()[0] != word or SPACE in word or word in CONTROL_SYMBOLS:
            problem = "a word such as <BT>, without spaces, that is no symbol of fairseq"
            raise UserError(f"--protect takes {problem}, not '{word}'")
    earlier = settings_of(Path(options["codes"] or options["dict"] or "").parent).get("protect", "").split()
    left_out = [word for word in earlier if word not in protected]
    if left_out and (options["codes"] or options["dict"]):
        raise UserError(f"the run of --dict protects {' '.join(left_out)}: give --protect for each of these too")
    return protected


def _tokenisers(options: Options) -> list[str]:
    """Return the values of --tokenise for source and target, after a check."""
    how = options["tokenise"]
    first, _, second = how.partition(",")
    both = [first, second if "," in how else first]
    for name in both:
        if name not in _TOKENISERS:
            raise UserError(f"--tokenise takes moses, jieba, characters or none, not '{name}'")
        if name == "characters" and options["bpe"] != "subword-nmt":
            raise UserError("--tokenise characters: SentencePiece reads text, not characters")
    return both


def _sample(
    find: Find, texts: Sequence[Text], languages: Sequence[str], sides: Sequence[int], options: Options
) -> dict[str, Sequence[str]]:
    """Return lines of the training text in some languages, without protected words."""
    sampled: dict[str, Sequence[str]] = {}
    for side in sides:
        files = (find(text[side]) if is_address(text[side]) else Path(text[side]) for text in texts)
        read = (encoded(side_of(read_text(file), side == 0, options["reference"] or "")) for file in files)
        lines = evenly_spaced(islice(chain.from_iterable(read), options["limit"]))
        texts_of_side = (line.decode() for line in lines if not fault(line))
        sampled[languages[side]] = [_without(options["protect"], line) for line in texts_of_side]
    return sampled


def _without(protected: Sequence[str], line: str) -> str:
    return " ".join(word for word in line.split(" ") if word not in protected)


def write_raw(
    raw: RawTexts,
    texts: Mapping[str, Sequence[Text]],
    sizes: Mapping[str, int] = {},
    seed: int = 1,
    reference: str = "",
) -> None:
    """Write the texts, and take validation and test pairs of these numbers out of the training text.

    `reference` is the one to take of a file with several.
    """
    for split in SPLITS:
        for number, text in enumerate(texts.get(split, ())):
            files = []
            for place in text:
                if is_address(place):
                    files.append(raw.archive(place))
                else:
                    files.append(Path(place))
                    raw.note(Path(place), whole_path=True)
            if split == "train":
                raw.append(*files)
            else:
                raw.append_held_out(f"{split}{number or ''}", files, reference, raw.languages)
    if not raw.files("train")[0].stat().st_size:
        raise UserError("no pair of the training text can be used: check that it is parallel, and UTF-8")
    if any(sizes.values()):
        hold_out(raw.folder, raw.languages, sizes, seed)


REFERENCE = "Of an SGML or XML file of WMT with several references, the name of the one to take, such as A."
PROTECT = (
    "A word that stays whole, such as a tag <BT> or <2de>; may be repeated. It must be in the training text, and in "
    "the one of --dict."
)
SOURCE = "Any name of letters and _, such as en, zh or pt_BR; Moses knows two-letter codes."
FROM = "A folder with the files of these addresses; without it they are downloaded to OUT/download."
TOKENISE = (
    "moses, jieba (Chinese by jieba, the other language by Moses), characters or none; or HOW,HOW for source and "
    "target. Default: none with SentencePiece, otherwise jieba with Chinese and moses without."
)
HELD_OUT = "Without --valid, take N pairs out of the training text. Pairs with the same source sentence leave it too."
TOOL = "The tool; sentencepiece is its unigram model. Default: subword-nmt, sentencepiece if Moses damages a language."

OWN = Recipe(
    script="prepare.sh",
    title="Prepare your own parallel text from plain or gzipped files, and binarise it for fairseq, in OUT/bin.",
    corpus=_corpus,
    options=[
        Option("source", str, "LANG", SOURCE, required=True),
        Option("target", str, "LANG", "The other language.", required=True),
        Option("train", Text, "SOURCE TARGET", "The training text. May be repeated.", required=True),
        Option("valid", Text, "SOURCE TARGET", "The validation text. May be repeated."),
        Option("test", Text, "SOURCE TARGET", "The test text. May be repeated."),
        Option("reference", str, "NAME", REFERENCE),
        Option("protect", Words, "WORD", PROTECT),
        Option("lower", bool, "", "Lower-case everything."),
        Option("from", Path, "DIR", FROM),
        Option("valid-lines", int, "N", HELD_OUT),
        Option("test-lines", int, "N", "The same without --test."),
        Option("seed", int, "N", "Seed of this choice.", 1),
        Option("bpe", recipe.TOOLS, "", TOOL),
        recipe.merges_option(defaults.MERGES),
        recipe.share_option("joint"),
        Option("tokenise", str, "HOW", TOKENISE),
        *recipe.length_options(defaults.MAX_LENGTH),
        recipe.CODES_FILE,
        recipe.DICT_FILE,
        recipe.UNKNOWN_UP_TO,
        recipe.LIMIT,
    ],
    notes="SOURCE and TARGET are two parallel texts: files of any name, plain or gzipped, or addresses (https://...). "
    "A test set of WMT, .sgm or .xml, is paired by document and segment; XML of 2021 or later is given for both. "
    "Several training texts are concatenated. Several test sets are called test, test1, ... Training pairs that "
    "are broken (for example not UTF-8) or empty on one side are left out and counted; over 5% of a text are a "
    "warning. In validation and test sets they are errors. Control characters become spaces. Windows line ends and a "
    "byte order mark are removed.",
    results={
        "OUT/raw": recipe.RAW,
        "OUT/codes or OUT/sentencepiece.model, OUT/dict.txt": "the merges or pieces, and the dictionary",
    },
    sets="train, valid, test, test1, ...",
)
