"""Facts about data: how the text of a prepared folder was made, and which languages a binarised folder has."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fairseq_capsule_lab.errors import LabError

_BINARISED = re.compile(r"[^.]+\.([^.-]+)-([^.-]+)\.[^.]+\.bin")
CHINESE = ("zh", "zho", "chi", "cmn", "yue")
# What a script does to text without a setting for it.
SCRIPTS: Mapping[str, Mapping[str, str]] = {
    **dict.fromkeys(("prepare-headlines.sh", "prepare-lcsts.sh"), {"tokenise": "characters"}),
    **dict.fromkeys(("prepare-multi30k.sh", "prepare-nist-zh-en.sh"), {"lower": "yes"}),
    **dict.fromkeys(("prepare-wmt14-en-de.sh", "prepare-wmt14-en-fr.sh"), {"dashes": "split"}),
    **dict.fromkeys(("prepare.sh", "prepare-toy.sh", "prepare-wmt16-en-ro.sh", "prepare-wmt17-zh-en.sh"), {}),
}


@dataclass(frozen=True)
class SidePreparation:
    """The preparation of one language."""

    language: str  # as the tokeniser knows it: `pt` for `pt_BR`
    tokenizer: str  # moses, jieba, characters or none
    aggressive_dash_splits: bool  # an option of Moses


@dataclass(frozen=True)
class Preparation:
    """The preparation of text in both languages."""

    source: SidePreparation
    target: SidePreparation
    lowercase: bool  # of tokenised text
    subwords: str  # subword-nmt, sentencepiece or none
    codes: Path | None  # the file that splits the source into subwords


def settings_of(folder: Path) -> dict[str, str]:
    """The settings of a prepared folder; empty if it has none."""
    file = folder / "settings"
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines() if file.is_file() else []
    return dict(line.split(" ", 1) for line in lines if " " in line)


def require_prepared(folder: Path) -> None:
    """Refuse a folder that is not the OUT of a prepare script."""
    if settings_of(folder).get("script") not in SCRIPTS or not (folder / "bin").is_dir():
        raise LabError(f"{folder}: no 'bin' and 'settings' of a prepare script; name the OUT of a prepare script")


def preparation(folder: Path, source: str, target: str) -> Preparation:
    """How a prepare script made the text of a translation direction; a LabError if none made the folder."""
    require_prepared(folder)
    settings = settings_of(folder)
    script = settings["script"]
    if script == "prepare-wmt16-en-ro.sh" and source == "ro":
        raise LabError(f"{folder}: {script} changes the letters of Romanian, which no tokeniser does; use en-ro")
    known = {**SCRIPTS[script], **settings}
    sides = _side(known, source), _side(known, target)
    lowercase = known.get("lower") == "yes"
    if all(side.tokenizer == "characters" for side in sides):
        return Preparation(*sides, lowercase, "none", None)
    pieces = known.get("bpe", "").startswith("sentencepiece")
    stem, ending = ("sentencepiece", ".model") if pieces else ("codes", "")
    files = [folder / f"{stem}{ending}", folder / f"{stem}.{source}{ending}"]
    codes = next((file for file in files if file.is_file()), None)
    if codes is None:
        raise LabError(f"{files[0]}: missing; prepare the data again")
    return Preparation(*sides, lowercase, "sentencepiece" if pieces else "subword-nmt", codes)


def _side(known: Mapping[str, str], language: str) -> SidePreparation:
    # Two values belong to --source and --target of prepare.sh. Either can be the source here.
    tokenizers = known.get("tokenise", "").split(",")
    tokenizer = tokenizers[0] if known.get("source", language) == language else tokenizers[-1]
    name = language.partition("_")[0].lower()
    return SidePreparation(name, tokenizer or ("jieba" if name in CHINESE else "moses"), known.get("dashes") == "split")


def pairs(binarised: Path, split: str = "train") -> list[tuple[str, str]]:
    """The language pairs of a binarised folder, from the names of the files of a split (`*`: of any)."""
    matches = (_BINARISED.fullmatch(path.name) for path in binarised.glob(f"{split}.*.bin"))
    return sorted({(match[1], match[2]) for match in matches if match})


def other_pair(binarised: Path, source: str, target: str) -> tuple[str, str] | None:
    """The pair of the folder, in the direction closer to the named pair; None if the folder has the named pair.

    In fairseq, either language of a pair can be the source.
    """
    directions = [pair for first, second in pairs(binarised) for pair in ((first, second), (second, first))]
    if not directions or (source, target) in directions:
        return None
    return max(directions, key=lambda pair: (pair[0] == source) + (pair[1] == target))


def dictionaries_differ(binarised: Path, source: str, target: str) -> bool:
    """Whether the dictionaries of two languages differ in their words or their order. A missing one is ignored."""
    files = [path for language in (source, target) if (path := binarised / f"dict.{language}.txt").is_file()]
    # A line is a word and its count.
    words = {tuple(line.rpartition(b" ")[0] for line in path.read_bytes().splitlines()) for path in files}
    return len(words) > 1
