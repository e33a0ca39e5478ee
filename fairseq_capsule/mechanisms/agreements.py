"""Loading of checkpoints that were trained with another number of routing iterations."""

import functools
from typing import Any, Dict

from torch import nn

from capsule_routing.errors import UserError


def allow_other_iterations(routing: nn.Module, option: str, alternative: str) -> None:
    """Let a routing load weights that were trained with another number of iterations.

    The agreements have weights only if there is more than one iteration: the submodules that `routing.AGREEMENTS`
    names. A routing with one iteration ignores such weights in a checkpoint. A routing with more iterations raises a
    UserError for a checkpoint without them, which names the option and an alternative that needs no agreements.
    """
    # A partial function, which pickle can save, as it can not save a local one.
    routing.register_load_state_dict_pre_hook(functools.partial(_before_loading, option, alternative))


def _before_loading(
    option: str, alternative: str, module: Any, state: Dict[str, Any], prefix: str, _: Any, strict: bool, *lists: Any
) -> None:
    saved = {name: name[len(prefix) :].partition(".")[0] for name in state if name.startswith(prefix)}
    agreements = [name for name, part in saved.items() if part in module.AGREEMENTS]
    needed = any(name.partition(".")[0] in module.AGREEMENTS for name in module.state_dict())
    if module.iterations == 1:
        for name in agreements:
            del state[name]
    elif strict and saved and needed and not agreements:
        problem = "more than one iteration needs the weights of agreements, and the checkpoint has none"
        raise UserError(f"{option}: {problem}; use {option} 1 or {alternative}")
