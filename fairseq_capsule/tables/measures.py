"""What is measured of a run: for each measure the command that makes it, and where it stands in what that says."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from omegaconf import DictConfig

from fairseq_capsule.evaluation.scoring import DIACRITICS_OPTIONAL
from fairseq_capsule.tables.configurations import composed
from fairseq_capsule.tables.definitions import REPOSITORY, Words
from fairseq_capsule.tables.runs import GIVEN, Places, Run

# A figure, or several, each with what it is of: the words of the source.
Value = Union[float, Dict[str, float]]


@dataclass(frozen=True)
class Step:
    """A command, and the file that is there when it was done.

    `reports` says that the file is the last line of what the command prints, an object of JSON: then a failure leaves
    the table without this figure, and not the run without its others.
    """

    command: Words
    product: Path
    reports: bool = False


@dataclass(frozen=True)
class Measure:
    """`source` makes the file, `read` finds the figure in it; evaluate.sh's have no source, but a `score`'s name."""

    source: Optional[str]
    read: Callable[[Dict[str, Any]], Value]
    digits: int = 2
    score: Optional[str] = None


def composed_of(run: Run) -> DictConfig:
    """A run's configuration; a given baseline has that of the Transformer."""
    config = "transformer" if run.config == GIVEN else run.config
    return composed(run.setting.configs, config, (*run.setting.overrides, *run.regime.overrides, *run.overrides))


# --- sources ---------------------------------------------------------------------------------------------------


def _generated(run: Run, places: Places) -> str:
    return str(places.run_folder(run).evaluation("test").translations)


def _bin(run: Run, places: Places) -> str:
    return str(places.corpus(run) / "bin")


def _analysis(kind: str, *options: str) -> Callable[[Run, Places], List[str]]:
    def command(run: Run, places: Places) -> List[str]:
        case = ["--lowercase"] if "--lowercase" in run.setting.decode else []
        out = ["--out", str(places.folder(run) / "measures"), "--json"]
        return ["fairseq-capsule", "analyze", kind, _generated(run, places), *options, *case, *out]

    return command


def _coverage(run: Run, places: Places) -> List[str]:
    task = composed_of(run).task
    texts = [str(places.corpus(run) / "tokenised" / f"train.{lang}") for lang in (task.source_lang, task.target_lang)]
    out = ["--train", *texts, "--out", str(places.folder(run) / "measures"), "--json"]
    return ["fairseq-capsule", "analyze", "coverage", _generated(run, places), *out]


def _overlap(run: Run, places: Places) -> List[str]:
    out = ["--out", str(places.folder(run) / "measures"), "--json"]
    checkpoint = str(places.checkpoint(run))
    return ["fairseq-capsule", "analyze", "overlap", checkpoint, "--data", _bin(run, places), *out]


def _of_checkpoint(command: str) -> Callable[[Run, Places], List[str]]:
    def made(run: Run, places: Places) -> List[str]:
        return ["fairseq-capsule", command, str(places.checkpoint(run)), "--data", _bin(run, places), "--json"]

    return made


def model_options(run: Run) -> Tuple[str, List[str]]:
    """The architecture of a run, and its options as the benchmarks take them: whole numbers and choices."""
    model = composed_of(run).model
    kept = {name: value for name, value in model.items() if type(value) in (int, str) and name != "_name"}
    return model._name, [word for name, value in kept.items() for word in ("--option", f"{name}={value}")]


def _throughput(mode: str) -> Callable[[Run, Places], List[str]]:
    def command(run: Run, places: Places) -> List[str]:
        arch, options = model_options(run)
        script = str(REPOSITORY / "benchmarks" / "throughput.py")
        return ["python", script, "--arch", arch, *options, "--mode", mode, *run.setting.throughput, "--json"]

    return command


def _latency(run: Run, places: Places) -> List[str]:
    arch, options = model_options(run)
    script = str(REPOSITORY / "benchmarks" / "latency.py")
    return ["python", script, "--archs", arch, "transformer", *options, *run.setting.latency, "--lengths", "--json"]


SOURCES: Dict[str, Callable[[Run, Places], List[str]]] = {
    "size": _of_checkpoint("size"),
    "probe": _of_checkpoint("probe"),
    "throughput-train": _throughput("train"),
    "throughput-generate": _throughput("generate"),
    "latency": _latency,
    "coverage": _coverage,
    "overlap": _overlap,
    "lengths": _analysis("lengths"),
    "length-groups": _analysis("lengths", "--groups", "4"),
    "longer-than": _analysis("lengths", "--longer-than", "0,10,20,30,40,50"),
}


def report_file(run: Run, source: str, places: Places) -> Path:
    return places.folder(run) / "measures" / f"{source}.json"


def reason_file(product: Path) -> Path:
    """Where a report that failed says why."""
    return product.with_suffix(".failed")


def report_step(run: Run, source: str, places: Places, gpus: int) -> Step:
    """What is timed is timed on a GPU where there is one."""
    device = ["--device", "cuda"] if gpus and source in TIMED else []
    return Step((*SOURCES[source](run, places), *device), report_file(run, source, places), reports=True)


# --- measures --------------------------------------------------------------------------------------------------


def _score(name: str) -> Measure:
    return Measure(None, lambda found: found["scores"][name]["score"], score=name)


def _row(key: str, factor: float = 1.0) -> Callable[[Dict[str, Any]], float]:
    return lambda found: factor * found["rows"][0][key]


def _by_words(key: str) -> Callable[[Dict[str, Any]], Dict[str, float]]:
    return lambda found: {row["words"]: row[key] for row in found["rows"]}


def _first(key: str) -> Callable[[Dict[str, Any]], float]:
    """Of latency.py's report, the figure of the architecture that was named first."""

    def read(found: Dict[str, Any]) -> float:
        figure = found[key][found["archs"][0]]
        return figure["mean"] if key == "milliseconds" else figure

    return read


def _losses_ratio(found: Dict[str, Any]) -> float:
    """With its guided losses, where it has some."""
    return found["ratios"].get(f"{found['arch']} + losses", found["ratio"])


MEASURES: Dict[str, Measure] = {
    "bleu": _score("tokenised_bleu"),
    "bleu_without_diacritics": _score("tokenised_bleu_without_diacritics"),
    **{
        name: _score(name) for name in ("compound_split_bleu", "detokenised_bleu", "chrf", "rouge1", "rouge2", "rougeL")
    },
    "parameters": Measure("size", lambda found: found["models"][0]["parameters"], 0),
    "parameters_without_embeddings": Measure(
        "size", lambda found: found["models"][0]["parameters"] - found["models"][0]["embeddings"], 0
    ),
    "speed_train": Measure("throughput-train", _losses_ratio),
    "speed_generate": Measure("throughput-generate", lambda found: found["ratio"]),
    "latency": Measure("latency", _first("milliseconds"), 1),
    "latency_ratio": Measure("latency", _first("speedup")),
    **{f"probe{top}": Measure("probe", _row(f"bag_recall_{top}", 100), 1) for top in (200, 500, 1000)},
    "cdr": Measure("coverage", _row("cdr"), 3),
    "over_translation": Measure("coverage", _row("over")),
    "under_translation": Measure("coverage", _row("under")),
    # Their first row is that of the whole target.
    "overlap_past": Measure("overlap", _row("past"), 3),
    "overlap_future": Measure("overlap", _row("future"), 3),
    "bleu_by_length": Measure("lengths", _by_words("bleu")),
    "ratio_by_length": Measure("lengths", _by_words("length_ratio"), 3),
    "bleu_by_length_group": Measure("length-groups", _by_words("bleu")),
    "bleu_longer_than": Measure("longer-than", _by_words("bleu")),
}
TIMED = {"throughput-train", "throughput-generate", "latency"}
SCORED = {"lengths", "length-groups", "longer-than", "coverage"}  # sources that read what evaluate.sh generated
RATIOS = ("speed_train", "speed_generate", "latency_ratio")
FAIRSEQS_OWN = (GIVEN, "transformer", "lstm")  # the configurations of the models that speeds are ratios to


def applies(measure: str, run: Run) -> bool:
    """Whether a run has such a figure at all: a model has no speed beside itself, for it is not measured."""
    if measure in RATIOS:
        return run.config not in FAIRSEQS_OWN
    if measure == "bleu_without_diacritics":
        return composed_of(run).task.target_lang in DIACRITICS_OPTIONAL
    if measure.startswith("overlap"):
        return composed_of(run).model.get("guided_heads", "none") in ("bow", "both")
    return measure.startswith("probe") == (run.config == "probe")


def read_json(path: Path) -> Optional[Dict[str, Any]]:
    """The object in a file, None where it is missing or none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
