"""Which hosts and origins may ask, and the headers of every answer."""

import base64
import hashlib
import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import FrozenSet, Tuple

from fairseq_capsule.inspector.server.bodies import Refusal

LOCAL = "localhost"

# Every answer. Nothing is shared with other origins; there are no CORS headers anywhere.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
# The page with the text box: files of this server alone.
LIVE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SCRIPT = re.compile(r"<script\b(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)


def require_host(host: str, names: FrozenSet[str]) -> None:
    """Refuse a page of another name that resolves to this computer (DNS rebinding).

    An address in digits cannot be rebound; of names only this computer's own are allowed.

    Args:
        host: the request's Host header.
        names: what the server may be called besides `localhost` and addresses in digits.

    Raises:
        Refusal: 421.
    """
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?", host)
    name = match[1].strip("[]").lower() if match else ""
    if name in (LOCAL, *names):
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        raise Refusal(
            421, "this server is not known by that Host; use its address in digits, or start it with --name NAME"
        ) from None


def require_own_origin(headers: Mapping[str, str]) -> None:
    """Refuse requests that a page of another site makes its reader's browser send.

    Raises:
        Refusal: 403.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    own = origin is None or origin in (f"{scheme}://{headers.get('host')}" for scheme in ("http", "https"))
    if not own or site not in ("none", "same-origin"):
        raise Refusal(403, "the request comes from a page of another site; open this server's own page")


def scripts_of(page: str) -> Tuple[str, ...]:
    """The hashes of a page's scripts, as a Content-Security-Policy names them; blocks of data are no scripts."""
    return tuple(
        f"'sha256-{base64.b64encode(hashlib.sha256(match['text'].encode()).digest()).decode()}'"
        for match in SCRIPT.finditer(page)
        if "application/json" not in match["attributes"]
    )


def page_policy(scripts: Iterable[str]) -> str:
    """The policy of a page of the inspector, which has its scripts and styles in it and fetches nothing.

    Args:
        scripts: the hashes of those that may run.
    """
    return (
        f"default-src 'none'; script-src {' '.join(scripts)}; style-src 'unsafe-inline'; img-src data: blob:; "
        "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
