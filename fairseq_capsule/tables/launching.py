"""Running jobs through submitit: here, one after another, or all at once under Slurm, which keeps their order."""

import subprocess
import sys
import time
from pathlib import Path
from typing import Dict, List, Optional, Sequence

import submitit

from fairseq_capsule.errors import UserError
from fairseq_capsule.files import write_whole
from fairseq_capsule.tables.measures import Step, reason_file
from fairseq_capsule.tables.planning import Job, needed_by

WEEK = 7 * 24 * 60  # minutes: local jobs are not to be stopped, and submitit gives them five minutes


def run_job(job: Job) -> Optional[str]:
    """Do a job's steps; returns why it had to stop, None when it did not."""
    for step in job.steps:
        reason = _report(step) if step.reports else _command(step)
        if reason:
            return reason
    return None


def _command(step: Step) -> Optional[str]:
    finished = subprocess.run(step.command, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(finished.stderr)
    if finished.returncode:
        return f"{Path(step.command[0]).name}: {_last_line(finished.stderr)}"
    return None if step.product.exists() else f"{step.command[0]} ended well and made no {step.product}"


def _report(step: Step) -> None:
    """Keep what a command reports, or why it did not."""
    finished = subprocess.run(step.command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    sys.stderr.write(finished.stderr)
    step.product.parent.mkdir(parents=True, exist_ok=True)
    if finished.returncode:
        write_whole(reason_file(step.product), _last_line(finished.stderr).encode())
        return
    write_whole(step.product, finished.stdout.splitlines()[-1].encode())
    reason_file(step.product).unlink(missing_ok=True)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def launch_here(jobs: Sequence[Job], logs: Path) -> Dict[str, str]:
    """Run jobs one after another; one that waits for a failed one is left out. Returns why those that failed did."""
    failed: Dict[str, str] = {}
    executor = submitit.LocalExecutor(folder=logs / "%j")
    for number, job in enumerate(jobs, start=1):
        if job.name in needed_by(jobs, set(failed)):
            continue
        print(f"[{number}/{len(jobs)}] {job.name}", flush=True)
        start = time.monotonic()
        executor.update_parameters(timeout_min=WEEK, gpus_per_node=job.gpus)
        submitted = executor.submit(run_job, job)
        try:
            reason = submitted.result()
        except (submitit.core.utils.UncompletedJobError, submitit.core.utils.FailedJobError) as error:
            reason = str(error).splitlines()[0]
        if reason:
            failed[job.name] = f"{reason} (all of it: {submitted.paths.stderr})"
            print(f"  failed: {failed[job.name]}", file=sys.stderr, flush=True)
        else:
            print(f"  done in {time.monotonic() - start:.0f} s", flush=True)
    return failed


def launch_on_slurm(jobs: Sequence[Job], logs: Path) -> List[str]:
    """Hand all jobs to Slurm, each after those that it waits for; returns their numbers there.

    Partition, account and the like are Slurm's own variables: SBATCH_PARTITION, SBATCH_ACCOUNT.

    Raises:
        UserError: there is no Slurm.
    """
    try:
        executor = submitit.SlurmExecutor(folder=logs / "%j")
    except RuntimeError as error:
        raise UserError(f"--launcher slurm: {error}") from error
    numbers: Dict[str, str] = {}
    for job in jobs:
        waits = ":".join(numbers[name] for name in job.after)
        executor.update_parameters(
            job_name=job.name,
            time=30 + round(120 * job.hours),  # minutes: twice the guess
            nodes=1,
            ntasks_per_node=1,
            dependency=f"afterok:{waits}" if waits else None,
            gpus_per_node=job.gpus or None,
        )
        numbers[job.name] = executor.submit(run_or_fail, job).job_id
    return list(numbers.values())


def run_or_fail(job: Job) -> None:
    """`run_job` for Slurm, where a job that ends well lets others start."""
    reason = run_job(job)
    if reason:
        raise UserError(f"{job.name}: {reason}")
