"""The preparation of a corpus whose choices are made: stages from raw text to binarised data."""

import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Optional

from fairseq_capsule_lab.corpora import filters
from fairseq_capsule_lab.corpora.archives import Archives
from fairseq_capsule_lab.corpora.parallel import Filter, filter_folder
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.subwords import learn_merges, learn_pieces
from fairseq_capsule_lab.corpora.texts import copy_similar_pairs
from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.processes import PLAIN, command_line, cores, output_of
from fairseq_capsule_lab.stages import Folder, Stage

MOST_UNKNOWN = 5  # percent of the training text; more is the dictionary of another corpus
_UNKNOWN = re.compile(r"/train\.[A-Za-z_]+: .* ([0-9.e+-]+)% replaced")


@dataclass(frozen=True)
class Corpus:
    """A corpus and what a user chose.

    Attributes:
        script: the name of its script, the first line of the settings.
        settings: the lines after that.
        raw: fills the first folder.
        filters: from raw to tokenised text.
        given, mirror: see `Archives`.
        limit: the largest number of training pairs; 0: all.
        bpe: subword-nmt, sentencepiece, sentencepiece-bpe or none.
        merges: the number of merges or pieces.
        separate: whether each language has its own merges and dictionary.
        longest, ratio: limits of training pairs, in words; None: no limits.
        codes, dictionary: of an earlier run, with the name of joint ones.
    """

    script: str
    settings: Sequence[str]
    languages: tuple[str, str]
    raw: Callable[[RawTexts], None]
    filters: Sequence[Filter]
    given: Optional[Path]
    mirror: str
    limit: int
    bpe: str
    merges: int
    separate: bool
    longest: Optional[int]
    ratio: str
    codes: Optional[Path]
    dictionary: Optional[Path]

    @property
    def sides(self) -> Sequence[str]:
        """What has its own merges and dictionary: each language, or "" for both together."""
        return self.languages if self.separate else ("",)

    def languages_of(self, side: str) -> Sequence[str]:
        return (side,) if side else self.languages

    @property
    def codes_name(self) -> str:
        return "codes" if self.bpe == "subword-nmt" else "sentencepiece.model"


def of_side(file: str, side: str) -> str:
    """Return the name of a side's file: codes → codes.LANG; dict.txt → dict.LANG.txt; the name itself for both."""
    ending = next((ending for ending in (".txt", ".model") if file.endswith(ending)), "")
    return f"{file.removesuffix(ending)}.{side}{ending}" if side else file


def prepare(corpus: Corpus, program: str, words: Sequence[str], out: str) -> None:
    """Make what is missing in the folder `out`.

    Args:
        program, words: what the user called, for the manifest and for warnings.

    Raises:
        LabError: the folder has other settings, or a stage failed.
    """
    run(corpus.script, corpus.settings, partial(_stages, corpus), program, words, out)


def run(
    script: str,
    settings: Sequence[str],
    stages: Callable[[Folder], Sequence[Stage]],
    program: str,
    words: Sequence[str],
    out: str,
) -> None:
    """Run stages and the manifest in the folder `out`, and say what is ready."""
    with Folder(out, script).locked() as folder:
        folder.keep_settings(settings)
        try:
            folder.run(*stages(folder), folder.manifest(command_line(program, words)))
        except KeyboardInterrupt:
            raise LabError("interrupted; the same command resumes") from None
        print(f"ready: {folder.path}/bin")
        parts = folder.path / "raw/PARTS"
        for line in parts.read_text(errors="replace").splitlines() if parts.exists() else []:
            if line.count("\t") > 1:
                print(f"{program}: warning: {line.split(chr(9))[2]}", file=sys.stderr)


def _stages(corpus: Corpus, folder: Folder) -> list[Stage]:
    path, text = folder.path, "tokenised"

    def raw(part: Path, log: BinaryIO) -> None:
        archives = Archives(corpus.given, corpus.mirror, path / "download")
        corpus.raw(RawTexts(part, corpus.languages, archives, corpus.limit))

    stages = [Stage("raw", raw), filter_stage(text, path / "raw", corpus.filters)]
    cleaned_late = corpus.bpe.startswith("sentencepiece")  # such text may have no words, so its pieces are counted
    if corpus.longest and not cleaned_late:
        stages.append(_clean_stage(corpus, path / text, corpus.longest))
        text = "clean"
    if corpus.bpe != "none":
        codes = [of_side(corpus.codes_name, side) for side in corpus.sides]
        stages += [_codes_stage(corpus, path / text, side, name) for side, name in zip(corpus.sides, codes)]
        stages.append(_subwords_stage(corpus, path / text, [path / name for name in codes]))
        text = "bpe"
    if corpus.longest and cleaned_late:
        stages.append(_clean_stage(corpus, path / text, corpus.longest))
        text = "clean"
    advice = "give --codes and --dict of the same run" if corpus.codes else "give --dict of the same run"

    def binarised(part: Path, log: BinaryIO) -> None:
        run_preprocess(path, part, log, corpus.languages, text, _dictionaries(corpus))
        require_known(part, advice)

    stages.append(Stage("bin", binarised))
    for side in corpus.sides:
        language = corpus.languages_of(side)[0]
        stages.append(copy_stage(of_side("dict.txt", side), path / f"bin/dict.{language}.txt"))
    return stages


def filter_stage(name: str, source: Path, changes: Sequence[Filter]) -> Stage:
    """Return the stage that filters the texts of a folder."""
    return Stage(name, lambda part, log: filter_folder(source, part, changes, log))


def copy_stage(name: str, source: Path) -> Stage:
    """Return the stage that copies a file."""
    return Stage(name, lambda part, log: shutil.copyfile(source, part))


def _clean_stage(corpus: Corpus, source: Path, longest: int) -> Stage:
    def clean(part: Path, log: BinaryIO) -> None:
        part.mkdir()
        for file in sorted((*source.glob("valid*.*"), *source.glob("test*.*"))):
            shutil.copyfile(file, part / file.name)
        inputs, outputs = ([folder / f"train.{language}" for language in corpus.languages] for folder in (source, part))
        copy_similar_pairs(inputs, outputs, longest, float(corpus.ratio or 0))
        if not outputs[0].stat().st_size:
            raise LabError(
                f"no training pair passes --max-length {longest} and --ratio {corpus.ratio or 'none'}: give larger ones"
            )

    return Stage("clean", clean)


def _codes_stage(corpus: Corpus, source: Path, side: str, name: str) -> Stage:
    texts = [source / f"train.{language}" for language in corpus.languages_of(side)]

    def learn(part: Path, log: BinaryIO) -> None:
        if corpus.codes:
            shutil.copyfile(of_side(str(corpus.codes), side), part)
        elif corpus.bpe == "subword-nmt":
            learn_merges(texts, part, corpus.merges, log)
        else:
            kind = "unigram" if corpus.bpe == "sentencepiece" else "bpe"
            learn_pieces(texts, part, kind, corpus.merges, log)

    return Stage(name, learn)


def _subwords_stage(corpus: Corpus, source: Path, codes: Sequence[Path]) -> Stage:
    def split(part: Path, log: BinaryIO) -> None:
        files = dict(zip(corpus.sides, map(str, codes)))
        change = _merge if corpus.bpe == "subword-nmt" else _cut
        filter_folder(source, part, [partial(change, codes=files)], log)

    return Stage("bpe", split)


def _merge(language: str, line: str, codes: dict[str, str]) -> str:
    return filters.subwords(language, line, codes.get(language) or codes[""])


def _cut(language: str, line: str, codes: dict[str, str]) -> str:
    return filters.pieces(language, line, codes.get(language) or codes[""])


def _dictionaries(corpus: Corpus) -> list[str]:
    if not corpus.separate:
        return ["--joined-dictionary", *(["--srcdict", str(corpus.dictionary)] if corpus.dictionary else [])]
    if not corpus.dictionary:
        return []
    source, target = (of_side(str(corpus.dictionary), language) for language in corpus.languages)
    return ["--srcdict", source, "--tgtdict", target]


def run_preprocess(
    folder: Path, part: Path, log: BinaryIO, languages: Sequence[str], text: str, options: Sequence[str]
) -> None:
    """Binarise the splits of the folder `text` into `part` by fairseq-preprocess."""

    def prefixes(split: str) -> str:  # the existing ones, as bpe/test,bpe/test1,…
        names = sorted(file.name for file in (folder / text).glob(f"{split}*.{languages[0]}"))
        return ",".join(f"{text}/{name.rpartition('.')[0]}" for name in names)

    words = ["fairseq-preprocess", "--source-lang", languages[0], "--target-lang", languages[1], *options]
    words += ["--trainpref", f"{text}/train", "--validpref", prefixes("valid"), "--testpref", prefixes("test")]
    words += ["--workers", str(cores()), "--destdir", part.name]
    for line in output_of(words, log, folder, {**os.environ, **PLAIN}):
        log.write(line)
        log.flush()
        if sys.stderr.isatty():
            sys.stderr.write(line.decode(errors="replace"))


def require_known(binarised: Path, advice: str) -> None:
    """Refuse a dictionary that lacks more than 5% of the training text.

    Raises:
        LabError: it does.
    """
    lines = (binarised / "preprocess.log").read_text(errors="replace").splitlines()
    shares = (_UNKNOWN.search(line) for line in lines)
    if any(share and float(share[1]) > MOST_UNKNOWN for share in shares):
        raise LabError(f"over 5% of the training text is unknown to the dictionary: {advice}")
