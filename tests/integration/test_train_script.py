"""`scripts/train.sh` on a CPU. For GPUs, stubs record the arguments of fairseq and torchrun."""

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import signal
import socket
import time
import zipfile
from argparse import Namespace

import pytest
import torch
from fairseq import checkpoint_utils

from fairseq_capsule_lab.processes import FORKS
from fairseq_capsule_lab.runs import RunFolder
from fairseq_capsule_lab.runs.train import children
from tests.integration.commands import PATH, REPOSITORY, SCRIPTED, wait_for
from tests.integration.conftest import with_plugin
from tests.integration.preparing import Workplace, contents, ended, read
from tests.integration.test_training import assert_same_parameters

# A stub of fairseq-hydra-train that fails. It writes its arguments to `words`.
FAILS = """
printf '%s\\n' "$@" >words
echo 'Traceback (most recent call last):'
echo '  File "x.py", line 1, in <module>'
echo '[rank1]: torch.distributed.DistBackendError: Connection closed by peer'
echo 'ValueError: out of luck'
"""


@pytest.fixture
def place(tmp_path):
    return with_plugin(Workplace(tmp_path, "train.sh"))


@pytest.fixture
def received(place, data):
    """Run the script with stubs of fairseq and torchrun, and return the arguments that they received."""
    place.stub("fairseq-hydra-train", FAILS)
    place.stub("torchrun", FAILS)

    def run(*arguments, **environment):
        process = place.prepare(*SCRIPTED[:1], data, "out", *arguments, **environment)
        assert place.refused(process, "ValueError: out of luck (full log: "), process.errors
        return read(place.root / "words")

    return run


def starts(out):
    return RunFolder(out).manifest()["starts"]


def losses(checkpoint):
    """Return the sums over the last epoch from a checkpoint. The log has only rounded values."""
    state = checkpoint_utils.load_checkpoint_to_cpu(str(checkpoint))["extra_state"]["metrics"]["train"]
    meters = {name: meter for _, name, _, meter in state if name in ("loss", "nll_loss")}
    return {name: float(meter["sum"] / meter["count"]) for name, meter in meters.items()}


def test_a_run_writes_checkpoints_log_and_manifest(trained_run):
    out = trained_run.out
    assert {file.name for file in out.iterdir()} >= {"checkpoint_last.pt", "checkpoint3.pt", "train.log", "finished"}
    batch = "400 tokens × 1 × accumulation 2 = 800 tokens"
    assert f"effective batch: {batch}" in trained_run.output and batch in (out / "train.log").read_text()
    # Before the first figures, which may take minutes.
    assert f"log: {out}/train.log; " in trained_run.output and "  begin training epoch 1\n" in trained_run.output
    assert "epoch 003 | valid on 'valid' subset" in trained_run.output
    (start,) = starts(out)
    assert set(start) == {
        *("start", "command", "versions", "git", "host", "processor", "gpus", "processes", "batch", "seed", "data"),
        "end",
    }
    assert start["command"].startswith("train.sh ") and "'--effective-tokens' '800'" in start["command"]
    assert start["batch"] == batch and start["seed"] == 1 and start["gpus"] == []
    last_update = re.findall(r"Saved checkpoint .* @ (\d+) updates", (out / "train.log").read_text())[-1]
    assert (start["end"]["after_update"], start["end"]["how"]) == (int(last_update), "finished")
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?|unknown", start["git"])
    assert {"python", "torch"} <= set(start["versions"]) and not set(FORKS).isdisjoint(start["versions"])
    settings = RunFolder(out).settings()
    assert settings.origin["effective-tokens"] == 800
    assert settings.get("model.encoder_layers") == 1 and settings.get("optimization.lr") == [0.004]


@pytest.fixture(scope="module")
def two_processes(data, tmp_path_factory):
    """A run folder like `trained_run`, of two processes."""
    place = with_plugin(Workplace(tmp_path_factory.mktemp("two"), "train.sh"))
    return place.prepared(*SCRIPTED, "--processes", 2, data)


def test_the_command_is_shown_and_a_dry_run_shows_it_too(trained_run, place, data):
    process = place.prepare(*SCRIPTED, data, "out", "--dry-run", "--processes", 2)
    (shown,) = process.shown
    assert shown.startswith("+ torchrun --standalone --nproc-per-node 2 --no-python fairseq-hydra-train --config-dir ")
    assert (process.returncode, process.errors) == (0, "") and not place.out.exists()
    assert trained_run.shown[0].startswith("+ fairseq-hydra-train --config-dir ")


def test_two_processes_equal_one_process_with_twice_the_accumulation(two_processes, trained_run):
    assert "400 tokens × 2 × accumulation 1 = 800 tokens" in two_processes.output
    for epoch in (1, 2, 3):
        one, two = (losses(out / f"checkpoint{epoch}.pt") for out in (trained_run.out, two_processes.out))
        assert len(one) == 2 and two == pytest.approx(one, abs=1e-5)


def test_train_gpus_gives_the_checkpoint_of_train_and_resumes(place, two_processes, data):
    config, *words = SCRIPTED
    settings = [word for word in words if "=" in word]
    command = ("scripts/train-gpus.sh", "--cpu", 2, "--update-freq", 1, config, data, "out", *settings)
    process = place.run(*command, "optimization.max_epoch=2")
    assert process.returncode == 0, process.errors
    process = place.run(*command)
    assert process.returncode == 0, process.errors
    assert "Loaded checkpoint out/checkpoint_last.pt" in process.output
    assert_same_parameters(place.out / "checkpoint_last.pt", two_processes.out / "checkpoint_last.pt")
    assert losses(place.out / "checkpoint3.pt") == losses(two_processes.out / "checkpoint3.pt")


def test_train_gpus_refuses_a_task_for_each_gpu(place):
    """tests/runs/test_training_plan.py has the same for train.sh."""
    place.stub("torchrun", "touch started")
    words = ("scripts/train-gpus.sh", "configs/own/lstm.yaml", "data", "out")
    process = place.run(*words, SLURM_STEP_NUM_TASKS="4", SLURM_STEP_NUM_NODES="2")
    assert process.returncode == 1
    (line,) = process.errors.splitlines()
    assert line.startswith("train-gpus.sh: srun started 4 tasks on 2 nodes; give it --ntasks-per-node 1; ")
    assert not (place.root / "started").exists()
    for allowed in ({"SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_NUM_NODES": "2"}, {"SLURM_NTASKS": "8"}):
        assert place.run(*words, **allowed).returncode == 0
        (place.root / "started").unlink()


@pytest.mark.parametrize("slurm", [True, False])
def test_train_gpus_prints_the_command_that_it_starts_on_each_node(place, slurm):
    place.stub("torchrun", "printf '%s\\n' \"$@\" >words")
    place.stub("scontrol", '[[ $* == "show hostnames n[3-4]" ]] && printf "%s\\n" n3 n4')
    where = {"SLURM_JOB_NODELIST": "n[3-4]", "SLURM_NODEID": "1"} if slurm else {"MASTER_ADDR": "n3", "NODE_RANK": "1"}
    options = ("--nodes", 2, "--gpus", 4, "--precision", "bf16", "--update-freq", 3)
    process = place.run("scripts/train-gpus.sh", *options, "configs/own/lstm.yaml", "my data", "out", "a.b=c", **where)
    assert process.returncode == 0, process.errors
    words = read(place.root / "words")
    assert ["torchrun", *words] == shlex.split(process.output)
    node = "--nnodes 2 --node-rank 1 --master-addr n3 --master-port 29500 --nproc-per-node 4 "
    assert " ".join(words).startswith(node)
    assert {"task.data=my data", "common.bf16=true", "optimization.update_freq=[3]", "a.b=c"} <= set(words)


def test_a_killed_training_resumes_with_the_same_result(place, trained_run, data):
    """SIGKILL arrives while fairseq copies a checkpoint to checkpoint_last.pt.

    The killed command is the installed one.
    """
    warm = place.path
    place.path = f"{place.stubs}:{PATH}"
    real = shutil.which("fairseq-hydra-train", path=place.path)
    place.stub(
        "fairseq-hydra-train",
        f"""{real} "$@" | while read -r line; do
            echo "$line"
            [[ $line != *"begin training epoch 2"* ]] || kill -KILL $PPID 0
        done""",
    )
    command = (*SCRIPTED, data, "out")
    assert place.prepare(*command).returncode == -signal.SIGKILL
    last = place.out / "checkpoint_last.pt"
    last.write_bytes(last.read_bytes()[:100_000])
    place.unstub()
    place.path = warm
    process = place.prepare(*command)
    assert process.returncode == 0, process.errors
    assert "checkpoint_last.pt was truncated by an interruption: continuing from checkpoint" in process.output
    assert "Loaded checkpoint" in process.output
    assert_same_parameters(last, trained_run.out / "checkpoint_last.pt")
    first, second = starts(place.out)
    assert "end" not in first and "resumed_after_update" not in first
    assert second["resumed_after_update"] > 0 and second["end"]["how"] == "finished"


class TestAFinishedRun:
    @pytest.fixture
    def finished(self, place, trained_run):
        shutil.copytree(trained_run.out, place.out)
        place.stub("fairseq-hydra-train", "exit 1")
        return place

    def test_a_second_start_does_nothing(self, finished, data):
        before = contents(finished.out)
        process = finished.prepare(*SCRIPTED, data, "out")
        assert (process.returncode, process.output) == (0, "out: finished, nothing to do\n")
        assert contents(finished.out) == before

    def test_another_training_in_its_folder_is_refused(self, finished, data, tmp_path):
        process = finished.prepare(*SCRIPTED, "model.dropout=0.2", data, "out")
        assert finished.refused(
            process, "out was trained with model.dropout 0.0, not model.dropout 0.2; name another folder"
        )
        process = finished.prepare(REPOSITORY / "configs/toy/gret_transformer.yaml", *SCRIPTED[1:], data, "out")
        assert finished.refused(process, "out was trained with ", "model._name gret_transformer_tiny")
        other = shutil.copytree(data, tmp_path / "other")
        shutil.copy(data / "valid.en-de.en.bin", other / "train.en-de.en.bin")
        process = finished.prepare(*SCRIPTED, other, "out")
        assert finished.refused(process, "out was trained with other data; name another folder")


def test_gpus_are_chosen_and_each_has_a_process(received, place):
    (place.root / "seen").mkdir()
    (place.root / "seen/torch.py").write_text("class cuda:\n    device_count = staticmethod(lambda: 4)\n")
    place.stub("nvidia-smi", '[[ $1 != --list-gpus ]] || printf "GPU %d: a name\\n" 0 1 2 3')
    place.stub("torchrun", f"echo $CUDA_VISIBLE_DEVICES >visible; {FAILS}")
    arguments = received("--gpus", 2, "--precision", "bf16", PYTHONPATH=str(place.root / "seen"))
    assert arguments[:5] == ["--standalone", "--nproc-per-node", "2", "--no-python", "fairseq-hydra-train"]
    assert (place.root / "visible").read_text() == "0,1\n"


def test_only_the_first_node_writes_records(place, data):
    place.stub("torchrun", "echo 'ValueError: out of luck'; exit 3")
    process = place.prepare(*SCRIPTED, data, "out", "--nodes", 2, NODE_RANK="1", MASTER_ADDR="first")
    assert place.refused(process, "ValueError: out of luck (full log: ", "train.node1.log); see the first node")
    assert [file.name for file in place.out.iterdir()] == ["train.node1.log"]


def test_a_start_that_waited_continues_from_the_own_checkpoint(place, received, data):
    """Another start of the same command wrote a checkpoint while this one waited for the folder."""
    task = Namespace(data=str(data), source_lang="en", target_lang="de")
    torch.save({"model": {}, "args": task}, place.root / "first.pt")
    options = ("checkpoint.restore_file=first.pt", "checkpoint.reset_optimizer=true")
    assert options[0] in received(*options)
    lock = os.open(place.out, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    process = place.start("scripts/train.sh", SCRIPTED[0], data, "out", *options)
    assert process.stdout.readline() == "waiting for another run in out\n"
    with zipfile.ZipFile(place.out / "checkpoint_last.pt", "w") as archive:
        archive.writestr("x", "1")
    os.close(lock)
    ended(process)
    assert place.refused(process, "ValueError: out of luck")
    options = [line for line in read(place.root / "words") if line.startswith("checkpoint.re")]
    assert options[-2:] == ["checkpoint.restore_file=checkpoint_last.pt", "checkpoint.reset_optimizer=false"]


def test_an_interruption_ends_the_training_too(place, data):
    place.path = f"{place.stubs}:{PATH}"  # the command handles the signal itself
    place.stub("fairseq-hydra-train", "echo $$ >child; exec sleep 60")
    process = place.start("scripts/train.sh", *SCRIPTED, data, "out")
    wait_for(place.root / "child", process)
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == os.EX_TEMPFAIL
    assert "interrupted" in errors and "the same command resumes from update 0" in errors
    assert place.run("kill", "-0", (place.root / "child").read_text().strip()).returncode != 0


def first_epoch(place, process):
    """Wait until a training has saved its first epoch, also as the checkpoint that a restart loads."""
    wait_for(place.out / "checkpoint_last.pt", process)


def test_a_signal_lets_two_processes_save(place, data):
    """The signal arrives at all processes of the group of train.sh, as from Slurm. Those of torchrun load data."""
    place.path = f"{place.stubs}:{PATH}"
    command = (*SCRIPTED, "--processes", 2, "optimization.max_epoch=0", "dataset.num_workers=1", data, "out")
    process = place.start("scripts/train.sh", *command)
    first_epoch(place, process)
    os.killpg(process.pid, signal.SIGTERM)
    ended(process)
    assert process.returncode == os.EX_TEMPFAIL, process.errors
    update = RunFolder(place.out).resume_update
    assert f"stopped by a signal after update {update}" in process.output
    assert place.refused(process, f"interrupted (full log: {place.out}/train.log); ", f"resumes from update {update}")
    assert starts(place.out)[-1]["end"]["how"] == "interrupted"


def tree(process):
    """Return a process and all that it started."""
    return [process, *(each for child in children(process) for each in tree(child))]


def kill(processes):
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_process_is_named(place, data):
    place.path = f"{place.stubs}:{PATH}"
    process = place.start("scripts/train.sh", *SCRIPTED, "--processes", 2, "optimization.max_epoch=0", data, "out")
    first_epoch(place, process)
    (torchrun,) = children(process.pid)
    kill(tree(children(torchrun)[1]))
    ended(process)
    assert place.refused(process, "killed by signal 9, perhaps because memory ran out (full log: ")


@pytest.mark.slow
@pytest.mark.parametrize("script, killed", [("train.sh", 0), ("train.sh", 1), ("train-gpus.sh", 1)])
def test_a_killed_node_ends_the_other_and_the_same_command_goes_on(place, data, script, killed):
    """The nodes are two addresses of this machine. A signal to one of them ends both the second time."""
    place.path = f"{place.stubs}:{PATH}"
    with socket.socket() as free:
        free.bind(("127.0.0.2", 0))
        meeting = {"MASTER_ADDR": "127.0.0.2", "MASTER_PORT": str(free.getsockname()[1]), "GLOO_SOCKET_IFNAME": "lo"}
    config, *words = SCRIPTED
    settings = [*(word for word in words if "=" in word), "optimization.max_epoch=0"]
    ours = ("--gpus", 0, "--effective-tokens", 800) if script == "train.sh" else ("--cpu", 1)
    command = (f"scripts/{script}", "--nodes", 2, *ours, config, data, "out", *settings)
    started = [place.start(*command, NODE_RANK=str(node), **meeting) for node in range(2)]
    first_epoch(place, started[0])
    kill(tree(started[killed].pid))
    for process in started:
        ended(process)
    assert started[killed].returncode == -signal.SIGKILL
    other = started[1 - killed]
    if script == "train.sh":
        assert place.refused(other, "train.sh: the connection to another process was lost, which failed or was killed")
        assert other.errors.endswith("; fix the cause and run the same command again\n" if killed else "first node\n")
    else:
        assert other.returncode == 1 and "Connection" in other.errors and "by peer" in other.errors

    number = len(list(place.out.glob("checkpoint?*.pt")))
    started = [place.start(*command, NODE_RANK=str(node), **meeting) for node in range(2)]
    while len(list(place.out.glob("checkpoint?*.pt"))) <= number:
        assert started[0].poll() is None
        time.sleep(0.05)
    os.kill(started[1].pid, signal.SIGUSR1)
    for process in started:
        ended(process)
        assert process.returncode == (os.EX_TEMPFAIL if script == "train.sh" else 1), process.errors
        assert "stopped by a signal after update" in process.output
    assert "Loaded checkpoint" in started[0].output


@pytest.mark.parametrize("status", [os.EX_TEMPFAIL, 1, 0])
def test_the_batch_script_for_slurm_requeues_after_a_signal_alone(place, data, status):
    """A stub of srun shows the command of the first node, and ends with a status."""
    place.stub("srun", 'while [[ $1 == -* ]]; do shift; done; "$@" --dry-run 2>shown || exit 9; exit $STATUS')
    place.stub("scontrol", '[[ $1 == requeue ]] && echo "$2" >requeued || printf "%s\\n" n3 n4')
    (place.root / "configs").symlink_to(REPOSITORY / "configs")
    (place.root / "data/wmt14-en-de").mkdir(parents=True)
    (place.root / "data/wmt14-en-de/bin").symlink_to(data)
    job = {"SLURM_JOB_ID": "12", "SLURM_NODEID": "0", "SLURM_JOB_NODELIST": "n[3-4]"}
    process = place.run("bash", REPOSITORY / "examples/slurm/train.sbatch", **job, STATUS=str(status))
    assert process.returncode == status, (process.errors, (place.root / "shown").read_text())
    assert (place.root / "requeued").exists() == (status == os.EX_TEMPFAIL)
    shown = (place.root / "shown").read_text()
    assert "torchrun --nnodes 2 --node-rank 0 --master-addr n3 --master-port 29512 --nproc-per-node 4" in shown
