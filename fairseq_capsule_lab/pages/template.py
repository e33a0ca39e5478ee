"""Parts of a page in one file: a filled template, JSON in a script element, and the hash of a script."""

import base64
import hashlib
import json
import re
from typing import Any


def fill(template: str, **parts: str) -> str:
    """A template with each `{{name}}` replaced. Braces inside a part stay as they are."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)


def embedded(content: Any) -> str:
    """JSON for a script element: without `<` it has no end tag and no comment that ends the element."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def script_hash(script: str) -> str:
    """The source of a script in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
