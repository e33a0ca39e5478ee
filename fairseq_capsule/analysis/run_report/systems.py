"""Reads evaluated runs, and refuses early what cannot be compared."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Sequence
from zipfile import BadZipFile

import numpy as np

from fairseq_capsule.analysis.run_report.training_log import TrainingLog, read_training_log
from fairseq_capsule.data.files import read_lines
from fairseq_capsule.errors import UserError
from fairseq_capsule.evaluation.scoring import disagreements
from fairseq_capsule.evaluation.translations import Translations, read_translations
from fairseq_capsule_runs import RunFolder
from fairseq_capsule_runs.folder import Evaluation
from fairseq_capsule_runs.values import RunError

# Of the reports that scripts/reproduce.sh leaves in RUN/measures: the file, where the figure stands, its column.
_MEASURED = (
    ("size.json", ("models", 0, "parameters"), "parameters"),
    ("size.json", ("models", 0, "embeddings"), "of them embeddings"),
    ("throughput-train.json", ("ratio",), "training, × baseline"),
    ("throughput-generate.json", ("ratio",), "translation, × baseline"),
)


@dataclass(frozen=True)
class System:
    """One run on the page.

    Attributes:
        facts: what was trained and how it translated, by the columns of the table of runs.
        speeds: figures that were measured, by the columns of the table of speeds; those that were not are missing.
        pages: the folder of `fairseq-capsule inspect`, where there is one.
    """

    name: str
    path: Path
    split: str
    translations: Translations
    facts: Dict[str, str]
    speeds: Dict[str, float]
    log: TrainingLog
    pages: Optional[Path] = None

    @property
    def sources(self) -> List[str]:
        """The source sentences as the model read them, subwords joined; `read_systems` refuses a text without them."""
        assert self.translations.sources is not None
        return self.translations.sources

    def page(self, sentence: int) -> Optional[Path]:
        """The page of a sentence of the test set; None where there is none, or it is of another sentence."""
        if self.pages is None:
            return None
        page, arrays = (self.pages / f"{self.split}-{sentence}.{kind}" for kind in ("html", "npz"))
        try:
            with np.load(arrays) as archive:
                subwords = archive["source"].tolist()
        except (OSError, ValueError, KeyError, BadZipFile):
            return None
        shown = re.sub(r"@@ |▁|\s", "", " ".join(word.removeprefix("<unk>:") for word in subwords[:-1]))
        source = re.sub(r"\s", "", self.sources[sentence])
        return page if page.is_file() and shown == source else None


@dataclass(frozen=True)
class TestSet:
    """What all runs were evaluated on.

    Attributes:
        sources: as the test set has them, or where it does not, as the models read them, subwords joined.
        references: one list for each reference.
        summaries: ROUGE counts, not BLEU.
        lowercase: the evaluations compared without case.
    """

    split: str
    language: str
    sources: List[str]
    references: List[List[str]]
    summaries: bool
    lowercase: bool

    __test__ = False  # to pytest


def read_systems(
    runs: Sequence[Path],
    names: Sequence[str],
    data: Path,
    split: str = "test",
    results: str = "evaluation",
    pages: Mapping[str, Path] = {},
) -> tuple[TestSet, List[System]]:
    """Read what evaluate.sh made of every run.

    Args:
        data: a prepare script's folder, of whose `raw` the references are.
        pages: folders of `fairseq-capsule inspect`, by the names of the systems.

    Raises:
        UserError: a run that was not evaluated on this split, or not as the first one: on another test set, by another
            measure, with or without case.
    """
    evaluations = [_evaluation(run, data, split, results) for run in runs]
    scores = [_scores(run, evaluation) for run, evaluation in zip(runs, evaluations)]
    for what, read in (
        ("against", lambda found: " ".join(Path(path).name for path in found["references"])),
        ("by", lambda found: "ROUGE" if _of_summaries(found) else "BLEU and chrF"),
        ("", lambda found: "without case" if _without_case(found) else "with case"),
    ):
        for run, found in zip(runs[1:], scores[1:]):
            if read(found) != read(scores[0]):
                words = " ".join(f"evaluated {what} {read(found)}".split())
                first = " ".join(f"{runs[0]} {what} {read(scores[0])}".split())
                raise UserError(f"{run}: {words}, {first}; evaluate both in the same way")
    reference_names = [Path(path).name for path in scores[0]["references"]]
    references = [_reference(data, name) for name in reference_names]
    summaries = _of_summaries(scores[0])
    systems = []
    for name, run, evaluation in zip(names, runs, evaluations):
        translations = read_translations(
            evaluation.translations,
            tokenised=False if summaries else None,
            generated_bpe="characters" if summaries else "subword_nmt",
        )
        _require_same_text(run, translations, data / "raw" / reference_names[0], references)
        systems.append(_system(name, run, split, evaluation, translations, pages.get(name)))
    language = reference_names[0].rpartition(".")[2]
    sources = _sources(runs, data, split) or systems[0].sources
    if len(sources) != len(references[0]):
        sources = systems[0].sources
    return TestSet(split, language, sources, references, summaries, _without_case(scores[0])), systems


def _evaluation(run: Path, data: Path, split: str, results: str) -> Evaluation:
    evaluation = RunFolder(run).evaluation(split, results)
    if not evaluation.translations.is_file():
        others = sorted(path.parent.name for path in run.glob(f"{results}/*/generate.out"))
        there = f"evaluated are: {', '.join(others)}; name one by --split, or run" if others else "run"
        raise UserError(f"{run}: not evaluated on '{split}'; {there} scripts/evaluate.sh --split {split} {run} {data}")
    return evaluation


def _scores(run: Path, evaluation: Evaluation) -> Dict[str, Any]:
    found = evaluation.scores()
    fits = (
        found is not None
        and isinstance(found.get("references"), list)
        and found["references"]
        and all(isinstance(path, str) for path in found["references"])
        and isinstance(found.get("scores"), dict)
        and all(isinstance(score, dict) for score in found["scores"].values())
    )
    if found is None or not fits:
        raise UserError(f"{evaluation.scores_file}: missing or damaged; run scripts/evaluate.sh on {run} again")
    return found


def _of_summaries(scores: Mapping[str, Any]) -> bool:
    return "rouge1" in scores["scores"]


def _without_case(scores: Mapping[str, Any]) -> bool:
    return any("case:lc" in str(score.get("signature")) for score in scores["scores"].values())


def _reference(data: Path, name: str) -> List[str]:
    path = data / "raw" / name
    if not path.is_file():
        raise UserError(f"{path}: missing, and the runs were evaluated against it; name their data folder with --data")
    return read_lines(path)


def _require_same_text(run: Path, translations: Translations, path: Path, references: Sequence[Sequence[str]]) -> None:
    count = len(translations.sentences)
    if translations.sources is None:
        raise UserError(f"{translations.path}: it has no S- lines; run scripts/evaluate.sh on {run} again")
    if any(len(lines) != count for lines in references):
        raise UserError(f"{run}: {count} sentences translated, {path} has {len(references[0])}: another test set")
    if 2 * disagreements(translations, references) > count:
        raise UserError(f"{run}: evaluated on another text than {path}; evaluate all runs on the same test set")


def _sources(runs: Sequence[Path], data: Path, split: str) -> Optional[List[str]]:
    """The untokenised sources, where the runs say of which language they are."""
    try:
        language = RunFolder(runs[0]).settings().name("task.source_lang", "")
    except RunError:
        return None
    path = data / "raw" / f"{split}.{language}"
    return read_lines(path) if language and path.is_file() else None


def _system(
    name: str, run: Path, split: str, evaluation: Evaluation, translations: Translations, pages: Optional[Path]
) -> System:
    folder = RunFolder(run)
    try:
        settings, starts = folder.settings(), folder.manifest()["starts"]
    except RunError as error:
        raise UserError(str(error)) from error
    first = starts[0] if starts else {}
    log = read_training_log(run / "train.log")
    decoding = _decoding(evaluation)
    hardware = first.get("gpus") or first.get("processor") or ""
    facts = {
        "architecture": settings.get("model._name") or "",
        "updates": f"{folder.last_update:,}" if folder.last_update else "",
        "seed": first.get("seed", ""),
        "batch": first.get("batch", ""),
        "trained on": ", ".join(hardware) if isinstance(hardware, list) else hardware,
        "started": str(first.get("start", ""))[:16].replace("T", " "),
        "beam": decoding.get("beam", ""),
        "length penalty": decoding.get("lenpen", ""),
        "data": str(settings.origin.get("data", "")),
    }
    logged = {"parameters": log.parameters, "training, words/s": log.words_per_second}
    speeds = {what: float(value) for what, value in logged.items() if value is not None} | _measured(run)
    return System(name, run, split, translations, {key: str(value) for key, value in facts.items()}, speeds, log, pages)


def _decoding(evaluation: Evaluation) -> Dict[str, str]:
    """What evaluate.sh says of the translation: beam, lenpen and others."""
    try:
        lines = (evaluation.path / "settings").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return dict(line.split(" ", 1) for line in lines if " " in line)


def _measured(run: Path) -> Dict[str, float]:
    """What was measured of a run besides its scores; what was not is missing."""
    figures = {}
    for name, place, column in _MEASURED:
        try:
            found = json.loads((run / "measures" / name).read_text(encoding="utf-8"))
            for key in place:
                found = found[key]
            figures[column] = float(found)
        except (OSError, ValueError, LookupError, TypeError, RecursionError):
            continue
    return figures
