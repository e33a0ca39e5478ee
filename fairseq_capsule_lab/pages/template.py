"""The templates of the pages, in `templates/`: one layout, one style sheet, and scripts without copies."""

import base64
import hashlib
import json
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
    environment.globals["source"] = lambda name: Markup(read(name))  # a style sheet or a script of this package
    return environment


def read(name: str) -> str:
    """The text of a file of this package."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def fill(template: str, **parts: str) -> str:
    """A template with each `{{name}}` replaced. Braces inside a part stay as they are."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def embedded(content: Any) -> str:
    """JSON for a script element: without `<` it has no end tag and no comment that ends the element."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def script_hash(script: str) -> str:
    """The source of a script in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def content_policy(script: str, *sources: str, images: str, fonts: str = "'none'") -> str:
    """The Content-Security-Policy of a page that runs one script, has its own styles and sends nothing.

    Further scripts may come from `sources`. `images` and `fonts` are the schemes of their addresses.
    """
    return (
        f"default-src 'none'; script-src {' '.join([script_hash(script), *sources])}; style-src 'unsafe-inline'; "
        f"img-src {images}; font-src {fonts}; base-uri 'none'; form-action 'none'"
    )
