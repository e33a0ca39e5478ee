"""Checkpoints of earlier versions load, and translate as they did when they were made (make_checkpoints.py)."""

import json
import tarfile
from pathlib import Path

import pytest

from tests.compatibility.make_checkpoints import translations

FOLDER = Path(__file__).parent
EXPECTED = json.loads((FOLDER / "translations.json").read_text())


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    with tarfile.open(FOLDER / "checkpoints.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder


def test_every_checkpoint_has_its_translations(checkpoints):
    assert {path.stem for path in checkpoints.glob("*.pt")} == EXPECTED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_an_old_checkpoint_translates_as_before(checkpoints, name):
    translated = translations(checkpoints / f"{name}.pt", FOLDER / "data")
    for got, expected in zip(translated, EXPECTED[name], strict=True):
        for hypothesis, before in zip(got["hypotheses"], expected["hypotheses"], strict=True):
            assert hypothesis["tokens"] == before["tokens"]
            assert hypothesis["score"] == pytest.approx(before["score"], abs=1e-5)
        assert got["reference"] == pytest.approx(expected["reference"], abs=1e-5)
