"""The rehearsal of WMT14 (experiments/rehearse.py) with 2,000 pairs, and its synthetic text."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from experiments.synthetic_text import pairs
from tests.integration.preparing import copy_checkout
from tests.integration.warm_commands import warm_path


def test_wmt14_is_prepared_trained_and_translated_although_each_command_is_killed(tmp_path):
    checkout = copy_checkout(tmp_path, "fairseq_capsule", "fairseq_capsule_lab", "experiments")
    for name in ("fairseq-capsule", "python"):  # what is killed is not warm: that would leave what it started
        (tmp_path / name).write_text(f'#!/bin/bash\nexec "{Path(sys.executable).parent}/{name}" "$@"\n')
        (tmp_path / name).chmod(0o755)
    command = [sys.executable, checkout / "experiments/rehearse.py", "--pairs", 2000, "--small", "--updates", 2, "out"]
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}:{warm_path()}",
        "PYTHONPATH": str(checkout),
        "OMP_NUM_THREADS": "1",
    }
    finished = subprocess.run(
        list(map(str, command)), cwd=checkout, env=environment, capture_output=True, text=True, timeout=2000
    )
    assert finished.returncode == 0, finished.stderr
    report = (checkout / "out/report.md").read_text(encoding="utf-8")
    killed = [line.split(" | ")[0] for line in report.splitlines() if line.endswith("| killed, then given again |")]
    assert killed == ["| prepare-wmt14-en-de.sh: bpe", "| train-gpus.sh", "| train.sh", "| reproduce.sh"]
    trained = sorted((checkout / "out/log").glob("*-train*.sh.log"))
    assert len(trained) == 4
    assert ["Loaded checkpoint" in log.read_text(encoding="utf-8") for log in trained] == [False, True] * 2
    assert "pairs (dropped: " in report and "| `data/wmt14-en-de/bin` | " in report
    assert "| capsule-Transformer | " in (checkout / "out/runs/paper/tables/row.md").read_text(encoding="utf-8")


def test_rare_words_of_the_synthetic_text_grow_as_heaps_law_says():
    """The exponent of a real text is between 0.5 and 0.8, and half of its types occur once."""
    english, german = Counter(), Counter()
    types = []
    for number, (source, target) in enumerate(pairs(8000, seed=1), start=1):
        english.update(source.split())
        german.update(target.split())
        if number in (1000, 8000):
            types.append((len(english), len(german)))
    for few, many in zip(*types):
        assert 8**0.5 < many / few < 8**0.8
    for counts in (english, german):
        assert 0.4 < Counter(counts.values())[1] / len(counts) < 0.8
