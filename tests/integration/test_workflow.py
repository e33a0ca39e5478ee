"""The workflow with stub scripts that do not train: failures, interruptions, clusters."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import psutil
import pytest

from tests.integration.commands import REPOSITORY, wait_for
from tests.integration.warm_commands import warm_path

TABLE = """
title: Three rows
paper: duan
columns:
  BLEU: {corpus: wmt17-zh-en, measure: bleu}
rows:
  Transformer: {run: transformer}
  continued: {run: continued, on: Transformer}
  capsules: {run: capsule_transformer}
"""
SCRIPTS = {
    "prepare-toy.sh": 'mkdir -p "${@: -1}"; touch "${@: -1}/manifest.json"',
    # Ten updates, each recorded immediately. A later start continues after the last one.
    "train.sh": """
        for word; do [[ $word != */seed1 ]] || out=$word; done
        cd "$out"; echo "$$ $out" >>"$STUBS/started"
        case $out in *$FAILS*) echo "no data"; exit 1 ;; esac
        for update in $(seq 10); do
            grep -qsx "$update" updates || { sleep "$SECONDS_AN_UPDATE" & wait; echo "$update" >>updates; }
        done
        touch finished""",
    "evaluate.sh": """
        out=${@: -2:1}/evaluation/test; mkdir -p "$out"; n=$(wc -l <"$out/../../updates")
        score="{\\"score\\": $n, \\"label\\": \\"BLEU\\", \\"text\\": \\"\\", \\"signature\\": \\"\\"}"
        echo "{\\"scores\\": {\\"tokenised_bleu\\": $score}}" >"$out/scores.json" """,
}
# Like the real ones, the benchmark imports a module of its folder.
BENCHMARKS = {
    "measure.py": 'TEXT = \'{"archs": ["a"], "milliseconds": {"a": {"mean": 2.5}}}\'\n',
    "latency.py": """
import os, sys, measure
sys.exit("no speed") if os.environ["FAILS"] == "latency" else print(measure.TEXT)
""",
}
MEASURED = """
title: One row
paper: duan
columns:
  ms: {corpus: wmt17-zh-en, measure: latency}
rows:
  capsules: {run: capsule_transformer}
"""
# Commands that are interrupted. The others are warm.
REAL = [sys.executable]
ROWS = {"Transformer": "transformer", "continued": "continued+on-transformer", "capsules": "capsule_transformer"}


class Checkout:
    """A copy of the repository with a table of three rows and with scripts that only count."""

    def __init__(self, folder):
        self.folder, self.runs, self.started = folder, folder / "runs", folder / "started"
        for name in ("fairseq_capsule", "fairseq_capsule_lab", "experiments", "configs"):
            ignored = shutil.ignore_patterns("__pycache__", "benchmarks", "results")
            shutil.copytree(REPOSITORY / name, folder / name, ignore=ignored)
        (folder / "experiments/results").mkdir()
        shutil.copy(REPOSITORY / "experiments/results/speed.csv", folder / "experiments/results")
        # Nothing is trained, so fairseq is not needed, and importing it takes seconds in each process.
        (folder / "fairseq_capsule" / "__init__.py").write_text('__version__ = "0"\n')
        (folder / "configs" / "tables" / "duan-rows.yaml").write_text(TABLE)
        (folder / "configs" / "tables" / "duan-measured.yaml").write_text(MEASURED)
        (folder / "experiments/benchmarks").mkdir()
        for name, text in BENCHMARKS.items():
            (folder / "experiments/benchmarks" / name).write_text(text)
        (folder / "scripts").mkdir()
        for name, body in SCRIPTS.items():
            self.script(folder / "scripts" / name, f"#!/bin/bash\nset -euo pipefail\n{body}\n")

    def script(self, path, text):
        path.write_text(text)
        path.chmod(0o755)

    def start(self, *arguments, table="duan-rows", fails="nothing", seconds="0.01", path="", program=REAL, **options):
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.folder),
            "PATH": f"{path}{os.environ['PATH']}",
            "STUBS": str(self.folder),
            "FAILS": fails,
            "PYTHONSAFEPATH": "1",  # as reproduce.sh sets it
            "SECONDS_AN_UPDATE": seconds,
            "HOME": str(self.folder),
        }
        command = [*program, str(self.folder / "experiments/reproduce.py"), table, "--scale", "smoke"]
        command += ["--runs", str(self.runs), "--data", str(self.folder / "data"), *arguments]
        pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=self.folder)
        return subprocess.Popen(command, env=environment, **pipes, **options)

    def run(self, *arguments, **options):
        process = self.start("--cores", "2", *arguments, path=f"{warm_path()}:", program=["python"], **options)
        output, errors = process.communicate(timeout=300)
        return process.returncode, output, errors

    def trainings(self):
        """Return the titles of the runs in the order of their trainings."""
        return [line.split("/")[-2] for line in self.started.read_text().splitlines()]

    def updates(self, row):
        return (self.runs / "smoke/toy-smoke" / ROWS[row] / "seed1/updates").read_text().split()


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path)


def figures(output):
    rows = [line.split("|") for line in output.splitlines() if line.startswith("|")]
    return {row[1].strip(): row[2].strip() for row in rows}


def test_a_failed_row_skips_its_dependents_and_is_repeated(checkout):
    status, output, errors = checkout.run(fails="toy-smoke/transformer/")
    assert status == 1 and "reproduce.sh: some steps failed" in errors
    assert "/transformer/seed1/finished' failed: no data (full log: " in errors
    assert "left out, since smoke/toy-smoke/transformer/seed1/finished is missing" in errors
    assert sorted(checkout.trainings()) == ["capsule_transformer", "transformer"]
    shown = figures(output)
    assert (shown["Transformer"], shown["continued"], shown["capsules"]) == ("missing", "missing", "10.00")
    assert "- Missing: *Transformer*, *continued*: BLEU: not trained." in output

    status, output, errors = checkout.run()
    assert status == 0, errors
    assert checkout.trainings()[2:] == ["transformer", "continued+on-transformer"]
    assert [figures(output)[row] for row in ROWS] == ["10.00"] * 3
    assert not list(checkout.folder.rglob(".snakemake")) and not list(checkout.runs.rglob("*.part*"))
    status, output, errors = checkout.run()
    assert status == 0 and "nothing to be done" in output and len(checkout.trainings()) == 4


def test_a_failed_measurement_is_reported_and_repeated(checkout):
    status, output, _ = checkout.run(table="duan-measured", fails="latency")
    assert status == 1 and figures(output)["capsules"] == "missing"
    assert "- Missing: *capsules*: ms: latency is not measured." in output
    status, output, errors = checkout.run(table="duan-measured")
    assert status == 0, errors
    assert figures(output)["capsules"] == "2.5"


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_an_interruption_ends_everything(checkout, number):
    process = checkout.start("--cores", "2", seconds="600")
    wait_for(checkout.started, process)
    command = psutil.Process(process.pid)
    while len(command.children(recursive=True)) < 2:  # the script and its child
        time.sleep(0.02)
    all_of_it = [command, *command.children(recursive=True)]
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert not psutil.wait_procs(all_of_it, timeout=5)[1]


@pytest.mark.slow
def test_a_table_that_is_killed_at_random_moments_ends_with_the_same_figures(checkout):
    moments = random.Random(1)
    for _ in range(10):
        process = checkout.start("--cores", "2", seconds="0.2")
        time.sleep(moments.uniform(3, 20))
        if process.poll() is None:
            for each in [psutil.Process(process.pid), *psutil.Process(process.pid).children(recursive=True)]:
                each.kill()
        process.communicate()
    status, output, errors = checkout.run()
    assert status == 0, errors
    assert [figures(output)[row] for row in ROWS] == ["10.00"] * 3
    for row in ROWS:  # no update was made twice: each start continued
        assert checkout.updates(row) == [str(number) for number in range(1, 11)]


SBATCH = """#!{python}
import os, re, subprocess, sys
folder = os.environ["STUBS"] + "/slurm"
os.makedirs(folder, exist_ok=True)
job = len(os.listdir(folder)) + 1
rule = re.search(r"rule_(\\w+?)(_wildcards|$)", sys.argv[sys.argv.index("--comment") + 1])[1]
words = sys.argv[1:]
name = words[words.index("--job-name") + 1]
environment = {{**os.environ, "SLURM_JOB_ID": str(job)}}
failed = subprocess.call(["/bin/sh", "-c", words[-1].removeprefix("--wrap=")], env=environment)
state = "FAILED" if failed else "COMPLETED"
open(f"{{folder}}/{{job}}", "w").write("|".join([rule, name, state, " ".join(words[:-1])]))
print(job)
"""
SACCT = """#!{python}
import os
folder = os.environ["STUBS"] + "/slurm"
os.makedirs(folder, exist_ok=True)
for job in os.listdir(folder):
    print(job, open(f"{{folder}}/{{job}}").read().split("|")[2], sep="|")
"""
# A stub of srun: it runs the command without the options before it.
SRUN = """#!{python}
import os, sys
words = [word for word in sys.argv[1:]]
while words[0].startswith("-"):
    words.pop(0)
os.execvp(words[0], words)
"""


@pytest.mark.slow
def test_slurm_receives_the_steps_in_order_of_dependence(checkout):
    """Stubs of Slurm's programs: sbatch runs its script and records its arguments."""
    stubs = checkout.folder / "stubs"
    stubs.mkdir()
    for name, text in {"sbatch": SBATCH, "sacct": SACCT, "srun": SRUN}.items():
        checkout.script(stubs / name, text.format(python=sys.executable))
    for name in ("squeue", "scancel", "scontrol", "sinfo", "sacctmgr"):
        checkout.script(stubs / name, "#!/bin/sh\n")
    profile = checkout.folder / "profile"
    shutil.copytree(REPOSITORY / "experiments/workflow/profiles/slurm", profile)
    with open(profile / "config.yaml", "a") as settings:
        settings.write("slurm-init-seconds-before-status-checks: 1\nslurm-keep-successful-logs: true\n")
    process = checkout.start("--launcher", str(profile), "--rows", "continued", path=f"{stubs}:")
    output, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors
    assert figures(output)["continued"] == "10.00" and figures(output)["capsules"] == "missing"
    jobs = [path.read_text().split("|") for path in sorted((checkout.folder / "slurm").iterdir())]
    assert [rule for rule, *_ in jobs] == ["prepare", "train", "train", "evaluate"]
    train = jobs[1][3]
    assert "--gpus=1" in train and " -t 30" in train and " --mem 8000" in train and "--cpus-per-task=8" in train
    assert "--gpus" not in jobs[0][3]
