"""The settings of a run folder: data, precision, batch, and the configuration with its overrides."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Settings:
    """Settings: `config` is the configuration as nested groups; `origin` has data, precision and batch."""

    config: dict[str, Any]
    origin: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """`KEY VALUE` of every setting."""
        return [*_lines(self.origin), *_lines(self.config)]

    def get(self, key: str, otherwise: Any = None) -> Any:
        """A value of the configuration by its key, such as `model.dropout`; `otherwise` if it is not set."""
        value: Any = self.config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return otherwise if value is None else value

    def to_json(self) -> str:
        return json.dumps({**self.origin, "config": self.config}, indent=1, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        origin = json.loads(text)
        return cls(origin.pop("config"), origin)


def _lines(group: dict[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in group.items():
        if isinstance(value, dict):
            yield from _lines(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key} {value if isinstance(value, str) else json.dumps(value)}"
