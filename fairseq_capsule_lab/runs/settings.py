"""The settings of a run folder: data, precision, batch, and the configuration with its overrides."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fairseq_capsule_lab.files import as_json


@dataclass(frozen=True)
class Settings:
    """Settings: `config` is the configuration as nested groups; `origin` has data, precision and batch."""

    config: dict[str, Any]
    origin: dict[str, Any] = field(default_factory=dict)

    def flat(self) -> dict[str, str]:
        """Every setting by its whole key, such as `model.dropout`."""
        return {**dict(_flat(self.origin)), **dict(_flat(self.config))}

    def get(self, key: str, otherwise: Any = None) -> Any:
        """A value of the configuration by its key, such as `model.dropout`; `otherwise` if it is not set."""
        value: Any = self.config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return otherwise if value is None else value

    def to_json(self) -> bytes:
        return as_json({**self.origin, "config": self.config})

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        origin = json.loads(text)
        return cls(origin.pop("config"), origin)


def _flat(group: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in group.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key}", value if isinstance(value, str) else json.dumps(value)
