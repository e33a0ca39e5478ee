"""Inspections of tiny random models, with words of every kind."""

from fairseq_capsule.inspection import Sentence, gather_arrays
from fairseq_capsule.inspection.views import OTHER
from fairseq_capsule_lab.pages.described_models import InspectedModel
from fairseq_capsule_lab.pages.inspected import InspectedSentence, Origin
from tests.zoo import build, make_sentences

EVERYTHING = {"past_future": "gdr", "guided_heads": "both", "global_representation": "capsule"}
HOSTILE = "<img src=x onerror=alert(1)>&\"'"
SOURCE = ("<b>bold</b>", "</script>", "שלום", "你好", "sub@@", "wo@@", "rd", "&amp;", "</s>")
TARGET = ("مرحبا", "<!--", "ge@@", "teilt", "</s>")


def make_inspection(
    arch="capsule_transformer",
    options=EVERYTHING,
    against=None,
    source=SOURCE,
    target=TARGET,
    number=1,
    reference=None,
    **origin,
):
    """Return an `Inspection` with arrays of a random model. The given words replace those of its dictionary."""
    tokens = make_sentences([(len(source) - 1, len(target) - 1)])[0]
    sentence = Sentence(tokens["source"][None], tokens["target"][None], source, target)
    arrays = gather_arrays(build(arch, options), sentence)
    if against is not None:
        others = gather_arrays(build(against), sentence)
        arrays.update({OTHER + name: array for name, array in others.items()})
    model = InspectedModel(arch, 12345, ("routes words to capsules",), f"runs/{HOSTILE}/{arch}.pt")
    other = None if against is None else InspectedModel(against, 1, (), None)
    origin = Origin(**{**dict(model=model, against=other, data=HOSTILE, language="de", beam=5, date="2024"), **origin})
    translation = " ".join(target)
    return InspectedSentence(
        number, "test", source, target, translation, reference, arrays, origin, None if other is None else "other one"
    )
