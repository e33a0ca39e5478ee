"""The complete `scripts/prepare-toy.sh` on a small corpus. The tests of the other scripts cover what they share."""

import os
import shutil
import subprocess

import pytest

from fairseq_capsule_lab.corpora.embedded import draw_splits
from tests.integration.commands import PATH
from tests.integration.preparing import Workplace, contents, read

SIZES = {"train": 120, "valid": 6, "test": 7}
OPTIONS = [word for split, size in SIZES.items() for word in (f"--{split}", str(size))]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Made inside OUT with the installed commands, each in a process of its own. Modules there are not imported."""
    place = Workplace(tmp_path_factory.mktemp("prepared"), "prepare-toy.sh", PATH)
    place.out.mkdir()
    for module in ("argparse", "datetime", "fairseq_capsule_lab", "json", "multiprocessing", "site", "tqdm", "torch"):
        (place.out / f"{module}.py").write_text(f"open('../imported', 'a').write({module!r})")
    process = place.run("bash", "-c", 'cd out && exec ../scripts/prepare-toy.sh "$@" .', "-", *OPTIONS)
    assert process.returncode == 0, process.errors
    assert not (place.root / "imported").exists(), (place.root / "imported").read_text()
    process.out = place.out
    return process


def test_every_stage_has_the_expected_text(prepared):
    for split, pairs in draw_splits("english-german", SIZES).items():
        for side, lang in enumerate(("en", "de")):
            raw, words, bpe = (read(prepared.out / stage / f"{split}.{lang}") for stage in ("raw", "tokenised", "bpe"))
            assert raw == [pair[side] for pair in pairs]
            assert [line.replace("@@ ", "") for line in bpe] == words
            last = [
                int(line.split()[-1].split("-")[side]) for line in read(prepared.out / f"raw/alignments/{split}.align")
            ]
            assert last == [len(line.split()) - 1 for line in words]


def test_the_shown_command_can_be_pasted(prepared):
    """A dry run prints it too, and makes nothing."""
    (shown,) = prepared.shown
    line = shown[2:].replace("--destdir bin", "--destdir pasted")
    subprocess.run(["bash", "-c", line], env={**os.environ, "PATH": PATH}, check=True)
    pasted = contents(prepared.out / "pasted")
    assert pasted.keys() == contents(prepared.out / "bin").keys()
    for name in pasted.keys() - {"preprocess.log"}:
        assert pasted[name] == contents(prepared.out / "bin")[name]
    shutil.rmtree(prepared.out / "pasted")


def test_a_dry_run_prints_the_command_and_makes_nothing(tmp_path):
    workplace = Workplace(tmp_path, "prepare-toy.sh")
    process = workplace.prepare("--dry-run", *OPTIONS, "out")
    (shown,) = process.shown
    assert process.returncode == 0 and process.errors == "# raw, tokenised, codes, bpe: made by this command itself\n"
    assert f"(cd {workplace.out} && fairseq-preprocess" in shown and "--trainpref bpe/train --validpref" in shown
    assert not workplace.out.exists()
