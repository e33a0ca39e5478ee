"""A table at a scale with its seeds, as workflow/Snakefile reads it: the files that are wanted, and the words of each command.

Files of runs are named from the folder of runs, where Snakemake works. Words of commands hold absolute paths, so that
a printed command runs anywhere.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, Optional

from fairseq_capsule.errors import UserError
from fairseq_capsule.tables.definitions import CONFIGS, REPOSITORY, Table, filled, load_table
from fairseq_capsule.tables.measures import MEASURES, SCORED, SOURCES, TIMED, applies, composed_of
from fairseq_capsule.tables.runs import GIVEN, Places, Run, compared_runs
from fairseq_capsule.tables.scales import Scale, load_scale

MINUTES_AT_LEAST = 30  # of a job on a cluster; beyond that twice the guess


@dataclass(frozen=True)
class Targets:
    """`runs` are all, by name, `trainings` those that are trained, `corpora` their data, each with a run on it;
    `compared` the runs that others are compared with, by the pair's folder; `cells` the files that the table reads.
    `gpus`: how many there are; None: as many as wanted."""

    table: Table
    scale: Scale
    places: Places
    licensed: Path
    gpus: Optional[int]
    baseline: Optional[Path]
    runs: Dict[str, Run]
    trainings: List[str]
    corpora: Dict[str, Run]
    compared: Dict[str, Run]
    cells: List[str]

    # --- what a command waits for -----------------------------------------------------------------------------------

    def prepared(self, run: Run) -> str:
        return str(self.places.corpus(run) / "manifest.tsv")

    def trained(self, run: Run) -> str:
        """The file that is there when a run's checkpoint is."""
        made = run.is_averaged or run.config == GIVEN  # and not fairseq's own, which is there before the end
        return f"{run.name}/{run.checkpoint if made else 'finished'}"

    def before_training(self, run: Run) -> List[str]:
        needed = [self.prepared(run)]
        needed += [self.trained(run.baseline)] if run.baseline else []
        return [*needed, f"{run.teacher.name}/distilled/manifest.tsv"] if run.teacher else needed

    def before_measure(self, run: Run, source: str) -> List[str]:
        if source in TIMED:  # a model need not be trained for that
            return []
        scored = [f"{run.name}/evaluation/test/scores.json"] if source in SCORED else []
        return [self.trained(run), self.prepared(run), *scored]

    # --- the words of the commands ------------------------------------------------------------------------------------

    def prepare(self, run: Run) -> List[str]:
        script, *words = run.setting.prepare
        words = [filled(word, {"licensed": str(self.licensed / run.setting.licensed)}) for word in words]
        return [str(REPOSITORY / script), *words, str(self.places.corpus(run))]

    def train(self, run: Run) -> List[str]:
        setting, gpus = run.setting, self.gpus_of(run)
        data = self.places.distilled(run.teacher) if run.teacher else self.places.corpus(run)
        options = ["--gpus", str(gpus)] if gpus else []
        options += ["--effective-tokens", str(setting.effective_tokens)] if setting.effective_tokens else []
        config = CONFIGS / setting.configs / f"{run.config}.yaml"
        words = [f"common.seed={run.seed}", *setting.overrides, *run.regime.overrides, *run.overrides]
        words += [f"task.init_from_baseline={_quoted(self.places.checkpoint(run.baseline))}"] if run.baseline else []
        folder = self.places.folder(run)
        return [str(REPOSITORY / "scripts/train.sh"), *options, *map(str, (config, data / "bin", folder)), *words]

    def adopt(self, run: Run) -> List[str]:
        task, folder = composed_of(run).task, self.places.folder(run)
        words = {"checkpoint": self.baseline, "out": folder, "source": task.source_lang, "target": task.target_lang}
        command = ["python", "-m", "fairseq_capsule_runs", "reproduce.sh", "adopt"]
        return [*command, *(f"{name}={value}" for name, value in words.items())]

    def average(self, run: Run) -> List[str]:
        words = [str(self.places.folder(run)), *run.regime.average, "--output", str(self.places.checkpoint(run))]
        return ["fairseq-capsule", "average", *words]

    def distil(self, run: Run) -> List[str]:
        folders = (self.places.checkpoint(run), self.places.corpus(run) / "bin", self.places.distilled(run))
        return [str(REPOSITORY / "scripts/distill.sh"), *run.setting.distill, *map(str, folders)]

    def evaluate(self, run: Run, split: str) -> List[str]:
        options = ["--split", split, "--checkpoints", run.checkpoint, *run.setting.decode]
        folders = [str(self.places.folder(run)), str(self.places.corpus(run))]
        return [str(REPOSITORY / "scripts/evaluate.sh"), *options, *folders]

    def compare(self, run: Run, other: Run, split: str) -> List[str]:
        task, folder = composed_of(run).task, self.places.corpus(run) / "raw"
        ours, theirs = (str(self.places.run_folder(each).evaluation(split).translations) for each in (run, other))
        further = sorted(folder.glob(f"{split}.{task.target_lang}[0-9]*"))
        references = [str(path) for path in (folder / f"{split}.{task.target_lang}", *further)]
        options = ["--rouge"] if task._name == "capsule_summarization" else ["--lang", task.target_lang]
        options += ["--lowercase"] if "--lowercase" in run.setting.decode else []
        return ["fairseq-capsule", "score", ours, *references, *options, "--against", theirs, "--json"]

    def measure(self, run: Run, source: str) -> List[str]:
        device = ["--device", "cuda"] if source in TIMED and self.gpus_of(run) else []  # a GPU's figure where there is one
        return [*SOURCES[source](run, self.places), *device]

    def tabulate(self) -> List[str]:
        words = [self.table.name, "--scale", self.scale.name, "--runs", str(self.places.runs)]
        return ["fairseq-capsule", "table", *words]

    # --- resources ----------------------------------------------------------------------------------------------------

    def gpus_of(self, run: Run) -> int:
        return run.setting.gpus if self.gpus is None else min(run.setting.gpus, self.gpus)

    def minutes(self, run: Run, share: float = 1.0) -> int:
        """How long a job may take on a cluster, that takes a share of a training's time."""
        used = self.gpus_of(run)
        hours = run.regime.hours * (run.setting.gpus / used if used else 1) * share
        return MINUTES_AT_LEAST + round(120 * hours)

    def refuse_missing_corpora(self) -> None:
        """Raise a UserError for a corpus that is handed out under a licence and not there, before anything is run."""
        for name, run in self.corpora.items():
            folder = self.licensed / run.setting.licensed
            if run.setting.licensed and not folder.is_dir() and not (self.places.corpus(run) / "manifest.tsv").exists():
                raise UserError(
                    f"{name}: no folder {run.setting.licensed} here, where the licensed corpus is looked for: link it "
                    f"there, or run {run.setting.prepare[0]} first (see docs/corpora.md)"
                )


def targets(
    table: Table,
    scale: Scale,
    places: Places,
    seeds: Iterable[int] = (1,),
    rows: Optional[List[str]] = None,
    baseline: Optional[Path] = None,
    gpus: Optional[int] = None,
    licensed: Path = Path(),
) -> Targets:
    """
    Args:
        rows: labels; all by default.
        baseline: a checkpoint in the place of the Transformer that others start from, or are taught by.
        gpus: how many there are; None: as many as are wanted.
        licensed: the folder with those of licensed corpora.

    Raises:
        UserError: an unknown row, or a baseline that is not there or that no row needs.
    """
    runs: Dict[str, Run] = {}
    trained: Dict[str, Run] = {}
    compared: Dict[str, Run] = {}
    cells: Dict[str, None] = {}
    for row, seed, column in ((r, s, c) for r in table.to_run(rows) for s in seeds for c in table.columns):
        run, other = compared_runs(table, row, column, scale, seed, places, baseline is not None)
        measure = MEASURES[column.measure]
        if not applies(column.measure, run):
            continue
        for each in filter(None, (run, other)):
            runs.update((needed.name, needed) for needed in each.with_needed())
            if measure.source not in TIMED:
                trained.update((needed.name, needed) for needed in each.with_needed())
        if measure.source:
            cells[f"{run.name}/measures/{measure.source}.json"] = None
            continue
        for split in (split for split in column.splits if split in run.setting.splits):
            cells[f"{run.name}/evaluation/{split}/scores.json"] = None
            if other:
                compared[f"{run.name}/compared/{other.title}"] = other
                cells[f"{run.name}/compared/{other.title}/{split}.json"] = None
    given = [run for run in runs.values() if run.config == GIVEN]
    if baseline and not baseline.is_file():
        raise UserError(f"--baseline {baseline}: no such checkpoint")
    if baseline and not given:
        raise UserError(
            f"--baseline: no row of {table.name}{' in --rows' if rows else ''} starts from the Transformer or is "
            "taught by it; leave it out"
        )
    for run in given:
        _require_same(places.checkpoint(run), baseline)
    corpora = {run.setting.data: run for run in trained.values()}
    trainings = [run.name for run in trained.values() if run.config != GIVEN]
    return Targets(table, scale, places, licensed, gpus, baseline, runs, trainings, corpora, compared, list(cells))


def configured(config: Mapping[str, Any], runs: Path) -> Targets:
    """The targets that Snakemake's `--config` names: table, scale, seeds, data, and further ones of `targets`."""
    baseline, gpus = config.get("baseline"), config.get("gpus")
    return targets(
        load_table(config["table"]),
        load_scale(config["scale"]),
        Places(runs, Path(config["data"]).absolute()),
        [int(seed) for seed in config.get("seeds", [1])],
        config.get("rows"),
        Path(baseline) if baseline else None,
        None if gpus is None else int(gpus),
        Path(config.get("licensed", ".")),
    )


def _require_same(given: Path, baseline: Optional[Path]) -> None:
    """Raise a UserError where another baseline was given here before."""
    before = given.resolve()
    if given.is_symlink() and not before.exists():
        raise UserError(f"{given.parent}: the baseline given here before, {before}, is gone; name another --runs")
    if baseline and given.exists() and before != baseline.resolve():
        raise UserError(f"{given.parent}: the baseline given here before was {before}; name another --runs")


def _quoted(path: Path) -> str:
    """As Hydra reads it, whatever is in it; what it would read as it is stays as it is."""
    text = str(path)
    if re.fullmatch(r"[\w/.+-]+", text, re.ASCII):
        return text
    escaped = re.sub(r"([\\'])", r"\\\1", text)
    return f"'{escaped}'"
