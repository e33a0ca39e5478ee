"""The user's own parallel text: scripts/prepare.sh."""

import hashlib
import os
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Optional

from fairseq_capsule_lab.corpora import filters, help_texts, recipe
from fairseq_capsule_lab.corpora.held_out import hold_out
from fairseq_capsule_lab.corpora.parallel import Filter
from fairseq_capsule_lab.corpora.preparation import Corpus, Options
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import Page
from fairseq_capsule_lab.corpora.texts import append_good_pairs
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.stages import DIGITS

SCRIPT = "prepare.sh"
SPLITS = ("train", "valid", "test")
# In the order of the settings.
BOUND = (
    *("from", "valid-lines", "test-lines", "seed", "bpe", "merges", "share", "tokenise", "max-length", "ratio"),
    *("codes", "dict", "limit"),
)
OPTIONS = ("source", "target", *BOUND)
FLAGS = ("lower",)
_DEFAULTS = {"merges": "10000", "max-length": "250", "ratio": "9", "seed": "1"}
_TOKENISERS: dict[str, Optional[Filter]] = {
    "moses": filters.moses,
    "jieba": filters.cut_chinese,
    "characters": filters.spell,
    "none": None,
}
_LANGUAGE = re.compile(r"[A-Za-z]([A-Za-z_]*[A-Za-z])?")
HELP = f"""\
Prepare your own parallel text from plain or gzipped files, and binarise it for fairseq, in OUT/bin.

    prepare.sh --source LANG --target LANG --train TEXT --valid TEXT --test TEXT [OPTION VALUE]... OUT

  TEXT           PREFIX or PREFIX,PREFIX,…: the files PREFIX.LANG or PREFIX.LANG.gz of both languages. Or SOURCE
                 TARGET: two files of any name or two addresses (https://...). --train, --valid and --test can be given
                 more than once. Several training texts are concatenated. Several test sets are called test, test1, ...
  --from DIR     a folder with the files of these addresses; without it they are downloaded to OUT/download
  --source LANG --target LANG
                 any names of letters and _, such as en, zh or pt_BR; Moses knows two-letter codes
  --valid-lines N, --test-lines N
                 without --valid or --test, take N pairs out of the training text. None of their source sentences stays
                 in the training text
  --seed N       seed of this choice (1)
{help_texts.BPE}
  --merges N     number of merges of subword-nmt or of pieces of SentencePiece (10,000)
{help_texts.JOINT}
  --tokenise HOW moses, jieba (Chinese by jieba, the other language by Moses), characters or none; or HOW,HOW for source
                 and target. Default: none with SentencePiece, otherwise jieba with Chinese and moses without
  --lower        lower-case everything
  --max-length N, --ratio X
                 leave out training pairs with more than N (250) words in a sentence, or more than X (9) times the
                 other's. With SentencePiece pieces are counted. --max-length none turns both limits off
  --codes FILE --dict FILE
                 OUT/codes (or OUT/sentencepiece.model) and OUT/dict.txt of an earlier run, needed to start from a
                 checkpoint of that run
{help_texts.LIMIT}

Training pairs that are broken (for example not UTF-8) or empty on one side are left out and counted; over 5% of a text
are a warning. In validation and test sets they are errors. Control characters become spaces. Windows line ends and a
byte order mark are removed.

  OUT/bin        binarised: train, valid, test, test1, ...
{help_texts.RAW}
  OUT/codes or OUT/sentencepiece.model, OUT/dict.txt, and OUT/manifest.tsv: command, versions, line counts of every part
                 and stage, hashes

{help_texts.RESUMES}"""


class Text(NamedTuple):
    """A parallel text: two files or two addresses. Without a target the source is the prefix of both files."""

    source: str
    target: str = ""


Texts = dict[str, list[Text]]  # by split


def take_texts(words: Sequence[str]) -> tuple[Texts, list[str]]:
    """Take the options --train, --valid and --test, which have one or two values.

    Returns:
        The texts, and the other words.

    Raises:
        LabError: a value is missing, or two addresses have the same file name.
    """
    texts: Texts = {}
    names: dict[str, str] = {}  # file name: its address
    rest, words = [], list(words)
    while words:
        word = words.pop(0)
        split = word.removeprefix("--")
        if word == split or split not in SPLITS:
            rest.append(word)
            continue
        first, second = (*words[:2], "", "")[:2]
        if not first:
            raise LabError(f"{word} requires a value (see --help)")
        if is_address(first):
            if not is_address(second):
                problem = "this is an address, so give the address of the target language after it"
                raise LabError(f"{word} {first}: {problem}")
            for address in (first, second):
                _name_address(word, address, names)
        elif os.path.isfile(first):
            if not os.path.isfile(second):
                problem = "this is a file, so give the file of the target language after it, or the PREFIX of both"
                raise LabError(f"{word} {first}: {problem}")
        else:
            texts.setdefault(split, []).extend(Text(prefix) for prefix in first.split(","))
            del words[:1]
            continue
        texts.setdefault(split, []).append(Text(first, second))
        del words[:2]
    return texts, rest


def is_address(text: str) -> bool:
    return re.fullmatch(r"[a-z]+://\S+", text) is not None


def _name_address(option: str, address: str, names: dict[str, str]) -> None:
    name = address.rpartition("/")[2]
    if not name:
        raise LabError(f"{option} {address}: this is the address of a folder; give the address of a file")
    if names.setdefault(name, address) != address:
        problem = f"{names[name]} has the same file name; download one of the two and give its file"
        raise LabError(f"{option} {address}: {problem}")


def _corpus(choices: Options, words: Sequence[str]) -> Corpus:
    texts, _ = take_texts(words)
    options = recipe.shared_options(choices, _DEFAULTS)
    source, target = languages = (options["source"], options["target"])
    recipe.require_libraries(options["bpe"], languages)
    for option, language in zip(("--source", "--target"), languages):
        if not language:
            raise LabError(f"name the language by {option}, such as {option} en")
        if not _LANGUAGE.fullmatch(language):
            raise LabError(f"{option} takes letters and _, such as en or pt_BR, not '{language}'")
    if source == target:
        raise LabError(f"--source and --target are both {source}: they name the files, so they must differ")
    recipe.positive("--seed", options["seed"])
    if not texts.get("train"):
        raise LabError("give the training text by --train PREFIX, or --train SOURCE TARGET")
    for split, lines in ((split, options[f"{split}-lines"]) for split in ("valid", "test")):
        if lines:
            recipe.positive(f"--{split}-lines", lines)
        if split in texts and lines:
            raise LabError(f"--{split} and --{split}-lines: give one of the two")
        if split not in texts and not lines:
            raise LabError(
                f"give the {split} pairs by --{split}, or take some of the training text by --{split}-lines N"
            )
    texts = {split: [_locate(split, text, languages) for text in of_split] for split, of_split in texts.items()}
    default = "jieba" if any(map(filters.is_chinese, languages)) else "moses"
    options["tokenise"] = options["tokenise"] or (default if options["bpe"] == "subword-nmt" else "none")
    tokenisers = tokenisers_of(options, languages)
    if "jieba" in options["tokenise"]:
        recipe.require_library("jieba", "chinese")
    addresses = any(is_address(text.source) for of_split in texts.values() for text in of_split)
    if options["from"] and not addresses:
        problem = "is the folder of downloaded files, so give addresses with --train, --valid or --test"
        raise LabError(f"--from {options['from']} {problem}")
    if set(tokenisers) == {"characters"}:
        options["bpe"] = "none"  # characters are subwords already
    settings = [f"{split} {_fingerprint(texts[split])}" for split in SPLITS if texts.get(split)]
    settings += [f"source {source}", f"target {target}", f"lower {options['lower'] or 'no'}"]
    settings += recipe.settings(options, BOUND if addresses else BOUND[1:], languages, recipe.mirror())
    filters_ = changes(languages, tokenisers, bool(options["lower"]))
    raw = partial(write_raw, texts=texts)
    return Corpus(SCRIPT, languages, options, settings, raw, filters_, recipe.mirror())


def _locate(split: str, text: Text, languages: Sequence[str]) -> Text:
    """Return a text with two files or addresses that are valid in any folder."""
    if text.target:
        return Text(*(place if is_address(place) else os.path.realpath(place) for place in text))
    files = []
    for language in languages:
        file = f"{text.source}.{language}"
        place = next((name for name in (file, f"{file}.gz") if os.path.isfile(name)), None)
        if place is None:
            raise LabError(f"--{split}: no file {file} and no {file}.gz")
        files.append(os.path.realpath(place))
    return Text(*files)


def tokenisers_of(options: Options, languages: Sequence[str]) -> list[str]:
    """Return the tokeniser of each language by --tokenise."""
    how = options["tokenise"]
    first, _, second = how.partition(",")
    both = [first, second if "," in how else first]
    for name in both:
        if name not in _TOKENISERS:
            raise LabError(f"--tokenise takes moses, jieba, characters or none, not '{name}'")
        if name == "characters" and options["bpe"] != "subword-nmt":
            raise LabError("--tokenise characters: SentencePiece reads text, not characters")
    if how == "jieba":  # the other language is cut by Moses
        return ["jieba" if filters.is_chinese(language) else "moses" for language in languages]
    return both


def changes(languages: Sequence[str], tokenisers: Sequence[str], lower: bool) -> list[Filter]:
    """Return the filters from raw to tokenised text."""
    tokenise = partial(_tokenise, tokenisers=dict(zip(languages, tokenisers)))
    return [filters.printable, tokenise, *([filters.lower] if lower else [])]


def _tokenise(language: str, line: str, tokenisers: dict[str, str]) -> str:
    change = _TOKENISERS[tokenisers[language]]
    return change(language, line) if change else line


def _fingerprint(texts: Sequence[Text]) -> str:
    """Return a hash of the content of files, and of addresses."""
    digest = hashlib.sha256()
    for place in (place for text in texts for place in text):
        if is_address(place):
            digest.update(f"{place}\n".encode())
            continue
        with open(place, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()[:DIGITS]


def write_raw(raw: RawTexts, options: Options, texts: Texts) -> None:
    """Write the texts, and take validation and test pairs out of the training text."""
    for split in SPLITS:
        for number, text in enumerate(texts.get(split, ())):
            if is_address(text.source):
                files = [raw.archive(address) for address in text]
            else:
                files = [Path(place) for place in text]
                for file in files:
                    raw.note(file, whole_path=True)
            if split == "train":
                raw.append(*files)
            else:
                append_good_pairs(files, raw.files(f"{split}{number or ''}"))
    if not raw.files("train")[0].stat().st_size:
        counted = [line.split("\t")[1] for line in (raw.folder / "PARTS").read_text().splitlines()]
        raise LabError(f"no pair of the training text can be used ({' '.join(counted)}): check that the text is UTF-8")
    sizes = {split: int(options.get(f"{split}-lines") or 0) for split in ("valid", "test")}
    if any(sizes.values()):
        hold_out(raw.folder, raw.languages, sizes, int(options["seed"]))


OWN = Page(SCRIPT, HELP, OPTIONS, _corpus, FLAGS)
