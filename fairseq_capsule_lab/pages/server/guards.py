"""Checks of the host and the origin of a request, and the headers of every answer."""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import FrozenSet, Tuple

from fairseq_capsule_lab.pages.server.bodies import Refusal
from fairseq_capsule_lab.pages.template import script_hash

LOCAL = "localhost"

# The headers of every answer. There are no CORS headers: other origins cannot read answers.
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
}
# The page with the text box: only files of this server.
LIVE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SCRIPT = re.compile(r"<script\b(?P<attributes>[^>]*)>(?P<text>.*?)</script>", re.DOTALL)


def require_host(host: str, names: FrozenSet[str]) -> None:
    """Refuse a request by another host name that resolves to this computer (DNS rebinding).

    A numeric address cannot be rebound. Of host names, only the names of this computer are allowed.

    Args:
        host: the Host header of the request.
        names: the allowed names of the server besides `localhost` and numeric addresses.

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
            421, "unknown Host; use the numeric address of the server, or start it with --name NAME"
        ) from None


def require_own_origin(headers: Mapping[str, str]) -> None:
    """Refuse requests that a browser sends for a page of another site.

    Raises:
        Refusal: 403.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    own = origin is None or origin in (f"{scheme}://{headers.get('host')}" for scheme in ("http", "https"))
    if not own or site not in ("none", "same-origin"):
        raise Refusal(403, "the request comes from a page of another site; open the page of this server")


def scripts_of(page: str) -> Tuple[str, ...]:
    """The hashes of a page's scripts for a Content-Security-Policy. Data blocks are not scripts."""
    return tuple(
        script_hash(match["text"]) for match in SCRIPT.finditer(page) if "application/json" not in match["attributes"]
    )


def page_policy(scripts: Iterable[str]) -> str:
    """The policy of a page of the inspector. The page contains its scripts and styles and loads nothing.

    Args:
        scripts: the hashes of the scripts that may run.
    """
    return (
        f"default-src 'none'; script-src {' '.join(scripts)}; style-src 'unsafe-inline'; img-src data: blob:; "
        "font-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
    )
