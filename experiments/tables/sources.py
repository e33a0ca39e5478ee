"""Sources of measures: the commands that measure a run, and which runs have the figure of a column."""

from typing import Any, Dict, List, Sequence, Tuple

from experiments.tables.definitions import REPOSITORY, Column
from experiments.tables.measures import MEASURES, RATIOS
from experiments.tables.runs import GIVEN, Run, composed_of, task_of
from fairseq_capsule_lab.evaluation.scores import DIACRITICS_OPTIONAL

# `command` replaces the words in braces.
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
    "assignment": "fairseq-capsule {plugin} analyze assignment {checkpoint} --data {bin} --train {source} {target}"
    " --out {out} --json",
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
FAIRSEQS_OWN = (GIVEN, "transformer", "lstm")  # configurations of the models that ratios of speed refer to


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
