"""A table at a scale, for workflow/Snakefile: the files that it needs and the options of each step's command.

Files of runs are relative to the folder of runs, where Snakemake works. Options of commands hold absolute paths, so
that a printed command runs in any folder.
"""

from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from fairseq_capsule.errors import one_line
from fairseq_capsule_lab.errors import LabError, quoted
from fairseq_capsule_lab.runs import plugins
from fairseq_capsule_lab.tables.definitions import CONFIGS, REPOSITORY, Table, filled, load_table
from fairseq_capsule_lab.tables.measures import (
    SCORED,
    TIMED,
    applies,
    command,
    composed_of,
    measure_of,
    plugin_option,
    require_measures,
)
from fairseq_capsule_lab.tables.runs import GIVEN, Places, Run, compared_runs
from fairseq_capsule_lab.tables.scales import Scale, load_scale

MINUTES_AT_LEAST = 30  # of a job on a cluster; beyond that twice the guess


@dataclass(frozen=True)
class Targets:
    """What a table needs.

    Attributes:
        licensed: the folder with the folders of licensed corpora.
        most_gpus: how many GPUs there are; None for no limit.
        baseline: a given checkpoint that replaces the Transformer.
        runs: all runs, by name.
        trainings: the names of the runs that are trained.
        corpora: for each corpus, one of the runs on it.
        compared: for each folder of comparisons, the runs that are compared, a pair for each seed.
        cells: the files that the table is read from.
    """

    table: Table
    scale: Scale
    places: Places
    licensed: Path
    most_gpus: Optional[int]
    baseline: Optional[Path]
    runs: Dict[str, Run]
    trainings: List[str]
    corpora: Dict[str, Run]
    compared: Dict[str, List[Tuple[Run, Run]]]
    cells: List[str]

    @property
    def systems(self) -> List[str]:
        """The folders with comparisons."""
        return [folder.partition("/compared/")[0] for folder in self.compared]

    # --- the input files of a step, by its wildcards -----------------------------------------------------------------

    def before_training(self, wildcards: Any) -> List[str]:
        run = self.runs[wildcards.run]
        needed = [self._prepared(run), *([self._trained(run.baseline)] if run.baseline else [])]
        return [*needed, f"{run.teacher.name}/distilled/manifest.tsv"] if run.teacher else needed

    def before_decoding(self, wildcards: Any) -> List[str]:
        run = self.runs[wildcards.run]
        return [self._prepared(run), self._trained(run)]

    def before_comparing(self, wildcards: Any) -> List[str]:
        runs = dict.fromkeys(run for pair in self._pairs(wildcards) for run in pair)
        return [f"{run.name}/evaluation/{wildcards.split}/scores.json" for run in runs]

    def before_measuring(self, wildcards: Any) -> List[str]:
        if wildcards.source in TIMED:  # an untrained model is timed
            return []
        scored = [f"{wildcards.run}/evaluation/test/scores.json"] if wildcards.source in SCORED else []
        return [*self.before_decoding(wildcards), *scored]

    def _prepared(self, run: Run) -> str:
        return str(self.places.corpus(run) / "manifest.tsv")

    def _trained(self, run: Run) -> str:
        """The file that exists once the run's checkpoint is complete. fairseq writes its own before the end."""
        return f"{run.name}/{run.checkpoint if run.is_averaged or run.config == GIVEN else 'finished'}"

    def _pairs(self, wildcards: Any) -> List[Tuple[Run, Run]]:
        return self.compared[f"{wildcards.system}/compared/{wildcards.other}"]

    # --- the options of a step's command -----------------------------------------------------------------------------

    def of_run(self, attribute: str) -> Callable[[Any], Any]:
        """An attribute of the step's run, such as `setting.decode`."""
        return lambda wildcards: attrgetter(attribute)(self.runs[wildcards.run])

    def corpus(self, wildcards: Any) -> Path:
        return self.places.corpus(self.runs[wildcards.run])

    def preparation(self, wildcards: Any) -> List[str]:
        setting = self.corpora[wildcards.corpus].setting
        script, *words = setting.prepare
        licensed = {"licensed": str(self.licensed / setting.licensed)}
        return [str(REPOSITORY / script), *(filled(word, licensed) for word in words)]

    def languages(self, wildcards: Any) -> List[str]:
        task = composed_of(self.runs[wildcards.run]).task
        return [f"source={task.source_lang}", f"target={task.target_lang}"]

    def training_options(self, wildcards: Any) -> List[str]:
        """The options of train.sh, and the configuration."""
        run, gpus = self.runs[wildcards.run], self.gpus(wildcards)
        tokens = run.setting.effective_tokens
        options = ["--gpus", str(gpus)] if gpus else []
        options += ["--effective-tokens", str(tokens)] if tokens else []
        return [*options, str(CONFIGS / run.setting.configs / f"{run.config}.yaml")]

    def training_data(self, wildcards: Any) -> Path:
        teacher = self.runs[wildcards.run].teacher
        return self.places.folder(teacher).path / "distilled" if teacher else self.corpus(wildcards)

    def training_overrides(self, wildcards: Any) -> List[str]:
        run = self.runs[wildcards.run]
        words = [f"common.seed={run.seed}", *run.all_overrides]
        plugin = self.places.user_dir(run)
        words += [f"{plugins.KEY}={quoted(plugin)}"] if plugin else []
        return words + (
            [f"task.init_from_baseline={quoted(self.places.checkpoint(run.baseline))}"] if run.baseline else []
        )

    def plugin(self, wildcards: Any) -> List[str]:
        return plugin_option(self.runs[wildcards.run], self.places)

    def compare(self, wildcards: Any) -> List[str]:
        """The command that compares the translations of a run and another, or of several seeds of both."""
        run, split = self._pairs(wildcards)[0][0], wildcards.split
        task = composed_of(run).task
        ours, theirs = (
            [str(self.places.folder(each).evaluation(split).translations) for each in runs]
            for runs in zip(*self._pairs(wildcards))
        )
        first = self.places.corpus(run) / "raw" / f"{split}.{task.target_lang}"
        references = [str(path) for path in (first, *sorted(first.parent.glob(f"{first.name}[0-9]*")))]
        options = ["--rouge"] if task._name == "capsule_summarization" else ["--lang", task.target_lang]
        options += ["--lowercase"] if "--lowercase" in run.setting.decode else []
        if len(ours) > 1:
            texts = [*references, "--baseline", *theirs, "--system", *ours]
            return ["fairseq-capsule", "seeds", *texts, *options, "--json"]
        return ["fairseq-capsule", "score", *ours, *references, *options, "--against", *theirs, "--json"]

    def measure(self, wildcards: Any) -> List[str]:
        device = ["--device", "cuda"] if wildcards.source in TIMED and self.gpus(wildcards) else []
        return [*command(wildcards.source, self.runs[wildcards.run], self.places), *device]

    # --- the resources of a step -------------------------------------------------------------------------------------

    def gpus(self, wildcards: Any) -> int:
        wanted = self.runs[wildcards.run].setting.gpus
        return wanted if self.most_gpus is None else min(wanted, self.most_gpus)

    def one_gpu(self, wildcards: Any) -> int:
        return min(1, self.gpus(wildcards))

    def megabytes(self, wildcards: Any) -> int:
        return 1000 * self._run(wildcards).setting.memory

    def minutes(self, share: float) -> Callable[[Any], int]:
        """The time limit, on a cluster, of a step that takes a share of a training's hours."""
        return lambda wildcards: MINUTES_AT_LEAST + round(120 * share * self._run(wildcards).regime.hours)

    def _run(self, wildcards: Any) -> Run:
        return self.runs[wildcards.run] if hasattr(wildcards, "run") else self.corpora[wildcards.corpus]

    def refuse_wrong_plugins(self) -> None:
        """Refuse wrong plugins before anything is run.

        Raises:
            LabError: a plugin is missing or does not import this package, or a run was trained with another one.
        """
        wanted = {run.name: self.places.user_dir(run) for run in self.runs.values()}
        for folder in sorted({str(plugin) for plugin in wanted.values() if plugin}):
            plugins.plugin("the plugin", folder, REPOSITORY / "fairseq_capsule")
        for run in self.runs.values():
            recorded = self.places.folder(run).settings().get(plugins.KEY)
            if recorded not in (None, str(wanted[run.name])):
                raise LabError(
                    f"{self.places.folder(run).path}: trained with the plugin {one_line(str(recorded))[:300]}, not "
                    f"{wanted[run.name] or 'that of this package'}; give another --runs"
                )

    def refuse_missing_corpora(self) -> None:
        """Raise a LabError if a corpus needs a licence and is missing, before anything is run."""
        for name, run in self.corpora.items():
            folder = self.licensed / run.setting.licensed
            if run.setting.licensed and not folder.is_dir() and not (self.places.corpus(run) / "manifest.tsv").exists():
                raise LabError(
                    f"{name}: this corpus needs a licence, and there is no folder {run.setting.licensed} here: link "
                    f"the corpus there, or run {run.setting.prepare[0]} first (see docs/corpora.md)"
                )


def targets(
    table: Table,
    scale: Scale,
    places: Places,
    seeds: Sequence[int] = (1,),
    rows: Optional[List[str]] = None,
    baseline: Optional[Path] = None,
    gpus: Optional[int] = None,
    licensed: Path = Path(),
) -> Targets:
    """The runs, comparisons and measurements of a table at a scale.

    Args:
        rows: labels; all by default.
        baseline: a checkpoint that replaces the Transformer that rows start from or learn from.
        gpus: how many there are; None for no limit.
        licensed: the folder with the folders of licensed corpora.

    Raises:
        LabError: an unknown row or measure, or a baseline that is missing or that no row needs.
    """
    require_measures(table)
    runs: Dict[str, Run] = {}
    trained: Dict[str, Run] = {}
    compared: Dict[str, List[Tuple[Run, Run]]] = {}
    cells: Dict[str, None] = {}
    for row, seed, column in ((r, s, c) for r in table.to_run(rows) for s in seeds for c in table.columns):
        run, other = compared_runs(table, row, column, scale, seed, places, baseline is not None)
        measure = measure_of(column.measure)
        if not applies(column.measure, run) or (measure.source in TIMED and seed != seeds[0]):
            continue  # the model that is timed is not trained, so it is the same for all seeds
        needed = {each.name: each for each in run.with_needed()}
        if other and not measure.source:
            needed.update((each.name, each) for each in other.with_needed())
        for name, each in needed.items():
            if places.user_dir(runs.get(name, each)) != places.user_dir(each):
                raise LabError(f"{name}: two rows name different plugins of the same folder name; rename one folder")
        runs.update(needed)
        trained.update(needed if measure.source not in TIMED else {})
        if measure.source:
            cells[f"{run.name}/measures/{measure.source}.json"] = None
            continue
        for split in (split for split in column.splits if split in run.setting.splits):
            cells[f"{run.name}/evaluation/{split}/scores.json"] = None
            if other and measure.external:
                cells[f"{other.name}/evaluation/{split}/scores.json"] = None
            elif other:
                folder = run.compared_folder(other, seeds)
                pairs = compared.setdefault(folder, [])
                pairs += [] if (run, other) in pairs else [(run, other)]
                cells[f"{folder}/{split}.json"] = None
    given = [run for run in runs.values() if run.config == GIVEN]
    if baseline and not baseline.is_file():
        raise LabError(f"--baseline {baseline}: no such checkpoint")
    if baseline and not given:
        raise LabError(
            f"--baseline: no row of {table.name}{' in --rows' if rows else ''} starts from the Transformer or "
            "learns from it; omit the option"
        )
    for run in given:
        _require_same(places.checkpoint(run), baseline)
    corpora = {run.setting.data: run for run in trained.values()}
    trainings = [run.name for run in trained.values() if run.config != GIVEN]
    return Targets(table, scale, places, licensed, gpus, baseline, runs, trainings, corpora, compared, list(cells))


def configured(config: Mapping[str, Any], runs: Path) -> Targets:
    """The targets for the keys of Snakemake's `--config`: table, scale, data, and the arguments of `targets`."""
    baseline, gpus, plugin = (config.get(key) for key in ("baseline", "gpus", "plugin"))
    here = Path(config.get("here", "."))
    scale = load_scale(config["scale"])
    places = Places(runs, Path(config["data"]).absolute(), here, Path(plugin) if plugin else None)
    places.require_plain(scale)
    return targets(
        load_table(config["table"]),
        scale,
        places,
        [int(seed) for seed in config.get("seeds", [1])],
        config.get("rows"),
        Path(baseline) if baseline else None,
        None if gpus is None else int(gpus),
        here,
    )


def _require_same(given: Path, baseline: Optional[Path]) -> None:
    """Raise a LabError if an earlier call gave another baseline here."""
    before = given.resolve()
    if given.is_symlink() and not before.exists():
        raise LabError(f"{given.parent}: the baseline of an earlier call, {before}, is missing; give another --runs")
    if baseline and given.exists() and before != baseline.resolve():
        raise LabError(f"{given.parent}: the baseline of an earlier call is {before}; give another --runs")
