"""The views that the registered mechanisms offer."""

from typing import Mapping, Tuple

from fairseq_capsule.models.mechanism import mechanisms
from fairseq_capsule.models.views import OTHER, NamedArray, View


def all_views() -> Tuple[View, ...]:
    """All views in the order of the commands: attention first."""
    plain_first = sorted(mechanisms(), key=lambda mechanism: not mechanism.plain)
    return tuple(view for mechanism in plain_first for view in mechanism.views)


def views_of(arrays: Mapping[str, NamedArray]) -> Tuple[View, ...]:
    """The views of a model's arrays: of its mechanisms, then of those of a second model, then of plain attention."""

    def of_others(view: View) -> int:
        routed = [panel.other for panel in view.of(arrays) if not is_plain(panel.array.removeprefix(OTHER))]
        return 2 if not routed else int(all(routed))

    return tuple(sorted((view for view in all_views() if view.of(arrays)), key=of_others))


def is_plain(array: str) -> bool:
    """Whether a model without a mechanism has an array of this name."""
    return any(array in mechanism.plain for mechanism in mechanisms())
