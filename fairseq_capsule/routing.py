"""The routing functions of `capsule_routing`, under the name where users of the plugin look for them."""

from capsule_routing.functions import *  # noqa: F403
from capsule_routing.functions import __all__ as __all__
