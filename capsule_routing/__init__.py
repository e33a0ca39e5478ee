"""Capsule routing in PyTorch: routing functions, losses, and modules with the parameters of a routing.

It imports torch alone, and `capsule_routing.huggingface` also transformers. The names of `functions`, `losses` and
`modules`, and `UserError`, are imported when they are first used, so that `import capsule_routing` takes no time.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capsule_routing.errors import UserError as UserError
    from capsule_routing.functions import *  # noqa: F403
    from capsule_routing.losses import *  # noqa: F403
    from capsule_routing.modules import *  # noqa: F403

__version__ = "0.2.0"  # the only place that states it: pyproject.toml reads it here
PACKAGES = ("functions", "losses", "modules")


def __getattr__(name: str) -> Any:
    if name == "UserError":
        return importlib.import_module("capsule_routing.errors").UserError
    if name in PACKAGES:
        return importlib.import_module(f"capsule_routing.{name}")
    if not name.startswith("_"):  # __path__ and the like are looked up without torch
        for package in PACKAGES:
            module = importlib.import_module(f"capsule_routing.{package}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module 'capsule_routing' has no attribute {name!r}")
