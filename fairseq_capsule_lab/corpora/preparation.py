"""The preparation of a corpus: stages from raw text to binarised data."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from capsule_routing.errors import UserError
from capsule_routing.text.folders import settings_of
from capsule_routing.text.preparation import (
    SPACE,
    TextPreparation,
    preparation_of,
    split_into_subwords,
    split_into_words,
)
from fairseq_capsule_lab.corpora.archives import local_archive
from fairseq_capsule_lab.corpora.parallel import filter_folder
from fairseq_capsule_lab.corpora.raw import RawTexts
from fairseq_capsule_lab.corpora.recipe import (
    DEFAULTS,
    Corpus,
    Find,
    Options,
    Recipe,
    of_side,
    require_earlier_files,
    require_library,
)
from fairseq_capsule_lab.corpora.round_trip import LEAST, round_trip
from fairseq_capsule_lab.corpora.subwords import learn_subwords
from fairseq_capsule_lab.corpora.texts import copy_similar_pairs
from fairseq_capsule_lab.corpora.unknown import MOST, require_known
from fairseq_capsule_lab.manifests import warnings
from fairseq_capsule_lab.processes import PLAIN, command_line, cores, output_of, require_tools, show
from fairseq_capsule_lab.stages import Folder, Stage

SPECIALS = 4  # symbols that fairseq counts too
_CONTROL_SYMBOL = re.compile(rb"(?:^| )(<s>|<pad>|</s>|<unk>)(?: |$)", re.MULTILINE)


def prepare(recipe: Recipe, choices: Options, program: str, words: Sequence[str], out: str, dry_run: bool) -> None:
    """Make what is missing in the folder `out`, and say what is ready.

    Args:
        choices: the options of the recipe.
        program, words: what the user called, for the manifest and for warnings.
        dry_run: only print the commands.
    """
    options = {**DEFAULTS, **choices}
    options["from"] = options["from"] and os.path.realpath(options["from"])
    require_tools("fairseq-preprocess")
    corpus = recipe.corpus(options)
    if "zh" in corpus.languages:
        require_library("jieba", "chinese")
    if options["bpe"].startswith("sentencepiece"):
        require_library("sentencepiece", "sentencepiece")
    if corpus.vocabulary:
        options["bpe"] = "none"
    dictionaries = corpus.dictionaries(options)
    require_earlier_files(options, corpus.sides(options), dictionaries)
    if options["dict"]:
        files = [Path(of_side(options["dict"], side)) for side in dictionaries]
        _require_protected(options.get("protect", ()), files)
    settings = recipe.settings(corpus, options)
    if dry_run:
        _Preparation(recipe, corpus, options, Path(os.path.abspath(out))).show()
        return
    with Folder(out, recipe.script).locked() as folder:
        try:
            is_free = not any(choices.get(name) for name in ("tokenise", "bpe", "codes"))
            kept = {"script": recipe.script, **settings}
            texts = [preparation_of(kept, language) for language in corpus.languages]
            if _prefers_pieces(corpus, texts, options, folder, is_free, program):
                require_library("sentencepiece", "sentencepiece")
                options.update(tokenise="none", bpe="sentencepiece")
                corpus = recipe.corpus(options)
                settings = recipe.settings(corpus, options)
            folder.keep_settings(settings)
            preparation = _Preparation(recipe, corpus, options, folder.path)
            folder.run(*preparation.stages(), folder.manifest(command_line(program, words)))
        except KeyboardInterrupt:
            raise UserError("interrupted; the same command resumes") from None
        print(f"ready: {folder.path}/bin")
        for warning in warnings(folder.path, preparation.last):
            print(f"{program}: warning: {warning}", file=sys.stderr)


def _number(name: str) -> int:
    """The number of a text: 0 of test, 10 of test10. fairseq-preprocess names texts by their order."""
    return int(name.lstrip("abcdefghijklmnopqrstuvwxyz") or 0)


def _require_protected(protected: Sequence[str], dictionaries: Sequence[Path]) -> None:
    """Refuse a word of --protect that is in no dictionary: it would be unknown."""
    known = {line.rpartition(b" ")[0].decode() for file in dictionaries for line in file.read_bytes().split(b"\n")}
    for word in protected:
        if not known & {word, f"{SPACE}{word}"}:
            remedy = "a word can be protected only from the first preparation on, and must be in the training text"
            raise UserError(f"--protect {word}: not in {dictionaries[0].name}: {remedy}")


def _prefers_pieces(
    corpus: Corpus, texts: Sequence[TextPreparation], options: Options, folder: Folder, is_free: bool, program: str
) -> bool:
    """Return whether SentencePiece replaces Moses, which damages one of the languages.

    If the user chose, or jieba damages Chinese, only warn. An earlier run in the folder has decided.
    """
    if corpus.sample is None:
        return False
    if kept := settings_of(folder.path):
        return is_free and (kept.get("tokenise"), kept.get("bpe")) == ("none", "sentencepiece")
    samples = corpus.sample(_finder(options, folder.path))
    damaged: dict[str, list[str]] = {"moses": [], "jieba": []}
    for text in texts:
        score = round_trip(text, samples[text.language]) if text.tokenizer in damaged else 100
        if score < LEAST:
            damaged[text.tokenizer].append(f"{text.language} ({score:.1f} BLEU)")
    names = [f"{name.capitalize()} damages {' and '.join(of)}" for name, of in damaged.items() if of]
    if not names:
        return False
    problem = f"{', '.join(names)}: a perfect translation, detokenised, has less than {LEAST:g} BLEU"
    is_free = is_free and not damaged["jieba"]
    if is_free:
        print(f"{problem}; so SentencePiece is used for both languages (--tokenise moses: Moses)", flush=True)
    else:
        print(f"{program}: warning: {problem}; --bpe sentencepiece keeps the text", file=sys.stderr)
    return is_free


def _finder(options: Options, path: Path) -> Find:
    """Return the function that finds an archive in the folder of --from, or downloads it."""
    folder = Path(options["from"]) if options["from"] else None
    return partial(local_archive, folder=folder, downloads=path / "download")


class _Preparation:
    """The stages of a corpus in a folder."""

    def __init__(self, recipe: Recipe, corpus: Corpus, options: Options, path: Path):
        self.corpus, self.options, self.path = corpus, options, path
        # The text is cut into words by the settings of the folder, as whatever reads text for its models does.
        self.settings = {"script": recipe.script, **recipe.settings(corpus, options)}
        self.source, self.target = corpus.languages
        self.sides, self.dictionaries = corpus.sides(options), corpus.dictionaries(options)
        self.protected: Sequence[str] = options.get("protect", ())
        self.last = ""  # the folder of the text that is binarised

    def show(self) -> None:
        """Print the command of the last stage. Earlier ones run in this process."""
        names = [stage.output for stage in self.stages()]
        print(f"# {', '.join(names[: names.index('bin')])}: made by this command itself", file=sys.stderr)
        show(self._binarising("bin"), self.path)

    def stages(self) -> list[Stage]:
        bpe, path = self.options["bpe"], self.path
        text = "characters" if self.corpus.vocabulary else "tokenised"
        words = partial(split_into_words, settings=self.settings)
        stages = [Stage("raw", self._raw), Stage(text, partial(filter_folder, words, path / "raw"))]
        late = bpe.startswith("sentencepiece")  # such text may have no words, so its pieces are counted
        if self.options["max-length"] and not late:
            stages.append(Stage("clean", partial(self._clean, path / text)))
            text = "clean"
        if bpe != "none":
            name = "codes" if bpe == "subword-nmt" else "sentencepiece.model"
            names = {side: of_side(name, side) for side in self.sides}
            stages += [Stage(file, partial(self._codes, path / text, side)) for side, file in names.items()]
            codes = {language: str(path / (names.get(language) or names[""])) for language in self.corpus.languages}
            protected = " ".join(self.protected)
            split = partial(split_into_subwords, subwords=bpe, codes=codes, protected=protected)
            stages.append(Stage("bpe", partial(filter_folder, split, path / text)))
            text = "bpe"
        if self.options["max-length"] and late:
            stages.append(Stage("clean", partial(self._clean, path / text)))
            text = "clean"
        self.last = text
        stages.append(Stage("bin", self._binarise))
        for side in self.dictionaries:
            dictionary = path / f"bin/dict.{side or self.source}.txt"
            stages.append(Stage(of_side("dict.txt", side), partial(_copy, dictionary)))
        return stages

    def _earlier(self, option: str, side: str) -> str:
        """Return the path of a side's file of --codes or --dict, or ""."""
        file = self.options[option]
        return os.path.realpath(of_side(file, side)) if file else ""

    def _raw(self, unfinished: Path, log: BinaryIO) -> None:
        find = _finder(self.options, self.path)
        self.corpus.raw(RawTexts(unfinished, self.corpus.languages, find, self.options["limit"] or 0))

    def _clean(self, source: Path, unfinished: Path, log: BinaryIO) -> None:
        unfinished.mkdir()
        for file in sorted((*source.glob("valid*.*"), *source.glob("test*.*"))):
            shutil.copyfile(file, unfinished / file.name)
        inputs, outputs = (
            [folder / f"train.{name}" for name in self.corpus.languages] for folder in (source, unfinished)
        )
        copy_similar_pairs(inputs, outputs, self.options["max-length"], self.options["ratio"] or 0)

    def _codes(self, source: Path, side: str, unfinished: Path, log: BinaryIO) -> None:
        texts = [source / f"train.{language}" for language in ((side,) if side else self.corpus.languages)]
        bpe, merges, earlier = self.options["bpe"], self.options["merges"], self._earlier("codes", side)
        if earlier:
            _copy(earlier, unfinished, log)
        else:
            learn_subwords(texts, unfinished, bpe, merges, log, self.protected)

    def _binarising(self, out: str) -> list[str]:
        """Return the command that binarises the last text. Before it is there, it has one test set."""
        words = ["fairseq-preprocess", "--source-lang", self.source, "--target-lang", self.target]
        words += self._dictionary_options()
        for split, option in (("train", "--trainpref"), ("valid", "--validpref"), ("test", "--testpref")):
            files = (self.path / self.last).glob(f"{split}*.{self.source}")
            names = sorted((file.name.rpartition(".")[0] for file in files), key=_number) or [split]
            words += [option, ",".join(f"{self.last}/{name}" for name in names)]  # bpe/test,bpe/test1,…
        # fairseq-preprocess does its own share after those of the other processes. One more keeps all cores busy.
        return [*words, "--workers", str(cores() + 1), "--destdir", out]

    def _binarise(self, unfinished: Path, log: BinaryIO) -> None:
        self._refuse_control_symbols()
        show(self._binarising("bin"), self.path)
        # Offsets are corrected in another process, since this one would keep torch beside what it has read.
        correction = ["fairseq-capsule", "filter", "offsets", unfinished.name]
        for words in (self._binarising(unfinished.name), correction):
            for line in output_of(words, log, self.path, {**os.environ, **PLAIN}):
                log.write(line)
                log.flush()
                if sys.stderr.isatty():
                    sys.stderr.write(line.decode(errors="replace"))
        _require_protected(self.protected, sorted(unfinished.glob("dict.*.txt")))
        self._require_known(unfinished)

    def _refuse_control_symbols(self) -> None:
        """Refuse tokens that have another meaning for fairseq. A text that is not tokenised may have some."""
        for file in sorted((self.path / self.last).glob("*.*")):
            with open(file, "rb") as text:
                for number, line in enumerate(text, 1):
                    symbol = _CONTROL_SYMBOL.search(line)
                    if symbol:
                        problem = f"{symbol[1].decode()} is a control symbol of fairseq"
                        remedy = "replace it in the text, or give --tokenise moses"
                        raise UserError(f"{file}, line {number}: {problem}: {remedy}")

    def _dictionary_options(self) -> list[str]:
        source, *target = (self._earlier("dict", side) for side in self.dictionaries)
        words = ["--srcdict", source] if source else []
        if target:
            return [*words, "--tgtdict", *target] if source else []
        most = self.corpus.vocabulary
        # A padding factor of 1 adds no filler words.
        limits = ["--nwordssrc", str(most + SPECIALS), "--padding-factor", "1"] if most else []
        return ["--joined-dictionary", *limits, *words]

    def _require_known(self, binarised: Path) -> None:
        """Refuse a dictionary that lacks much of the training text. Of characters a limited one may."""
        if self.corpus.vocabulary and not self.options["dict"]:
            return
        texts = [self.path / self.last / f"train.{language}" for language in self.corpus.languages]
        most = self.options.get("unknown-up-to")
        require_known(binarised, texts, MOST if most is None else most)


def _copy(file: Path | str, unfinished: Path, log: BinaryIO) -> None:
    shutil.copyfile(file, unfinished)
