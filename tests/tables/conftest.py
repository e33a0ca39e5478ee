import pytest

from fairseq_capsule_lab.tables.runs import Places


@pytest.fixture
def places(tmp_path):
    return Places(tmp_path / "runs", tmp_path / "data")
