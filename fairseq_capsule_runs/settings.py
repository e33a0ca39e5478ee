"""The settings of a run folder: data, precision, batch, and the configuration with its overrides."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fairseq_capsule_runs import values
from fairseq_capsule_runs.values import RunError

DEEPEST = 20  # nested groups of a configuration


@dataclass(frozen=True)
class Settings:
    """Settings: `config` is the configuration as nested groups; `origin` has data, precision and batch."""

    config: dict[str, Any]
    origin: dict[str, Any] = field(default_factory=dict)

    def lines(self) -> set[str]:
        """`KEY VALUE` of every setting."""
        found = [*_lines(self.origin, ""), *_lines(self.config, "")]
        return {line for text in found for line in text.split("\n")}

    def get(self, key: str) -> Any:
        """A value of the configuration by its key, such as `model.dropout`; None if it is not set."""
        found: Any = self.config
        for part in key.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        return found

    def whole(self, key: str, otherwise: int, low: int = 1) -> int:
        found = self.get(key)
        return otherwise if found is None else values.whole(key, found, low)

    def number(self, key: str, otherwise: float) -> float:
        found = self.get(key)
        return otherwise if found is None else values.number(key, found)

    def name(self, key: str, otherwise: str) -> str:
        found = self.get(key)
        return otherwise if found is None else values.name(key, found)

    def to_json(self) -> str:
        return json.dumps({**self.origin, "config": self.config}, indent=1, ensure_ascii=False, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Settings":
        """Read `settings.json`.

        Raises:
            RunError: the text is not a JSON object with a `config`.
        """
        try:
            origin = json.loads(text)
            config = origin.pop("config")
        except (ValueError, AttributeError, KeyError, TypeError, RecursionError):
            raise RunError("not a JSON object with a 'config'") from None
        if not isinstance(config, dict):
            raise RunError("its 'config' is not a JSON object")
        _require_shallow(config)
        return cls(config, origin)

    @classmethod
    def from_lines(cls, text: str) -> "Settings":
        """Read the old format: lines `KEY VALUE`, where VALUE is a text or a JSON value.

        Raises:
            RunError: a line has another form, or a key is also a group.
        """
        config: dict[str, Any] = {}
        origin: dict[str, Any] = {}
        for number, line in enumerate(text.rstrip("\n").split("\n") if text else [], start=1):
            found = re.fullmatch(r"([\w./@-]+)(?: (.*))?", line)
            if not found:
                raise RunError(f"line {number} is not 'KEY VALUE'")
            *groups, last = found[1].split(".")
            inside = config if groups else origin
            for group in groups:
                inside = inside.setdefault(group, {})
                if not isinstance(inside, dict):
                    raise RunError(f"line {number}: {found[1]} is both a value and a group")
            inside[last] = _value(found[2] or "")
        origin.pop("script", None)
        _require_shallow(config)
        return cls(config, origin)


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _require_shallow(config: dict[str, Any], depth: int = 0) -> None:
    if depth > DEEPEST:
        raise RunError(f"more than {DEEPEST} nested groups")
    for value in config.values():
        if isinstance(value, dict):
            _require_shallow(value, depth + 1)


def _lines(group: dict[str, Any], prefix: str) -> Iterator[str]:
    for key, value in group.items():
        if isinstance(value, dict):
            yield from _lines(value, f"{prefix}{key}.")
        elif value is not None:
            yield f"{prefix}{key} {value if isinstance(value, str) else json.dumps(value)}"
