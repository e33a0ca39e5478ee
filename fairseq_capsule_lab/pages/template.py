"""The templates of the pages, in `templates/`: one layout, one style sheet, and scripts without copies."""

import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def render(template: str, **parts: Any) -> str:
    """Fill a template. Every text is escaped; `tojson` embeds data that a script reads."""
    return _environment().get_template(template).render(parts)


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    environment.globals["source"] = _source
    environment.filters["breakable"] = breakable
    return environment


def _source(name: str) -> Markup:
    """A style sheet or a script of this package."""
    return Markup(files(__package__).joinpath(name).read_text(encoding="utf-8"))


def breakable(name: str) -> Markup:
    """The name of a file, with places for a new line after each `/`, `_`, `-` and `.`."""
    return Markup("<wbr>").join(re.findall(r"[^/_.-]*[/_.-]+|[^/_.-]+", name))
