"""Plans: which commands are missing for a table, as jobs in their order of dependence. Nothing is run here."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Dict, List, Optional, Sequence, Set, Tuple

from fairseq_capsule.errors import UserError
from fairseq_capsule.tables.definitions import CONFIGS, REPOSITORY, Column, Table
from fairseq_capsule.tables.measures import (
    MEASURES,
    SCORED,
    TIMED,
    Step,
    applies,
    composed_of,
    report_step,
)
from fairseq_capsule.tables.runs import GIVEN, PROBE, Places, Run, compared_runs
from fairseq_capsule.tables.scales import Scale

TIMING = 0.2  # hours, for what is only timed


@dataclass(frozen=True)
class Job:
    """Steps of one process, one after another; it waits for the jobs that `after` names."""

    name: str
    steps: Tuple[Step, ...]
    after: Tuple[str, ...] = ()
    gpus: int = 0
    hours: float = 0.0


@dataclass
class _Wanted:
    """What a table wants of a run beyond its training."""

    against: Optional[Run] = None
    splits: Tuple[str, ...] = ()
    sources: Tuple[str, ...] = ()

    def add(self, column: Column, run: Run, against: Optional[Run]) -> None:
        measure = MEASURES[column.measure]
        if not applies(column.measure, run):
            return
        scored = measure.source is None or measure.source in SCORED
        splits = [split for split in column.splits if split in run.setting.splits] if scored else []
        self.splits = tuple(dict.fromkeys([*self.splits, *splits]))
        self.sources = tuple(dict.fromkeys([*self.sources, *filter(None, [measure.source])]))
        self.against = against if measure.source is None else self.against

    @property
    def untrained(self) -> bool:
        """Whether all of it is timed, for which a model need not be trained."""
        return bool(self.sources) and not self.splits and TIMED.issuperset(self.sources)


def plan(
    table: Table,
    scale: Scale,
    places: Places,
    seeds: Sequence[int] = (1,),
    rows: Optional[List[str]] = None,
    baseline: Optional[Path] = None,
    gpus: Optional[int] = None,
) -> List[Job]:
    """The jobs of what is missing, each behind those that it waits for.

    Args:
        rows: labels; all by default. What they need is planned with them.
        baseline: a checkpoint in the place of the Transformer that others start from, or are taught by.
        gpus: how many there are; None: as many as are wanted.

    Raises:
        UserError: an unknown row, or a baseline for a table whose rows need no Transformer.
    """
    wanted: Dict[Run, _Wanted] = {}
    for row in table.in_order(rows):
        for column in table.columns:
            for seed in seeds:
                run, other = compared_runs(table, row, column, scale, seed, places, baseline is not None)
                wanted.setdefault(run, _Wanted()).add(column, run, other)
    if baseline and not baseline.is_file():
        raise UserError(f"--baseline {baseline}: no such checkpoint")
    if baseline and not any(run.config == GIVEN for run in wanted):
        raise UserError(
            f"--baseline: no row of {table.name}{' in --rows' if rows else ''} starts from the Transformer or is "
            "taught by it; leave it out"
        )

    jobs: Dict[str, Job] = {}
    needed = {other for run in wanted for other in (run.baseline, run.teacher, wanted[run].against)}
    for run in _in_order(wanted):
        if wanted[run].untrained and run not in needed:
            jobs[run.name] = _timing(run, wanted[run], places, gpus)
            continue
        before = [_prepare(run, places), *([_distill(run.teacher, places, gpus)] if run.teacher else [])]
        for job in (*before, _row_job(run, wanted[run], places, baseline, gpus)):
            jobs.setdefault(job.name, job)
    planned = [job for job in jobs.values() if job.steps]
    names = {job.name for job in planned}
    return [Job(j.name, j.steps, tuple(n for n in j.after if n in names), j.gpus, j.hours) for j in planned]


def _in_order(wanted: Dict[Run, _Wanted]) -> List[Run]:
    """Every run behind its baseline, its teacher, and what it is compared with."""
    ordered: List[Run] = []

    def add(run: Run) -> None:
        if run in ordered:
            return
        for needed in (run.baseline, run.teacher, wanted[run].against):
            if needed:
                add(needed)
        ordered.append(run)

    for run in wanted:
        add(run)
    return ordered


def _missing(steps: Sequence[Step]) -> Tuple[Step, ...]:
    return tuple(step for step in steps if not step.product.exists())


def _script(words: Sequence[str]) -> List[str]:
    return [str(REPOSITORY / words[0]), *words[1:]]


def _prepare(run: Run, places: Places) -> Job:
    folder = places.corpus(run)
    step = Step((*_script(run.setting.prepare), str(folder)), folder / "manifest.tsv")
    return Job(f"prepare {run.setting.data}", _missing([step]), hours=run.setting.from_scratch.hours / 5)


def _used(run: Run, gpus: Optional[int]) -> int:
    return run.setting.gpus if gpus is None else min(run.setting.gpus, gpus)


def _distill(teacher: Run, places: Places, gpus: Optional[int]) -> Job:
    """The teacher's translations of the training set."""
    folder, data = places.distilled(teacher), str(places.corpus(teacher) / "bin")
    options = teacher.setting.distill
    command = (*_script(["scripts/distill.sh"]), *options, str(places.checkpoint(teacher)), data, str(folder))
    hours = teacher.regime.hours / 10
    step = Step(command, folder / "manifest.tsv")
    after = (f"prepare {teacher.setting.data}", teacher.name)
    return Job(f"distill {teacher.name}", _missing([step]), after, _used(teacher, gpus), hours)


def _timing(run: Run, wanted: _Wanted, places: Places, gpus: Optional[int]) -> Job:
    used = min(1, _used(run, gpus))
    reports = [report_step(run, source, places, used) for source in wanted.sources]
    return Job(run.name, _missing(reports), (), used, TIMING)


def _row_job(run: Run, wanted: _Wanted, places: Places, baseline: Optional[Path], gpus: Optional[int]) -> Job:
    setting, used = run.setting, _used(run, gpus)
    training = _missing([_adopt(run, places, baseline)] if run.config == GIVEN else _training(run, places, used))
    evaluation = _evaluation(run, wanted, places)
    reports = [report_step(run, source, places, used) for source in wanted.sources]
    after = [f"prepare {setting.data}"]
    after += [needed.name for needed in (run.baseline, wanted.against) if needed]
    after += [f"distill {run.teacher.name}"] if run.teacher else []
    steps = (*training, *evaluation, *_missing(reports))
    hours = run.regime.hours * (setting.gpus / used if used else 1)
    if not training or run.config == GIVEN:
        hours = run.regime.hours / 10  # translating and measuring
    return Job(run.name, steps, tuple(after), used, hours)


def _adopt(run: Run, places: Places, baseline: Optional[Path]) -> Step:
    product, task = places.checkpoint(run), composed_of(run).task
    before = product.resolve()
    if product.is_symlink() and not before.exists():
        raise UserError(f"{product.parent}: the baseline given here before, {before}, is gone; name another --runs")
    if baseline and product.exists() and before != baseline.resolve():
        raise UserError(f"{product.parent}: the baseline given here before was {before}; name another --runs")
    module = ("python", "-m", "fairseq_capsule.tables.given")
    return Step((*module, str(baseline), str(product), task.source_lang, task.target_lang), product)


def _training(run: Run, places: Places, gpus: int) -> List[Step]:
    setting, folder = run.setting, places.folder(run)
    data = places.distilled(run.teacher) if run.teacher else places.corpus(run)
    config = CONFIGS / setting.configs / f"{run.config}.yaml"
    options = ["--gpus", str(gpus)] if gpus else []
    options += ["--effective-tokens", str(setting.effective_tokens)] if setting.effective_tokens else []
    words = [f"common.seed={run.seed}", *setting.overrides, *run.regime.overrides, *run.overrides]
    words += [f"task.init_from_baseline={_quoted(places.checkpoint(run.baseline))}"] if run.baseline else []
    train = (*_script(["scripts/train.sh"]), *options, str(config), str(data / "bin"), str(folder), *words)
    steps = [Step(train, places.run_folder(run).finished_file)]
    if run.regime.average and run.config != PROBE:
        output = places.checkpoint(run)
        average = ("fairseq-capsule", "average", str(folder), *run.regime.average, "--output", str(output))
        steps.append(Step(average, output))
    return steps


def _quoted(path: Path) -> str:
    """As Hydra reads it, whatever is in it; what it would read as it is stays as it is."""
    text = str(path)
    if re.fullmatch(r"[\w/.+-]+", text, re.ASCII):
        return text
    escaped = re.sub(r"([\\'])", r"\\\1", text)
    return f"'{escaped}'"


def _evaluation(run: Run, wanted: _Wanted, places: Places) -> List[Step]:
    """One call of evaluate.sh for the splits that are missing, or were compared with nothing or another run."""
    compared = str(places.folder(wanted.against)) if wanted.against else None

    def done(split: str) -> bool:
        found = places.run_folder(run).evaluation(split).scores()
        return found is not None and (compared is None or str(found.get("against")).startswith(f"{compared}/"))

    splits = [split for split in wanted.splits if not done(split)]
    if not splits:
        return []
    decode, folder = run.setting.decode, places.folder(run)
    options = ["--split", ",".join(splits), "--checkpoints", run.checkpoint, *decode]
    options += ["--against", compared] if compared else []
    command = (*_script(["scripts/evaluate.sh"]), *options, str(folder), str(places.corpus(run)))
    return [Step(command, places.run_folder(run).evaluation(splits[-1]).scores_file)]


def described(jobs: Sequence[Job]) -> str:
    """Every command, with what its job needs."""
    lines: List[str] = []
    for job in jobs:
        lines.append(
            f"# {job.name}: {job.gpus} GPUs, about {job.hours:.3g} h" + "".join(f"\n#   after {n}" for n in job.after)
        )
        lines += [
            shlex.join(step.command) + (f" | tail -n 1 > {step.product}" if step.reports else "") for step in job.steps
        ]
    total = sum(job.hours for job in jobs)
    return "\n".join([*lines, f"# {len(jobs)} jobs, about {total:.3g} hours one after another"])


def needed_by(jobs: Sequence[Job], failed: Set[str]) -> Set[str]:
    """The jobs that wait for a failed one, or for one that does."""
    waiting = set(failed)
    for job in jobs:
        if waiting & set(job.after):
            waiting.add(job.name)
    return waiting - failed


def refuse_missing_folders(jobs: Sequence[Job]) -> None:
    """Raise a UserError for a corpus that is handed out under a licence and not there, before anything is run.

    In the commands that prepare such a corpus its folder stands as a word in capitals.
    """
    for job in jobs:
        for step in job.steps:
            for word in step.command:
                if word.isupper() and word.isalpha() and not Path(word).is_dir():
                    raise UserError(
                        f"{job.name}: no folder {word} here, where the licensed corpus is looked for: link it there, "
                        f"or run {Path(step.command[0]).name} first (see docs/corpora.md)"
                    )
