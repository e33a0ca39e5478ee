"""Jobs of small shell commands through submitit's executors."""

import json
import os
import signal
import subprocess
import sys

import pytest

from fairseq_capsule.errors import UserError
from fairseq_capsule.tables.definitions import load_table, table_names
from fairseq_capsule.tables.launching import YEAR, launch_here, launch_on_slurm, run_job
from fairseq_capsule.tables.measures import Step, reason_file
from fairseq_capsule.tables.planning import Job, plan
from fairseq_capsule.tables.scales import load_scale
from tests.integration.commands import wait_for

IMPORTS = (
    "from pathlib import Path; from fairseq_capsule.tables.measures import Step; "
    "from fairseq_capsule.tables.planning import Job; "
    "from fairseq_capsule.tables.launching import heed_signals, launch_here, run_job"
)


def shell(code, product, reports=False):
    return Step(("bash", "-c", code), product, reports)


def test_steps_go_one_after_another(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert run_job(Job("a", (shell(f"echo 1 > {first}", first), shell(f"cp {first} {second}", second)))) is None
    assert second.read_text() == "1\n"


def test_a_failing_command_stops_its_job(tmp_path):
    later = tmp_path / "later"
    steps = (shell("echo much >&2; echo 'no data' >&2; exit 3", tmp_path / "x"), shell(f"touch {later}", later))
    assert run_job(Job("a", steps)) == "bash: no data"
    assert not later.exists()


def test_what_a_command_says_is_passed_on_while_it_runs(tmp_path):
    """A command that waits until the word it said is in the log."""
    log, heard = tmp_path / "log", tmp_path / "heard"
    says = f"echo begun >&2; for i in $(seq 200); do grep -q begun {log} && touch {heard} && exit; sleep 0.05; done"
    job = f"Job('a', (Step(('bash', '-c', {says!r}), Path({str(heard)!r})),))"
    with log.open("w") as stderr:
        subprocess.run([sys.executable, "-c", f"{IMPORTS}; assert run_job({job}) is None"], stderr=stderr, check=True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("deaf", [False, True])
def test_an_interruption_ends_what_is_running(tmp_path, number, deaf):
    """The signal reaches the launcher alone, unlike Ctrl-C in a terminal, and the job has a process of its own."""
    running, ended = tmp_path / "running", tmp_path / "ended"
    # It runs once the job passes on what it says.
    heard = f"until grep -qs begun {tmp_path}/*/*.err; do sleep 0.05; done; touch {running}"
    code = f"trap 'touch {ended}; exit 1' TERM; echo begun >&2; {heard}; sleep 60 & wait"
    job = f"Job('a', (Step(('bash', '-c', {code!r}), Path('never')),))"
    before = signal.SIG_IGN if deaf else signal.SIG_DFL  # a script's background process, and one of a terminal
    launch = f"{IMPORTS}; heed_signals(); launch_here([{job}], Path({str(tmp_path)!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", launch],
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, before),
    ) as launcher:
        wait_for(running, launcher)
        launcher.send_signal(number)
    assert launcher.returncode != 0
    wait_for(ended)


def test_a_command_has_to_make_what_it_is_for(tmp_path):
    assert "made no" in run_job(Job("a", (shell("true", tmp_path / "x"),)))


def test_a_report_is_the_last_line(tmp_path):
    product = tmp_path / "measures" / "size.json"
    step = shell("""echo talk; echo '{"a": 1}'""", product, reports=True)
    product.parent.mkdir()
    reason_file(product).write_text("of before")
    assert run_job(Job("a", (step,))) is None
    assert json.loads(product.read_text()) == {"a": 1} and not reason_file(product).exists()


def test_a_failing_report_says_why_and_lets_the_others_be_made(tmp_path):
    lost, found = tmp_path / "lost.json", tmp_path / "found.json"
    steps = (shell("echo 'no eflomal' >&2; exit 1", lost, True), shell("echo {}", found, True))
    assert run_job(Job("a", steps)) is None
    assert reason_file(lost).read_text() == "no eflomal" and not lost.exists() and found.exists()


def test_what_waits_for_a_failed_job_is_left_out(tmp_path, capfd):
    done = tmp_path / "done"
    jobs = [
        Job("bad", (shell("echo broken >&2; exit 1", tmp_path / "x"),)),
        Job("waits", (shell(f"touch {tmp_path}/no", tmp_path / "no"),), after=("bad",)),
        Job("good", (shell(f"touch {done}", done),)),
    ]
    failed = launch_here(jobs, tmp_path / "jobs")
    assert list(failed) == ["bad"] and failed["bad"].startswith("bash: broken (all of it: ")
    assert done.exists() and not (tmp_path / "no").exists()
    assert "[3/3] good" in capfd.readouterr().out


def test_what_ends_a_job_from_outside_or_inside_is_told(tmp_path):
    jobs = [
        Job("killed", (shell("kill -9 $PPID", tmp_path / "x"),)),
        Job("broken", (Step(("no-such-command",), tmp_path / "x"),)),
    ]
    failed = launch_here(jobs, tmp_path / "jobs")
    assert failed["killed"].startswith("killed, perhaps for want of memory (all of it: ")
    assert failed["broken"].startswith("FileNotFoundError: [Errno 2] No such file or directory: 'no-such-command'")


@pytest.mark.parametrize("visible, gpus, seen", [("GPU-f1,3", 1, "GPU-f1"), ("2,3", 2, "2,3"), ("2,3", 0, "")])
def test_a_job_sees_no_gpu_that_its_launcher_does_not(tmp_path, monkeypatch, visible, gpus, seen):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    found = tmp_path / "found"
    steps = (shell(f"echo $CUDA_VISIBLE_DEVICES > {found}", found),)
    assert launch_here([Job("a", steps, gpus=gpus)], tmp_path / "jobs") == {}
    assert found.read_text() == f"{seen}\n"
    assert os.environ["CUDA_VISIBLE_DEVICES"] == visible


def test_local_jobs_may_take_as_long_as_they_are_guessed_to(places):
    guesses = [
        job.hours for name in table_names() for job in plan(load_table(name), load_scale("paper"), places, gpus=1)
    ]
    assert 60 * max(guesses) < YEAR / 4


def test_commands_are_those_of_this_python(tmp_path, monkeypatch):
    """`.venv/bin/fairseq-capsule reproduce` works where nothing was activated."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    found = tmp_path / "found"
    assert run_job(Job("a", (shell(f"python -c 'import sys; print(sys.prefix)' > {found}", found),))) is None
    assert found.read_text().strip() == sys.prefix


def test_slurm_keeps_the_order(tmp_path, monkeypatch):
    """Scripts that stand for Slurm's: sbatch keeps what it is handed and counts."""
    stubs = tmp_path / "stubs"
    stubs.mkdir()
    sbatch = f'n=$(ls {stubs} | wc -l); cp "${{@: -1}}" {stubs}/$n.batch; echo "Submitted batch job $n"'
    for name, body in (("sbatch", sbatch), ("srun", "true"), ("scontrol", "true")):
        (stubs / name).write_text(f"#!/bin/bash\n{body}\n")
        (stubs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{stubs}:{os.environ['PATH']}")
    step = (shell("true", tmp_path / "x"),)
    jobs = [
        Job("prepare", step),
        Job("baseline", step, ("prepare",), 2, 1.0),
        Job("row", step, ("prepare", "baseline")),
    ]
    assert launch_on_slurm(jobs, tmp_path / "jobs") == ["3", "4", "5"]
    batches = [(stubs / f"{number}.batch").read_text() for number in (3, 4, 5)]
    assert "--dependency" not in batches[0]
    assert "--dependency=afterok:3\n" in batches[1] and "--gpus-per-node=2" in batches[1] and "--time=150" in batches[1]
    assert "--dependency=afterok:3:4\n" in batches[2]


def test_no_slurm_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(UserError, match="--launcher slurm: .*srun"):
        launch_on_slurm([], tmp_path)
