"""The switch for compiled routing in a model."""

from torch import nn

from capsule_routing.modules.attention_routing import AttentionRouting
from capsule_routing.modules.past_future import GuidedDynamicRouting


def compile_routing(model: nn.Module) -> None:
    """Let `torch.compile` compile the routing of attention logits and guided dynamic routing in a model.

    It is compiled at the first training step, which takes a minute or two, and runs compiled where gradients are
    enabled. It pays on a GPU. Results differ by rounding. The routing of long sentences is then kept for the backward
    pass and not computed again, which takes more memory.
    """
    for module in model.modules():
        if isinstance(module, (AttentionRouting, GuidedDynamicRouting)):
            module.compiled = True
