"""Running jobs through submitit: here, one after another, or all at once under Slurm, which keeps their order."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, Dict, List, Optional, Sequence

import submitit
import torch

from fairseq_capsule.data.files import write_whole
from fairseq_capsule.errors import UserError
from fairseq_capsule.tables.measures import Step, reason_file
from fairseq_capsule.tables.planning import Job, needed_by

YEAR = 365 * 24 * 60  # minutes: local jobs are not to be stopped, and submitit gives them two minutes


def run_job(job: Job) -> Optional[str]:
    """Do a job's steps; returns why it had to stop, None when it did not."""
    for step in job.steps:
        reason = _report(step) if step.reports else _command(step)
        if reason:
            return reason
    return None


def _command(step: Step) -> Optional[str]:
    reason = _failure(step.command)
    if reason:
        return f"{Path(step.command[0]).name}: {reason}"
    return None if step.product.exists() else f"{step.command[0]} ended well and made no {step.product}"


def _report(step: Step) -> None:
    """Keep what a command reports, or why it did not."""
    with tempfile.TemporaryFile() as output:
        reason = _failure(step.command, output)
        output.seek(0)
        lines = output.read().splitlines()
    step.product.parent.mkdir(parents=True, exist_ok=True)
    if reason:
        write_whole(reason_file(step.product), reason.encode())
        return
    write_whole(step.product, lines[-1])
    reason_file(step.product).unlink(missing_ok=True)


def _failure(command: Sequence[str], output: Optional[IO] = None) -> Optional[str]:
    """Run a command, passing on what it says to stderr while it says it; why it failed is the last of it."""
    last = "it said nothing"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    with subprocess.Popen(
        command, stdout=output, stderr=subprocess.PIPE, text=True, errors="replace", env={**os.environ, "PATH": path}
    ) as process:
        try:
            for line in process.stderr:
                print(line, end="", file=sys.stderr, flush=True)
                last = line.strip() or last
        except KeyboardInterrupt:
            process.terminate()
            raise
    return last if process.returncode else None


def heed_signals() -> None:
    """Let SIGTERM end what `launch_here` runs, and SIGINT, to which what a script starts in the background is deaf."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


def launch_here(jobs: Sequence[Job], logs: Path) -> Dict[str, str]:
    """Run jobs one after another; one that waits for a failed one is left out. Returns why those that failed did."""
    failed: Dict[str, str] = {}
    executor = submitit.LocalExecutor(folder=logs / "%j")
    for number, job in enumerate(jobs, start=1):
        if job.name in needed_by(jobs, set(failed)):
            continue
        start = time.monotonic()
        executor.update_parameters(timeout_min=YEAR)
        submitted = executor.submit(_run_on, _visible_gpus()[: job.gpus], job)
        try:
            log = submitted.paths.stderr.with_suffix(".*")
            print(f"[{number}/{len(jobs)}] {job.name}: about {job.hours:.2g} h; tail -f {log}", flush=True)
            reason = submitted.result()
        except submitit.core.utils.FailedJobError as error:  # whose text has the trace between two rules
            reason = str(error).rpartition("\n---")[0].strip().splitlines()[-1]
        except submitit.core.utils.UncompletedJobError:
            reason = "killed, perhaps for want of memory"
        except KeyboardInterrupt:
            submitted.cancel()  # a job of submitit's outlives who started it
            submitted.wait()
            raise
        if reason:
            failed[job.name] = f"{reason} (all of it: {submitted.paths.stderr})"
            print(f"  failed: {failed[job.name]}", file=sys.stderr, flush=True)
        else:
            print(f"  done in {time.monotonic() - start:.0f} s", flush=True)
    return failed


def _visible_gpus() -> List[str]:
    """Their names for CUDA_VISIBLE_DEVICES."""
    names = os.environ.get("CUDA_VISIBLE_DEVICES")
    return [str(number) for number in range(torch.cuda.device_count())] if names is None else names.split(",")


def _run_on(gpus: Sequence[str], job: Job) -> Optional[str]:
    """`run_job` on these GPUs: submitit would count them from 0, whichever are given to who launches."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(gpus)
    return run_job(job)


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
