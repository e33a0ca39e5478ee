import pytest

from fairseq_capsule_lab.tables.runs import Workspace


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "runs", tmp_path / "data")
