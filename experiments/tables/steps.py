"""The steps of a table at a scale, computed once: they run here one after another, or as the jobs of a cluster.

Words of commands hold absolute paths.
"""

import os
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence, Tuple

from capsule_routing.errors import UserError, one_line
from experiments.tables import costs, sources
from experiments.tables.definitions import CONFIGS, REPOSITORY, Table, filled
from experiments.tables.jobs import Step
from experiments.tables.measures import MEASURES
from experiments.tables.runs import GIVEN, Run, TableRuns, Workspace, task_of
from experiments.tables.scales import Scale
from fairseq_capsule_lab.runs import plugins
from fairseq_capsule_lab.values import quoted

# The limit of a job on a cluster: minutes, and a multiple of the hours that `costs` counts, for an H100. It is the
# larger one in float32 or with the small batches of the papers' GPUs. A training that is stopped resumes.
MINUTES_AT_LEAST, TIMES, TIMES_SLOW = 30, 2, 8


@dataclass(frozen=True)
class Work:
    """What a table needs at a scale.

    Attributes:
        gpus: how many there are; None for no limit.
        cores: of one training.
        precision, max_tokens: of trainings on GPUs; the batch that a GPU takes at once, if it is not the paper's.
        runs, trained: all runs, by name, those that others need first; and those of them that have a checkpoint.
        evaluated: pairs of a run's name and a test set.
        measured: for a run's name and a source of `sources`, the runs whose translations it reads.
        compared: for each file of a comparison, the runs that are compared, a pair for each seed.
        cells: the files that the table is read from.
    """

    gpus: Optional[int]
    cores: int
    precision: str = ""
    max_tokens: int = 0
    runs: Dict[str, Run] = field(default_factory=dict)
    trained: Dict[str, Run] = field(default_factory=dict)
    evaluated: Dict[Tuple[str, str], None] = field(default_factory=dict)
    compared: Dict[str, Dict[Tuple[Run, Run], None]] = field(default_factory=dict)
    measured: Dict[Tuple[str, str], List[Run]] = field(default_factory=dict)
    cells: Dict[str, None] = field(default_factory=dict)

    @property
    def corpora(self) -> Dict[str, Run]:
        """For each corpus, one of the runs on it."""
        return {run.setup.data: run for run in self.trained.values()}

    @property
    def trainings(self) -> List[str]:
        """The names of the runs that are trained."""
        return [run.name for run in self.trained.values() if run.config != GIVEN]

    # --- what a cell of the table needs ------------------------------------------------------------------------------

    def need(self, run: Run, trained: bool = True) -> None:
        """Add a run and those that it needs; without `trained`, its model is built, but not trained."""
        for needed in run.with_needed():
            if self.runs.setdefault(needed.name, needed).plugin != needed.plugin:
                raise UserError(
                    f"{needed.name}: two rows name different plugins of the same folder name; rename one folder"
                )
            if trained:
                self.trained[needed.name] = needed

    def measure(self, run: Run, source: str) -> None:
        """Add the measurement of a run, and the evaluations that it reads."""
        translated = [run] if source in sources.SCORED else []
        translated += [run.baseline] if source in sources.PAIRED and run.baseline else []
        self.measured[run.name, source] = translated
        self.evaluated.update({(scored.name, "test"): None for scored in translated})
        self.cells[run.measurement(source)] = None

    def score(self, run: Run, other: Optional[Run], splits: Sequence[str], seeds: Sequence[int]) -> None:
        """Add the evaluation of a run, and its comparison with another one over the seeds of both."""
        if other:
            self.need(other)
        for split in splits:
            self.evaluated.update(dict.fromkeys((scored.name, split) for scored in (run, other) if scored))
            self.cells[run.scores(split)] = None
            if other:
                compared = run.comparison(other, seeds, split)
                self.compared.setdefault(compared, {})[run, other] = None
                self.cells[compared] = None

    # --- its steps ---------------------------------------------------------------------------------------------------

    def steps(self) -> List[Step]:
        """All steps, each after those that it needs."""
        teachers = {run.teacher.name for run in self.runs.values() if run.teacher}
        made = [self._prepare(run) for run in self.corpora.values()]
        for name, run in self.runs.items():
            if name in self.trained and run.config != GIVEN:
                made += [self._train(run), *([self._average(run)] if run.is_averaged else [])]
            made += [self._distil(run)] if name in teachers else []
            made += [self._evaluate(run, split) for evaluated, split in self.evaluated if evaluated == name]
            measured = ((source, runs) for (of_run, source), runs in self.measured.items() if of_run == name)
            made += [self._measure(run, source, runs) for source, runs in measured]
        return made + [self._compare(output, list(pairs)) for output, pairs in self.compared.items()]

    def _prepare(self, run: Run) -> Step:
        script, *words = run.setup.prepare
        licensed = {"licensed": str(run.workspace.here / run.setup.licensed)}
        words = [str(REPOSITORY / script), *(filled(word, licensed) for word in words), str(run.corpus)]
        log = f"{run.scale}/log/prepare-{run.setup.data}.log"
        return self._step("prepare", run, str(run.prepared), words, [], log=log)

    def _train(self, run: Run) -> Step:
        gpus = self._gpus(run)
        tokens = run.setup.effective_tokens
        data = run.teacher.folder.path / "distilled" if run.teacher else run.corpus
        words = [REPOSITORY / "scripts" / "train.sh", *(["--gpus", gpus] if gpus else [])]
        words += ["--precision", self.precision] if gpus and self.precision else []
        words += ["--effective-tokens", tokens] if tokens else []
        words += [CONFIGS / run.setup.configs / f"{run.config}.yaml", data / "bin", run.folder.path]
        words += [f"common.seed={run.seed}", *run.all_overrides]
        if tokens and gpus and self.max_tokens:  # in as few parts as fit, and equal ones
            words += [f"dataset.max_tokens={tokens // (gpus * ceil(tokens / gpus / self.max_tokens))}"]
        words += [f"{plugins.KEY}={quoted(run.plugin)}"] if run.plugin else []
        needs = [str(run.prepared)]
        if run.baseline:
            words += [f"task.init_from_baseline={quoted(run.baseline.checkpoint)}"]
            needs += [run.baseline.complete]
        needs += [run.teacher.distilled] if run.teacher else []
        return self._step("train", run, f"{run.name}/finished", words, needs, gpus=gpus)

    def _average(self, run: Run) -> Step:
        words = ["fairseq-capsule", "average", run.folder.path, *run.regime.average, "--output", run.checkpoint]
        return self._step("average", run, run.complete, words, [f"{run.name}/finished"], threads=1)

    def _distil(self, run: Run) -> Step:
        words = [REPOSITORY / "scripts" / "distill.sh", *run.setup.distill, *run.plugin_option]
        words += [run.checkpoint, run.corpus / "bin", run.folder.path / "distilled"]
        return self._step("distil", run, run.distilled, words, run.translation_needs, gpus=self._gpus(run))

    def _evaluate(self, run: Run, split: str) -> Step:
        words = [REPOSITORY / "scripts" / "evaluate.sh", "--split", split, "--checkpoints", run.checkpoint.name]
        words += [*run.setup.decode, *run.plugin_option, run.folder.path, run.corpus]
        log = f"{run.name}/log/evaluate-{split}.log"
        gpus = min(1, self._gpus(run))
        return self._step("evaluate", run, run.scores(split), words, run.translation_needs, log=log, gpus=gpus)

    def _compare(self, output: str, pairs: Sequence[Tuple[Run, Run]]) -> Step:
        """Compare the translations of a run and another, or of several seeds of both."""
        run = pairs[0][0]
        split = Path(output).stem
        task = task_of(run)
        ours, theirs = ([run.folder.evaluation(split).translations for run in runs] for runs in zip(*pairs))
        first = run.corpus / "raw" / f"{split}.{task.target_lang}"
        references = [first, *sorted(first.parent.glob(f"{first.name}[0-9]*"))]
        options = ["--rouge"] if task._name == "capsule_summarization" else ["--lang", task.target_lang]
        options += ["--lowercase"] if "--lowercase" in run.setup.decode else []
        if len(ours) > 1:
            of_seeds = [":".join(map(str, outputs)) for outputs in (theirs, ours)]
            words = ["seeds", *references, "--baseline", of_seeds[0], "--system", of_seeds[1], *options, "--json"]
        else:
            words = ["score", *ours, *references, *options, "--against", *theirs, "--json"]
        needs = list(dict.fromkeys(run.scores(split) for pair in pairs for run in pair))
        system, _, other = os.path.dirname(output).partition("/compared/")
        log = f"{system}/log/compare-{split}-{other}.log"
        return Step("compare", output, ["fairseq-capsule", *map(str, words)], log, needs, prints=True)

    def _measure(self, run: Run, source: str, translated: Sequence[Run]) -> Step:
        needs = [] if source in sources.TIMED else run.translation_needs  # an untrained model is timed
        needs += [scored.scores("test") for scored in translated]
        gpus = min(1, self._gpus(run))
        log = f"{run.name}/log/measure-{source}.log"
        words = sources.command(source, run) + (["--device", "cuda"] if source in sources.TIMED and gpus else [])
        return self._step("measure", run, run.measurement(source), words, needs, log=log, gpus=gpus, prints=True)

    def _step(self, kind: str, run: Run, output: str, words: Sequence[Any], needs: List[str], **options: Any) -> Step:
        """A step of a run, with all cores and the memory of a training, and a limit by its cost."""
        cost = costs.cost(kind, run)
        hours = cost.get("gpu_hours", 0) / max(1, options.get("gpus", 0)) + cost.get("cpu_hours", 0)
        usual = {"log": f"{run.name}/log/{kind}.log", "threads": self.cores, "megabytes": 1000 * run.setup.memory}
        times = TIMES if self.precision and self.max_tokens else TIMES_SLOW
        usual["minutes"] = MINUTES_AT_LEAST + round(60 * times * hours)
        return Step(kind, output, list(map(str, words)), needs=needs, **{**usual, **cost, **options})

    def _gpus(self, run: Run) -> int:
        return run.setup.gpus if self.gpus is None else min(run.setup.gpus, self.gpus)

    # --- what is refused before anything runs ------------------------------------------------------------------------

    def refuse_wrong_plugins(self) -> None:
        """Raise a UserError if a plugin is missing or does not import this package, or a run has another one."""
        for folder in sorted({str(run.plugin) for run in self.runs.values() if run.plugin}):
            plugins.plugin("the plugin", folder, REPOSITORY / "fairseq_capsule")
        for run in self.runs.values():
            recorded = run.folder.settings().get(plugins.KEY)
            if recorded not in (None, str(run.plugin)):
                raise UserError(
                    f"{run.folder.path}: trained with the plugin {one_line(str(recorded))[:300]}, not "
                    f"{run.plugin or 'that of this package'}; give another --runs"
                )

    def refuse_missing_corpora(self) -> None:
        """Raise a UserError if a corpus needs a licence and is missing."""
        for name, run in self.corpora.items():
            folder = run.workspace.here / run.setup.licensed
            if run.setup.licensed and not folder.is_dir() and not run.prepared.exists():
                raise UserError(
                    f"{name}: this corpus needs a licence, and there is no folder {run.setup.licensed} here: link "
                    f"the corpus there, or run {run.setup.prepare[0]} first (see docs/corpora.md)"
                )

    def adopt(self, baseline: Path) -> None:
        """Make the run folders of a given checkpoint."""
        for run in self.runs.values():
            if run.config == GIVEN and not run.checkpoint.exists():
                task = task_of(run)
                run.folder.adopt(baseline, task.source_lang, task.target_lang)


def work_of(
    table: Table,
    scale: Scale,
    workspace: Workspace,
    seeds: Sequence[int] = (1,),
    rows: Sequence[str] = (),
    baseline: Optional[Path] = None,
    gpus: Optional[int] = None,
    cores: int = 8,
    precision: str = "",
    max_tokens: int = 0,
) -> Work:
    """The runs, comparisons and measurements of a table at a scale.

    Args:
        rows: labels; all by default.
        baseline: a checkpoint that replaces the Transformer that rows start from or learn from.
        gpus: how many there are; None for no limit.
        cores: of one training.
        precision, max_tokens: as in `Work`.

    Raises:
        UserError: an unknown row, or a baseline that no row needs or that an earlier call did not have.
    """
    work, runs = Work(gpus, cores, precision, max_tokens), TableRuns(table, scale, workspace, baseline is not None)
    for row, seed, column in ((r, s, c) for r in table.to_run(rows) for s in seeds for c in table.columns):
        run, other = runs.compared(row, column, seed)
        source = MEASURES[column.measure].source
        if not sources.applies(column, run) or (source in sources.TIMED and seed != seeds[0]):
            continue  # the model that is timed is not trained, so it is the same for all seeds
        work.need(run, trained=source not in sources.TIMED)
        if source:
            work.measure(run, source)
        else:
            work.score(run, other, [split for split in column.splits if split in run.setup.splits], seeds)
    given = [run for run in work.runs.values() if run.config == GIVEN]
    if baseline and not given:
        raise UserError(
            f"--baseline: no row of {table.name}{' in --rows' if rows else ''} starts from the Transformer or "
            "learns from it; omit the option"
        )
    for link in (run.checkpoint for run in given if run.checkpoint.is_symlink()):
        if baseline and link.resolve() != baseline.resolve():
            raise UserError(f"{link.parent}: the baseline of an earlier call is {link.resolve()}; give another --runs")
    return work
