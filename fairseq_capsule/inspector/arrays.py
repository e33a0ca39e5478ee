"""Everything that a model routes in one sentence."""

from typing import Dict

from fairseq.models import BaseFairseqModel

from fairseq_capsule.models.mechanism import mechanisms
from fairseq_capsule.models.views import NamedArray, Sentence, evaluating


def gather(model: BaseFairseqModel, sentence: Sentence) -> Dict[str, NamedArray]:
    """All arrays that the model has, by their names; recomputed, nothing is kept on the model.

    Each mechanism's `arrays` says which they are.
    """
    arrays: Dict[str, NamedArray] = {}
    with evaluating(model):
        for mechanism in mechanisms():
            arrays.update(mechanism.arrays(model, sentence))
    return arrays
