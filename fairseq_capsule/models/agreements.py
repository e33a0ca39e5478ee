"""Checkpoints whose model has another number of routing iterations than the one that loads them."""

from typing import Collection

from torch import nn

from fairseq_capsule.errors import UserError


def allow_other_iterations(routing: nn.Module, option: str, alternative: str) -> None:
    """Let a routing load weights that were trained with another number of iterations.

    The weights of agreements, `routing.AGREEMENTS` by name, exist only where there is more than one iteration. A
    routing with one iteration leaves them; one with more refuses a checkpoint without them.

    Args:
        routing: a module with `iterations` and `AGREEMENTS`.
        option: what sets its iterations, for the error.
        alternative: what else does without agreements, for the error.
    """

    def before_loading(module, state_dict, prefix, local_metadata, strict, *lists):
        saved = [name for name in state_dict if name.startswith(prefix)]
        agreements = [name for name in saved if _is_agreement(name[len(prefix) :], module.AGREEMENTS)]
        if module.iterations == 1:
            for name in agreements:
                del state_dict[name]
        elif (
            strict
            and saved
            and not agreements
            and any(_is_agreement(name, module.AGREEMENTS) for name in module.state_dict())
        ):
            raise UserError(
                f"{option}: the checkpoint has no weights of agreements, which more than one iteration needs; only 1 "
                f"can be taken, or {alternative}"
            )

    routing.register_load_state_dict_pre_hook(before_loading)


def _is_agreement(name: str, agreements: Collection[str]) -> bool:
    return name.partition(".")[0] in agreements
