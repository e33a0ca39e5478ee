"""A mechanism of another package: what `add_mechanism` refuses, and that nothing is registered then."""

import sys
from dataclasses import field, make_dataclass
from types import ModuleType

import pytest
from fairseq.dataclass import FairseqDataclass
from fairseq.models import MODEL_REGISTRY

from fairseq_capsule import extending, inspection
from fairseq_capsule.extending import add_mechanism
from fairseq_capsule.inspection import Inspection
from fairseq_capsule.mechanisms import Mechanism, registry
from fairseq_capsule.mechanisms.registry import mechanisms


def options(**defaults):
    typed = [(name, type(value), field(default=value)) for name, value in defaults.items()]
    return make_dataclass("MineConfig", typed, bases=(FairseqDataclass,))


def make(module=__name__, kind="Mine", **attributes):
    """Return a mechanism with some attributes; with None an attribute is not set."""
    attributes = {
        **{"name": "mine", "summary": "an example", "options": options(mine=0), "on": {"mine": 1}},
        **attributes,
        "__module__": module,
    }
    return type(kind, (Mechanism,), {name: value for name, value in attributes.items() if value is not None})()


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    """Remove what a test registers."""
    monkeypatch.setattr(registry, "_REGISTRY", list(registry._REGISTRY))
    monkeypatch.setattr(inspection, "INSPECTIONS", dict(inspection.INSPECTIONS))


@pytest.mark.parametrize(
    "attributes, message",
    [
        ({"name": None}, "mechanism Mine has no `name`; set this attribute"),
        ({"on": {"mien": 1}}, "mechanism mine: there is no option mien; its options are mine"),
        ({"options": options(mine=1)}, "mechanism mine: mine is 1 by default, so `on` must have another value"),
        ({"options": options(mine=0, dropout=0.5)}, "the models already have an option dropout; rename the option"),
        ({"preset": "gdr"}, "mechanism mine: there are architectures gdr_transformer_… already; rename the preset"),
        (
            {"name": "past_future"},
            "mechanism past_future: this name is already registered by fairseq_capsule.mechanisms.past_future",
        ),
        ({"name": "attn"}, "mechanism attn: fairseq's encoders or decoders return something of this name; rename it"),
        ({"loss_weights": {"bow": 1.0}}, "the mechanism past_future of .* has a loss bow too; rename the loss"),
    ],
)
def test_a_wrong_declaration_is_refused_before_anything_is_registered(attributes, message):
    before, shown, models = mechanisms(), list(inspection.INSPECTIONS), set(MODEL_REGISTRY)
    with pytest.raises(ValueError, match=message) as error:
        add_mechanism(make(**attributes), Inspection())
    assert "\n" not in str(error.value)
    assert mechanisms() == before and list(inspection.INSPECTIONS) == shown and set(MODEL_REGISTRY) == models


def test_the_package_s_mechanisms_follow_the_rules():
    assert not [fault for mechanism in mechanisms() for fault in extending._faults(mechanism)]


@pytest.fixture
def modules(monkeypatch):
    """Three modules: the first two have the same file."""
    for name, file in (("first", "mine.py"), ("again", "mine.py"), ("other", "another.py")):
        module = ModuleType(name)
        module.__file__ = f"/nowhere/{file}"
        monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.usefixtures("modules")
def test_a_module_that_is_imported_under_two_names_registers_once():
    shown = Inspection()
    first = add_mechanism(make("first"), shown)
    assert add_mechanism(make("again"), Inspection()) is first and mechanisms().count(first) == 1
    assert inspection.INSPECTIONS["mine"] is shown


@pytest.mark.usefixtures("modules")
def test_a_class_of_the_same_name_in_another_file_is_refused():
    add_mechanism(make("first"))
    with pytest.raises(ValueError, match="this name is already registered by first; rename it"):
        add_mechanism(make("other", options=options(theirs=0), on={"theirs": 1}))
    with pytest.raises(ValueError, match="the mechanism mine of first has an option mine too"):
        add_mechanism(make("other", name="theirs"))


@pytest.mark.parametrize("wrong", [Inspection, make()])
def test_a_wrong_inspection_is_refused_before_anything_is_registered(wrong):
    before = mechanisms()
    with pytest.raises(ValueError, match="mechanism mine: the inspection must be an instance of a subclass of Inspect"):
        add_mechanism(make(), wrong)
    assert mechanisms() == before and "mine" not in inspection.INSPECTIONS
