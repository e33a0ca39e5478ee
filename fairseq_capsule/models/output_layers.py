"""The output layer of a model, for losses that do not keep its logits."""

from typing import Any, NamedTuple, Optional, Tuple

from fairseq.distributed import LegacyDistributedDataParallel, ModuleProxyWrapper
from fairseq.models.lstm import LSTMDecoder
from fairseq.models.transformer import TransformerDecoderBase, TransformerModelBase
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from fairseq_capsule.models.capsnmt import CapsNMTDecoder, CapsNMTModel
from fairseq_capsule.models.capsule_lstm import CapsuleLSTMModel
from fairseq_capsule.models.outputs import output_embeddings

# Models and their decoders. A subclass that changes one of these methods may compute other logits or probabilities.
KNOWN: Tuple[Tuple[Any, Any], ...] = (
    (TransformerModelBase, TransformerDecoderBase),
    (CapsuleLSTMModel, LSTMDecoder),
    (CapsNMTModel, CapsNMTDecoder),
)
PROBABILITIES = ("get_normalized_probs", "get_normalized_probs_scriptable")
OF_MODEL = ("forward", "get_targets", *PROBABILITIES)
OF_DECODER = ("forward", "output_layer", *PROBABILITIES)
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class OutputLayer(NamedTuple):
    """A layer that maps features `f` to the logits `E f + b`: `E` `[V, C]`, and `b` `[V]` or None."""

    embeddings: Tensor
    bias: Optional[Tensor]


def output_layer(model: Any) -> Optional[OutputLayer]:
    """Return the output layer of a model whose forward pass gives its input with `features_only`.

    None if the logits may be something else than `E f + b`, or the loss something else than of their softmax: another
    kind of model, adaptive softmax, hooks, an adapter or a parametrisation of the layer. None also if distributed
    training does not keep all parameters on each device, or looks in the logits for those that are used.
    """
    if isinstance(model, ModuleProxyWrapper):
        wrapper = model.module
        if not isinstance(wrapper, (DistributedDataParallel, LegacyDistributedDataParallel)):
            return None
        if getattr(wrapper, "find_unused_parameters", False):
            return None
        model = wrapper.module
    decoder = getattr(model, "decoder", None)
    if not any(_unchanged(model, kind, OF_MODEL) and _unchanged(decoder, of, OF_DECODER) for kind, of in KNOWN):
        return None
    if getattr(decoder, "adaptive_softmax", None) is not None:
        return None
    layer = getattr(decoder, "output_projection", getattr(decoder, "fc_out", None))
    if layer is None:  # the embeddings of the decoder's input
        return OutputLayer(output_embeddings(model), None)
    if type(layer) is not nn.Linear or not _unchanged(layer, nn.Linear, ("forward",)):
        return None
    return OutputLayer(layer.weight, layer.bias)


def _unchanged(module: Any, kind: Any, methods: Tuple[str, ...]) -> bool:
    """Return whether a module is of a kind, has its methods and no hooks."""
    if not isinstance(module, kind) or any(getattr(module, hooks) for hooks in HOOKS):
        return False
    own = vars(module)
    return all(name not in own and getattr(type(module), name) is getattr(kind, name) for name in methods)
