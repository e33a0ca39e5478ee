"""The archive of results, experiments/pack_results.py."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.processes import run_script

SCRIPT = Path(__file__).parents[2] / "experiments/pack_results.py"
RUN = "small/multi30k/transformer/seed1"
LOG = """\
[2026-11-23 01:55:03,369][fairseq_cli.train][INFO] - task: CapsuleTranslationTask
[2026-11-23 01:55:03,369][train][INFO] - epoch 001 | loss 11.9 | num_updates 6
[2026-11-23 01:55:17,978][valid][INFO] - epoch 001 | valid on 'valid' subset | loss 11.7 | num_updates 6
"""


@pytest.fixture
def runs(tmp_path):
    """A finished run with every file of a run folder, and an unfinished run."""
    runs = tmp_path / "runs"
    scores = {"references": ["/home/me/My Files/test.de"], "against": str(runs / "small/x")}
    start = {"host": "here", "command": "train.sh /home/me/configs/transformer.yaml", "seed": 1}
    files = {
        f"{RUN}/finished": "",
        f"{RUN}/checkpoint_last.pt": "x",
        f"{RUN}/train.log": LOG,
        f"{RUN}/settings.json": "{}",
        f"{RUN}/manifest.json": json.dumps({"starts": [start]}),
        f"{RUN}/measures/nll.json": '{"nll": 2.5}',
        f"{RUN}/evaluation/test/generate.out": "S-0\ta\u2028house\nT-0\tein haus\nH-0\t-0.5\tein\u2028haus\n",
        f"{RUN}/evaluation/test/scores.json": json.dumps(scores),
        "small/multi30k/transformer/seeds1-3/compared/x/test.json": '{"scores": {}}',
        "small/multi30k/transformer/seed2/settings.json": "{}",
    }
    for name, text in files.items():
        (runs / name).parent.mkdir(parents=True, exist_ok=True)
        (runs / name).write_text(text, encoding="utf-8")
    return runs


def test_an_archive_has_results_without_text_of_the_corpus_and_without_paths(runs, tmp_path):
    for name in ("a", "b"):
        assert run_script(SCRIPT, [runs, tmp_path / f"{name}.tar.xz"]).returncode == 0
        (runs / RUN / "finished").touch()
    assert (tmp_path / "a.tar.xz").read_bytes() == (tmp_path / "b.tar.xz").read_bytes()
    with tarfile.open(tmp_path / "a.tar.xz") as tar:
        content = {name: tar.extractfile(name).read().decode() for name in tar.getnames()}
    several = content.pop("small/multi30k/transformer/seeds1-3/compared/x/test.json")
    content = {name.removeprefix(f"{RUN}/"): text for name, text in content.items()}
    assert json.loads(several) == {"scores": {}} and content["train.log"] == LOG.splitlines(True)[-1]
    assert content["evaluation/test/generate.out"] == "H-0\t-0.5\tein\u2028haus\n" and content["finished"] == ""
    assert {name: json.loads(text) for name, text in content.items() if name.endswith("json")} == {
        "settings.json": {},
        "manifest.json": {"starts": [{"seed": 1}]},
        "measures/nll.json": {"nll": 2.5},
        "evaluation/test/scores.json": {"references": ["test.de"], "against": "small/x"},
    }
