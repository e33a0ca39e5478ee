"""The Python scripts of scripts/distill.sh name a damaged dictionary."""

import pytest

from tests.cli.world import make_world
from tests.integration.preparing import SCRIPTS
from tests.processes import run_script


@pytest.mark.parametrize(
    "script, arguments",
    [("check_teacher.py", ["model.pt", "data/bin"]), ("collect_hypotheses.py", ["data/bin", "en-de", "9", ".", "out"])],
)
def test_a_damaged_dictionary_is_named(tmp_path, script, arguments):
    make_world(tmp_path)
    (tmp_path / "data/bin/dict.de.txt").write_text("a\n")
    refused = run_script(SCRIPTS / script, arguments, cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.splitlines()[-1].startswith(
        "distill.sh: data/bin/dict.de.txt, line 1: 'a' is not 'SYMBOL COUNT'"
    )
    assert "Traceback" not in refused.stderr
