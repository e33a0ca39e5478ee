"""The scripts import nothing of the folders in which they work, and refuse numbers out of range."""

import subprocess

import pytest

from tests.integration.commands import PATH
from tests.integration.preparing import SCRIPTS, Workplace

MODULES = ["argparse", "datetime", "fairseq_capsule_lab", "json", "multiprocessing", "site", "tqdm", "torch"]


def test_modules_in_the_working_directory_are_not_imported(tmp_path):
    """The scripts work inside run folders and prepared folders."""
    mark, place = tmp_path / "mark", Workplace(tmp_path, "prepare-toy.sh", PATH)
    place.out.mkdir()
    for module in MODULES:
        (place.out / f"{module}.py").write_text(f"open({str(mark)!r}, 'a').write({module!r})")
    command = ["bash", "-c", "cd out && exec ../scripts/prepare-toy.sh --train 20 --valid 2 --test 2 ."]
    process = place.run(*command)
    assert process.returncode == 0, process.errors
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize("number", ["1000000000000000000", "99999999999", "0", "-1", "1e3", "0x1f"])
@pytest.mark.parametrize("script, option", [("prepare-toy", "--train"), ("prepare-headlines", "--valid")])
def test_numbers_out_of_range_are_refused(tmp_path, script, option, number):
    process = subprocess.run(
        [SCRIPTS / f"{script}.sh", option, number, tmp_path / "out"], capture_output=True, text=True
    )
    assert process.returncode == 1 and not (tmp_path / "out").exists()
    assert process.stderr.startswith(f"{script}.sh: {option} must be a positive whole number")
    assert process.stderr.count("\n") == 1
