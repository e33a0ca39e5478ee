"""Measures of a run: for each, the command and where the figure is in the JSON object, its last line."""

from dataclasses import dataclass
from statistics import fmean
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from capsule_routing.errors import UserError
from capsule_routing.text.rouge import ROUGE_TYPES
from experiments.tables.definitions import REPOSITORY, Column, Table
from experiments.tables.runs import GIVEN, Run, composed_of, task_of
from fairseq_capsule_lab.evaluation.json_files import finite
from fairseq_capsule_lab.evaluation.scores import DIACRITICS_OPTIONAL


@dataclass(frozen=True)
class RunMeasure:
    """One measure.

    Attributes:
        source: the command of `SOURCES` that prints the object; None for the scores of evaluate.sh.
        read: finds the figure in the object.
        score: the name of a score of evaluate.sh.
        compared: its figure is compared with that of the other row, seed by seed.
        by_words: it has several figures, by the number of source words.
    """

    source: Optional[str]
    read: Callable[[Dict[str, Any]], Any]
    digits: int = 2
    score: Optional[str] = None
    compared: bool = False
    by_words: bool = False

    def figures(self, printed: Dict[str, Any]) -> Dict[str, float]:
        """The figures in an object by the number of source words; by "" if there is one. Errors as in `finite`."""
        figures = self.read(printed) if self.by_words else {"": self.read(printed)}
        return {point: finite(figure) for point, figure in figures.items()}


# --- sources: the commands that measure; `command` replaces the words in braces --------------------------------------

SOURCES = {
    "size": "fairseq-capsule {plugin} size {checkpoint} --data {bin} --json",
    "nll": "fairseq-capsule {plugin} nll {checkpoint} --data {bin} --json",
    "probe": "fairseq-capsule {plugin} probe {checkpoint} --data {bin} --json",
    "overlap": "fairseq-capsule {plugin} analyze overlap {checkpoint} --data {bin} --out {out} --json",
    # These also draw a sentence, or the sentences that differ most, beside their figures.
    "attention": "fairseq-capsule {plugin} analyze routing {checkpoint} --data {bin} --show encoder_attention"
    " --out {out} --json",
    "past-future": "fairseq-capsule {plugin} analyze routing {checkpoint} --data {bin} --show past_future"
    " --out {out} --json",
    "capsules": "fairseq-capsule {plugin} analyze routing {checkpoint} --data {bin} --show capsules --out {out} --json",
    "cases": "fairseq-capsule analyze cases {before} {generated} {case} --out {out} --json",
    "coverage": "fairseq-capsule analyze coverage {generated} --train {source} {target} --out {out} --json",
    "lengths": "fairseq-capsule analyze lengths {generated} {case} {lang} --out {out} --json",
    "length-groups": "fairseq-capsule analyze lengths {generated} --groups 4 {case} {lang} --out {out} --json",
    "longer-than": "fairseq-capsule analyze lengths {generated} {case} {lang} --longer-than 0,10,20,30,40,50"
    " --out {out} --json",
    "throughput-train": "{python} {throughput.py} {plugin} --arch {arch} {model} --mode train {throughput} --json",
    "throughput-generate": "{python} {throughput.py} {plugin} --arch {arch} {model} --mode generate {throughput}"
    " --json",
    "latency": "{python} {latency.py} {plugin} --archs {arch} transformer {model} {latency} --lengths --json",
}
TIMED = {"throughput-train", "throughput-generate", "latency"}  # they build an untrained model
PAIRED = {"cases"}  # they read the baseline that a run starts from
SCORED = {"cases", "coverage", "lengths", "length-groups", "longer-than"}  # they read what evaluate.sh generated


def command(source: str, run: Run) -> List[str]:
    """The command of a source for a run, as a list of words."""
    task = task_of(run)
    tokenised = run.corpus / "tokenised"
    benchmarks = REPOSITORY / "experiments/benchmarks"
    arch, model = model_options(run) if source in TIMED else ("", [])
    values: Dict[str, Sequence[Any]] = {
        "{checkpoint}": [run.checkpoint],
        "{bin}": [run.corpus / "bin"],
        "{out}": [run.folder.path / "measures"],
        "{before}": [run.baseline.folder.evaluation("test").translations] if run.baseline else [],
        "{generated}": [run.folder.evaluation("test").translations],
        "{source}": [tokenised / f"train.{task.source_lang}"],
        "{target}": [tokenised / f"train.{task.target_lang}"],
        "{case}": ["--lowercase"] if "--lowercase" in run.setup.decode else [],
        "{lang}": ["--lang", task.target_lang],
        "{python}": ["env", "PYTHONSAFEPATH=", "python"],  # scripts set it, but benchmarks import modules beside them
        "{plugin}": run.plugin_option,
        "{arch}": [arch],
        "{model}": model,
        "{throughput}": run.setup.throughput,
        "{latency}": run.setup.latency,
        "{throughput.py}": [benchmarks / "throughput.py"],
        "{latency.py}": [benchmarks / "latency.py"],
    }
    words = (values[word] if word.startswith("{") else [word] for word in SOURCES[source].split())
    return [str(value) for of_word in words for value in of_word]


def model_options(run: Run) -> Tuple[str, List[str]]:
    """The architecture of a run, and its whole numbers and choices as `--option` of the benchmarks."""
    model = composed_of(run).model
    kept = {name: value for name, value in model.items() if type(value) in (int, str) and name != "_name"}
    return model._name, [word for name, value in kept.items() for word in ("--option", f"{name}={value}")]


# --- measures --------------------------------------------------------------------------------------------------


def _score(name: str) -> RunMeasure:
    return RunMeasure(None, lambda printed: printed["scores"][name]["score"], score=name)


def _row(key: str, factor: float = 1.0) -> Callable[[Dict[str, Any]], float]:
    return lambda printed: factor * printed["rows"][0][key]


def _statistic(name: str, factor: float = 1.0) -> Callable[[Dict[str, Any]], float]:
    """A figure of `analyze routing`."""
    return lambda printed: factor * next(row["value"] for row in printed["rows"] if row["statistic"] == name)


def _changed(sign: int) -> Callable[[Dict[str, Any]], float]:
    """The share of the sentences, in percent, that a run translates better (1) or worse (-1) than its baseline."""
    return lambda printed: 100 * fmean(sign * row["difference"] > 0 for row in printed["rows"])


def _by_words(key: str) -> Callable[[Dict[str, Any]], Dict[str, float]]:
    return lambda printed: {row["words"]: row[key] for row in printed["rows"]}


MEASURES: Dict[str, RunMeasure] = {
    "bleu": _score("tokenised_bleu"),
    "bleu_without_diacritics": _score("tokenised_bleu_without_diacritics"),
    **{name: _score(name) for name in ("compound_split_bleu", "detokenised_bleu", "chrf", *ROUGE_TYPES)},
    "parameters": RunMeasure("size", lambda printed: printed["models"][0]["parameters"], 0),
    "parameters_without_embeddings": RunMeasure(
        "size", lambda printed: printed["models"][0]["parameters"] - printed["models"][0]["embeddings"], 0
    ),
    "nll": RunMeasure("nll", _row("nll"), 3, compared=True),
    # With guided losses if the architecture has them.
    "speed_train": RunMeasure(
        "throughput-train", lambda printed: printed["ratios"].get(f"{printed['arch']} + losses", printed["ratio"])
    ),
    "speed_generate": RunMeasure("throughput-generate", lambda printed: printed["ratio"]),
    "latency": RunMeasure("latency", lambda printed: printed["milliseconds"][printed["archs"][0]]["mean"], 1),
    "latency_ratio": RunMeasure("latency", lambda printed: printed["speedup"][printed["archs"][0]]),
    **{f"probe{top}": RunMeasure("probe", _row(f"bag_recall_{top}", 100), 1) for top in (200, 500, 1000)},
    "cdr": RunMeasure("coverage", _row("cdr"), 3),
    "over_translation": RunMeasure("coverage", _row("over")),
    "under_translation": RunMeasure("coverage", _row("under")),
    # The first row is about the whole target.
    "overlap_past": RunMeasure("overlap", _row("past"), 3),
    "overlap_future": RunMeasure("overlap", _row("future"), 3),
    "attention_entropy_before": RunMeasure("attention", _statistic("attention_before"), 3),
    "attention_entropy": RunMeasure("attention", _statistic("attention_after"), 3),
    "moved_words": RunMeasure("past-future", _statistic("past_future_moved", 100), 1),
    "capsule_entropy": RunMeasure("capsules", _statistic("aggregation_entropy"), 3),
    "better_sentences": RunMeasure("cases", _changed(1), 1),
    "worse_sentences": RunMeasure("cases", _changed(-1), 1),
    "bleu_by_length": RunMeasure("lengths", _by_words("bleu"), by_words=True),
    "ratio_by_length": RunMeasure("lengths", _by_words("length_ratio"), 3, by_words=True),
    "bleu_by_length_group": RunMeasure("length-groups", _by_words("bleu"), by_words=True),
    "bleu_longer_than": RunMeasure("longer-than", _by_words("bleu"), by_words=True),
}
RATIOS = ("speed_train", "speed_generate", "latency_ratio")
FAIRSEQS_OWN = (GIVEN, "transformer", "lstm")  # configurations of the models that ratios of speed refer to


def require_measures(table: Table) -> None:
    """Raise a UserError if a column has an unknown measure, or if the figure names what the table does not have."""
    for column in table.columns:
        if column.measure not in MEASURES:
            raise UserError(
                f"{table.source}: column {column.label!r}: measure {column.measure!r} is none of {', '.join(MEASURES)}"
            )
    known = {"rows", *(column.label for column in table.columns), *(key for row in table.rows for key in row.at)}
    if any(MEASURES[column.measure].by_words for column in table.columns):
        known.add(table.figure.get("x", "rows"))  # the name of the axis of their points
    for name, axis in table.figure.items():
        if axis not in known:
            raise UserError(
                f"{table.source}: figure: {name} is {axis!r}; it must be one of: {', '.join(sorted(known))}"
            )


def applies(column: Column, run: Run) -> bool:
    """Whether a run can have the figure of a column. A model's speed compared with itself is not measured."""
    measure = column.measure
    if column.only:
        model = composed_of(run).model
        options = (option.partition("=") for option in column.only)
        if not any(str(model.get(name)) == value for name, _, value in options):
            return False
    if measure in RATIOS:
        return run.config not in FAIRSEQS_OWN or run.has_other_architecture
    if measure == "bleu_without_diacritics":
        return task_of(run).target_lang in DIACRITICS_OPTIONAL
    if MEASURES[measure].source in PAIRED:
        return run.baseline is not None
    return measure.startswith("probe") == (run.config == "probe")
