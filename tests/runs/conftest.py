"""Fixtures of several tests of run folders."""

import pytest


@pytest.fixture
def my_plugin(tmp_path, monkeypatch):
    """A plugin in the current folder. Its import leaves `imported`."""
    (tmp_path / "my_plugin").mkdir()
    mark = "import pathlib; pathlib.Path(__file__).with_name('imported').touch()"
    (tmp_path / "my_plugin/__init__.py").write_text(mark)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "my_plugin"
