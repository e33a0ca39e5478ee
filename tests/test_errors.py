"""The message of an error is one line for any text."""

import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capsule_routing.errors import UserError, missing_library
from fairseq_capsule.data.binarised import BrokenFile
from fairseq_capsule_lab import cli


@given(st.text())
def test_any_message_is_one_printable_line(text):
    message = str(UserError(f"a {text}"))
    assert message.isprintable()
    assert message == f"a {text}" or not text.isprintable()
    assert str(BrokenFile(Path("x"), text)).isprintable()
    assert str(pickle.loads(pickle.dumps(UserError(text)))) == str(UserError(text))


@pytest.mark.parametrize("library, extra", [("matplotlib.figure", "plot"), ("rouge_score", "summarization")])
def test_a_missing_library_is_named_with_the_extra_that_installs_it(library, extra):
    error = missing_library(ModuleNotFoundError(f"No module named {library!r}", name=library))
    assert str(error) == f"{library.split('.')[0]} is not installed: pip install 'fairseq-capsule[{extra}]'"


def test_a_command_names_the_extra_that_it_needs(monkeypatch, capsys):
    def without_matplotlib(name):
        raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

    monkeypatch.setattr(cli.importlib, "import_module", without_matplotlib)
    assert cli.main(["picture", "model.pt"]) == 1
    assert capsys.readouterr().err == (
        "fairseq-capsule picture: error: matplotlib is not installed: pip install 'fairseq-capsule[plot]'\n"
    )
