"""All arrays of what a model routes in one sentence."""

from typing import Dict

from fairseq.models import BaseFairseqModel

from fairseq_capsule.models.evaluating import evaluating
from fairseq_capsule.models.mechanism import mechanisms
from fairseq_capsule.models.views import NamedArray, Sentence


def gather(model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
    """All arrays of the model by name. They are recomputed; the model stores nothing.

    The `arrays` of each mechanism lists them.
    """
    arrays: Dict[str, NamedArray] = {}
    with evaluating(model):
        for mechanism in mechanisms():
            arrays.update(mechanism.arrays(model, sentence))
    return arrays
