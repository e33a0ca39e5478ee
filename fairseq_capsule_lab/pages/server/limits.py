"""What the server allows: its port and connections, hosts and origins, one task at a time, a rate for each address."""

import asyncio
import ipaddress
import math
import os
import re
import socket
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, FrozenSet, Tuple

import uvicorn
from starlette.applications import Starlette

from fairseq_capsule_lab.errors import LabError
from fairseq_capsule_lab.pages.server.requests import Refusal

MOST_CONNECTIONS = 200
MOST_HEADER_BYTES = 64 * 1024  # a character in a URL takes up to nine bytes
SECONDS_TO_END = 10  # for the translation in progress when the server is stopped
MOST_ADDRESSES = 10_000  # addresses with a stored rate
CLOSED = 499  # the status that other servers log if the client has disconnected

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


# --- the port ---------------------------------------------------------------------------------------------------------


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. The port is bound before a model is loaded.

    Raises:
        LabError: the address does not belong to this computer, or the port is not available.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (socket.gaierror, UnicodeError):  # UnicodeError: an invalid host name, such as a very long one
        advice = "give an address of this computer, such as 127.0.0.1"
        raise LabError(f"--host {host[:100]}: no such host; {advice}") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        advice = f"choose another, such as --port {min(port + 1, 65535)}"
        raise LabError(f"port {port} of {host}: {reason}; {advice}") from None


def address(listening: socket.socket) -> str:
    """The URL of the server for a browser."""
    host, port, *_ = listening.getsockname()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run(app: Starlette, listening: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM. A translation in progress is finished first."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,  # the log would store the text of users
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        timeout_graceful_shutdown=SECONDS_TO_END,
        lifespan="off",
        ws="none",
        http="h11",
    )
    uvicorn.Server(config).run(sockets=[listening])


# --- hosts and origins ------------------------------------------------------------------------------------------------


def require_host(host: str, names: FrozenSet[str]) -> None:
    """Refuse, with 421, a request by another host name that resolves to this computer (DNS rebinding).

    A numeric address cannot be rebound. Of host names, only `localhost` and the `names` of this computer are allowed.
    """
    match = re.fullmatch(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:\d{1,5})?", host)
    name = match[1].strip("[]").lower() if match else ""
    if name in ("localhost", *names):
        return
    try:
        ipaddress.ip_address(name)
    except ValueError:
        advice = "use the numeric address of the server, or start it with --name NAME"
        raise Refusal(421, f"unknown Host; {advice}") from None


def require_own_origin(headers: Mapping[str, str]) -> None:
    """Refuse, with 403, requests that a browser sends for a page of another site."""
    origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
    own = origin is None or origin in (f"{scheme}://{headers.get('host')}" for scheme in ("http", "https"))
    if not own or site not in ("none", "same-origin"):
        raise Refusal(403, "the request comes from a page of another site; open the page of this server")


# --- tasks ------------------------------------------------------------------------------------------------------------


class Queue:
    """Runs functions one by one, in the order of the calls, in a separate thread; `length` calls may wait."""

    def __init__(self, length: int):
        self._length = length
        self._inside = 0
        self._turn = asyncio.Lock()  # first come, first served
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="translate")

    async def run(self, gone: Callable[[], Awaitable[bool]], function: Callable[..., Any], *arguments: Any) -> Any:
        """Wait for the earlier calls, then call the function and return its result.

        Args:
            gone: tells whether the client has disconnected. It is called after the wait. If it is true, the function
                is not called.

        Raises:
            Refusal: 503 if the queue is full, 499 if the client has disconnected.
        """
        if self._inside > self._length:
            message = f"{self._inside - 1} requests are already waiting; try again in a moment"
            raise Refusal(503, message, {"Retry-After": "1"})
        self._inside += 1
        try:
            async with self._turn:
                if await gone():
                    raise Refusal(CLOSED, "the client has disconnected")
                work = asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
                try:
                    return await asyncio.shield(work)
                finally:  # after a request is cancelled, the next one must wait until the thread has finished the work
                    await asyncio.wait([work])
        finally:
            self._inside -= 1


class Rate:
    """A limit of requests per minute for each address: the size of a token bucket, and the tokens added in a minute."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic):
        self._most = per_minute
        self._clock = clock
        self._buckets: OrderedDict[str, Tuple[float, float]] = OrderedDict()  # address → (tokens, time)

    def take(self, address: str) -> None:
        """Count a request; refuse it with 429 if there are too many. `Retry-After` has the seconds to wait."""
        now = self._clock()
        tokens, when = self._buckets.pop(address, (float(self._most), now))
        tokens = min(self._most, tokens + (now - when) * self._most / 60)
        enough = tokens >= 1
        self._buckets[address] = (tokens - enough, now)
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)  # the address with the oldest last request
        if not enough:
            wait = math.ceil((1 - tokens) * 60 / self._most)
            message = f"more than {self._most} requests a minute; try again in {wait} s"
            raise Refusal(429, message, {"Retry-After": str(wait)})
