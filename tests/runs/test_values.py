"""Values are read exactly, or refused by name in one line."""

import subprocess
import sys

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf

from capsule_routing.errors import UserError
from fairseq_capsule_lab import values


@pytest.mark.parametrize("value", ["10" * 3000, True, 1.0, "1.0", "١", " 1", "1_0", "0", None])
def test_other_values_than_whole_numbers_are_refused(value):
    with pytest.raises(UserError, match="^--beam must be a positive whole number"):
        values.checked_integer("--beam", value)


@settings(max_examples=200)
@given(st.text(st.characters(exclude_characters="\0") | st.sampled_from("${}'\"\\[],= a"), min_size=1))
def test_a_path_reaches_fairseq_unchanged_or_is_refused(text):
    """fairseq-hydra-train parses it as an override and resolves interpolations twice; other commands write `'%s'`."""
    try:
        place = values.checked_path("OUT", text)
    except UserError as error:
        assert str(error).startswith("OUT ") and str(error).isprintable()
        return
    (override,) = OverridesParser.create().parse_overrides([f"task.data={values.quoted(place)}"])
    config = OmegaConf.create({"data": override.value()})
    for _ in range(3):
        config = OmegaConf.create(OmegaConf.to_container(config, resolve=True))
    assert config.data == str(place)
    assert str(place).startswith("/") and ":" not in str(place)


def test_trainings_and_evaluations_are_planned_without_torch_and_fairseq():
    """Their import takes seconds, and the commands that need them are processes of their own."""
    modules = "from fairseq_capsule_lab.runs import evaluate, train"
    code = f"import sys; {modules}; print({{'torch', 'fairseq'}} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
