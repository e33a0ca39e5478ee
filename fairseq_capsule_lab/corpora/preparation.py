"""The preparation of a corpus whose choices are made: stages from raw text to binarised data."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from fairseq_capsule_lab.corpora import filters, subwords
from fairseq_capsule_lab.corpora.archives import Archives
from fairseq_capsule_lab.corpora.parallel import Filter, filter_folder
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.texts import copy_similar_pairs
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.processes import PLAIN, command_line, cores, output_of
from fairseq_capsule_lab.stages import Folder, Stage

Options = Mapping[str, str]  # by name; "" for what is neither given nor has a default
MOST_UNKNOWN = 5  # percent of the training text; more is the dictionary of another corpus
LARGE = 1000  # characters; a smaller dictionary may be meant to lack many
SPECIALS = 4  # symbols that fairseq counts too
_UNKNOWN = re.compile(r"/train\.[A-Za-z_]+: .* ([0-9.e+-]+)% replaced")


@dataclass(frozen=True)
class Corpus:
    """A corpus and what a user chose.

    Attributes:
        script: the name of its script, the first line of the settings.
        options: the final values of all options that corpora share, and of its own.
        settings: the lines after the first one.
        raw: fills the first folder.
        filters: from raw to tokenised text.
        mirror: the address to download from instead of the archives' own, or "".
        vocabulary: the largest number of characters in the dictionary, if the tokens are characters.
    """

    script: str
    languages: tuple[str, str]
    options: Options
    settings: Sequence[str]
    raw: Callable[[RawTexts, Options], None]
    filters: Sequence[Filter]
    mirror: str = ""
    vocabulary: int = 0

    def earlier(self, option: str, side: str) -> str:
        """Return the path of a side's file of --codes or --dict, or ""."""
        file = self.options[option]
        return os.path.realpath(of_side(file, side)) if file else ""


def sides_of(languages: tuple[str, str], options: Options) -> Sequence[str]:
    """Return what has its own merges and dictionary: each language, or "" for both together."""
    return languages if options["share"] == "separate" else ("",)


def of_side(file: str, side: str) -> str:
    """Return the name of a side's file: codes → codes.LANG; dict.txt → dict.LANG.txt; the name itself for both."""
    ending = next((ending for ending in (".txt", ".model") if file.endswith(ending)), "")
    return f"{file.removesuffix(ending)}.{side}{ending}" if side else file


def prepare(corpus: Corpus, program: str, words: Sequence[str], out: str) -> None:
    """Make what is missing in the folder `out`, and say what is ready.

    Args:
        program, words: what the user called, for the manifest and for warnings.

    Raises:
        LabError: the folder has other settings, or a stage failed.
    """
    with Folder(out, corpus.script).locked() as folder:
        folder.keep_settings(corpus.settings)
        try:
            folder.run(*_stages(corpus, folder.path), folder.manifest(command_line(program, words)))
        except KeyboardInterrupt:
            raise LabError("interrupted; the same command resumes") from None
        print(f"ready: {folder.path}/bin")
        parts = folder.path / "raw/PARTS"
        for line in parts.read_text(errors="replace").splitlines() if parts.exists() else []:
            if line.count("\t") > 1:
                print(f"{program}: warning: {line.split(chr(9))[2]}", file=sys.stderr)


def _stages(corpus: Corpus, path: Path) -> list[Stage]:
    options, sides = corpus.options, sides_of(corpus.languages, corpus.options)

    def raw(part: Path, log: BinaryIO) -> None:
        archives = Archives(Path(options["from"]) if options["from"] else None, corpus.mirror, path / "download")
        corpus.raw(RawTexts(part, corpus.languages, archives, int(options["limit"] or 0)), options)

    text = "characters" if corpus.vocabulary else "tokenised"
    stages = [Stage("raw", raw), _filter_stage(text, path / "raw", corpus.filters)]
    late = options["bpe"].startswith("sentencepiece")  # such text may have no words, so its pieces are counted
    if options["max-length"] and not late:
        stages.append(_clean_stage(corpus, path / text))
        text = "clean"
    if options["bpe"] != "none":
        name = "codes" if options["bpe"] == "subword-nmt" else "sentencepiece.model"
        codes = {side: path / of_side(name, side) for side in sides}
        stages += [_codes_stage(corpus, path / text, side, file.name) for side, file in codes.items()]
        split = filters.subwords if options["bpe"] == "subword-nmt" else filters.pieces
        of_language = {language: str(codes.get(language) or codes[""]) for language in corpus.languages}
        stages.append(_filter_stage("bpe", path / text, [partial(split, codes=of_language)]))
        text = "bpe"
    if options["max-length"] and late:
        stages.append(_clean_stage(corpus, path / text))
        text = "clean"
    stages.append(_binarised_stage(corpus, path, text))
    for side in sides:
        dictionary = path / f"bin/dict.{side or corpus.languages[0]}.txt"
        stages.append(Stage(of_side("dict.txt", side), partial(_copy, dictionary)))
    return stages


def _filter_stage(name: str, source: Path, changes: Sequence[Filter]) -> Stage:
    return Stage(name, lambda part, log: filter_folder(source, part, changes, log))


def _copy(file: Path | str, part: Path, log: BinaryIO) -> None:
    shutil.copyfile(file, part)


def _clean_stage(corpus: Corpus, source: Path) -> Stage:
    longest, ratio = corpus.options["max-length"], corpus.options["ratio"]

    def clean(part: Path, log: BinaryIO) -> None:
        part.mkdir()
        for file in sorted((*source.glob("valid*.*"), *source.glob("test*.*"))):
            shutil.copyfile(file, part / file.name)
        inputs, outputs = ([folder / f"train.{language}" for language in corpus.languages] for folder in (source, part))
        copy_similar_pairs(inputs, outputs, int(longest), float(ratio or 0))
        if not outputs[0].stat().st_size:
            raise LabError(
                f"no training pair passes --max-length {longest} and --ratio {ratio or 'none'}: give larger ones"
            )

    return Stage("clean", clean)


def _codes_stage(corpus: Corpus, source: Path, side: str, name: str) -> Stage:
    texts = [source / f"train.{language}" for language in ((side,) if side else corpus.languages)]
    bpe, merges, earlier = corpus.options["bpe"], int(corpus.options["merges"]), corpus.earlier("codes", side)

    def learn(part: Path, log: BinaryIO) -> None:
        if bpe == "subword-nmt":
            subwords.learn_merges(texts, part, merges, log)
        else:
            subwords.learn_pieces(texts, part, "unigram" if bpe == "sentencepiece" else "bpe", merges, log)

    return Stage(name, partial(_copy, earlier) if earlier else learn)


def _binarised_stage(corpus: Corpus, path: Path, text: str) -> Stage:
    def binarise(part: Path, log: BinaryIO) -> None:
        words = ["fairseq-preprocess", "--source-lang", corpus.languages[0], "--target-lang", corpus.languages[1]]
        words += _dictionary_options(corpus)
        for split, option in (("train", "--trainpref"), ("valid*", "--validpref"), ("test*", "--testpref")):
            names = sorted(file.name for file in (path / text).glob(f"{split}.{corpus.languages[0]}"))
            words += [option, ",".join(f"{text}/{name.rpartition('.')[0]}" for name in names)]  # bpe/test,bpe/test1,…
        words += ["--workers", str(cores()), "--destdir", part.name]
        for line in output_of(words, log, path, {**os.environ, **PLAIN}):
            log.write(line)
            log.flush()
            if sys.stderr.isatty():
                sys.stderr.write(line.decode(errors="replace"))
        _require_known(corpus, part)

    return Stage("bin", binarise)


def _dictionary_options(corpus: Corpus) -> list[str]:
    source, *target = (corpus.earlier("dict", side) for side in sides_of(corpus.languages, corpus.options))
    words = ["--srcdict", source] if source else []
    if target:
        return [*words, "--tgtdict", *target] if source else []
    # A padding factor of 1 adds no filler words.
    limits = ["--nwordssrc", str(corpus.vocabulary + SPECIALS), "--padding-factor", "1"] if corpus.vocabulary else []
    return ["--joined-dictionary", *limits, *words]


def _require_known(corpus: Corpus, binarised: Path) -> None:
    """Refuse a dictionary that lacks more than 5% of the training text."""
    advice = "give --codes and --dict of the same run" if corpus.options["codes"] else "give --dict of the same run"
    if corpus.vocabulary:
        advice, earlier = "give --dict of a run on this corpus, or none", corpus.earlier("dict", "")
        if not earlier or Path(earlier).read_bytes().count(b"\n") < LARGE:
            return
    lines = (binarised / "preprocess.log").read_text(errors="replace").splitlines()
    shares = (_UNKNOWN.search(line) for line in lines)
    if any(share and float(share[1]) > MOST_UNKNOWN for share in shares):
        raise LabError(f"over {MOST_UNKNOWN}% of the training text is unknown to the dictionary: {advice}")
