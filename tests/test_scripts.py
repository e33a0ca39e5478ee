"""The scripts run nothing of what a user gives them, and import nothing of the folders in which they work."""

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.integration.commands import PATH
from tests.integration.preparing import SCRIPTS, Workplace
from tests.runs import hostile

# Arithmetic, array subscripts and some builtins of bash run commands inside a value, such as `a[$(touch x)]`.
CHECKS = r"""
while IFS= read -r -d '' text; do
    (need_positive --beam "$text") || true
    (calculate "$text" + 1) || true
    (calculate 1 + "$text") || true
    [ "$text" -gt 0 ] || true
    (take_options "train seed" "$text") || true
    (take_options "train seed" --train "$text" && [[ $train == "$text" ]]) || true
done <texts
"""


def test_values_that_common_sh_checks_run_nothing(tmp_path):
    """One shell runs many texts from hypothesis."""
    mark, found = tmp_path / "mark", set()

    @settings(max_examples=150, database=None)
    @given(st.one_of(hostile.texts(mark), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))))
    def collect(text):
        found.add(text)

    collect()
    place = Workplace(tmp_path, "train.sh")
    (tmp_path / "texts").write_bytes(b"".join(text.encode() + b"\0" for text in sorted(found)))
    process = place.run("bash", "-c", f"source scripts/common.sh; {CHECKS}")
    assert process.returncode == 0 and not mark.exists()
    assert "syntax" not in process.errors and "bad array" not in process.errors and "invalid" not in process.errors


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


@pytest.mark.parametrize("number", ["1000000000000000000", "99999999999", "0", "-1", "1e3", "0x1f", "08"])
@pytest.mark.parametrize("script, option", [("prepare-toy", "--train"), ("prepare-headlines", "--seed")])
def test_numbers_out_of_range_are_refused(tmp_path, script, option, number):
    process = subprocess.run(
        [SCRIPTS / f"{script}.sh", option, number, tmp_path / "out"], capture_output=True, text=True
    )
    assert process.returncode == 1 and not (tmp_path / "out").exists()
    assert process.stderr.startswith(f"{script}.sh: {option} must be a positive whole number")
    assert process.stderr.count("\n") == 1
