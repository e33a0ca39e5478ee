"""The settings of a run folder: data, precision, batch, and the configuration with its overrides."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fairseq_capsule_lab import errors
from fairseq_capsule_lab.errors import LabError

DEEPEST = 20  # nested groups of a configuration


@dataclass(frozen=True)
class Settings:
    """Settings: `config` is the configuration as nested groups; `origin` has data, precision and batch."""

    config: dict[str, Any]
    origin: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> set[str]:
        """`KEY VALUE` of every setting."""
        return {*_lines(self.origin), *_lines(self.config)}

    def get(self, key: str) -> Any:
        """A value of the configuration by its key, such as `model.dropout`; None if it is not set."""
        value: Any = self.config
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def whole(self, key: str, otherwise: int, low: int = 1) -> int:
        value = self.get(key)
        return otherwise if value is None else errors.whole(key, value, low)

    def number(self, key: str, otherwise: float) -> float:
        value = self.get(key)
        return otherwise if value is None else errors.number(key, value)

    def name(self, key: str, otherwise: str) -> str:
        value = self.get(key)
        return otherwise if value is None else errors.name(key, value)

    def to_json(self) -> str:
        return json.dumps({**self.origin, "config": self.config}, indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        """Read `settings.json`; raise a LabError if it is not a JSON object with a `config`."""
        try:
            origin = json.loads(text)
            config = origin.pop("config")
            if not isinstance(config, dict):
                raise LabError("its 'config' is not a JSON object")
            settings = cls(config, origin)
            settings.lines()  # refuses nested groups
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise LabError("not a JSON object with a 'config'") from None
        return settings


def _lines(group: dict[str, Any], prefix: str = "", depth: int = 0) -> Iterator[str]:
    if depth > DEEPEST:
        raise LabError(f"more than {DEEPEST} nested groups")
    for key, value in group.items():
        if isinstance(value, dict):
            yield from _lines(value, f"{prefix}{key}.", depth + 1)
        elif value is not None:
            yield f"{prefix}{key} {value if isinstance(value, str) else json.dumps(value)}"
