"""scripts/docs.sh deletes nothing that it did not make."""

import shutil
import subprocess
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


def test_only_a_site_is_replaced_by_a_site(tmp_path):
    (tmp_path / "scripts").mkdir()
    for name in ("docs.sh", "common.sh"):
        shutil.copy(SCRIPTS / name, tmp_path / "scripts")
    (tmp_path / "out").mkdir()
    (tmp_path / "out/notes").write_text("mine")
    done = subprocess.run([tmp_path / "scripts/docs.sh", "out"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "out is not a site that this script made: delete it" in done.stderr
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes"]
