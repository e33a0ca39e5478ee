import pytest

from experiments.tables.runs import Workspace


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "runs", tmp_path / "data")
