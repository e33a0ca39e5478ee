"""The port, and the server's start and end."""

import os
import socket

import uvicorn
from starlette.applications import Starlette

from fairseq_capsule.errors import UserError

MOST_CONNECTIONS = 200
MOST_HEADER_BYTES = 64 * 1024  # a sentence in an address has up to nine bytes a character
SECONDS_TO_END = 10  # for what is being translated when the server is told to end


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens; the port is taken before anything is loaded.

    Raises:
        UserError: the address is not this computer's, or the port is not to be had.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (socket.gaierror, UnicodeError):  # the latter of a name that is no host's, such as a very long one
        raise UserError(f"--host {host[:100]}: no such host; name an address of this computer, as 127.0.0.1") from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise UserError(
            f"port {port} of {host}: {reason}; choose another one, such as --port {min(port + 1, 65535)}"
        ) from None


def address(listening: socket.socket) -> str:
    """Where a browser finds it."""
    host, port, *_ = listening.getsockname()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def run(app: Starlette, listening: socket.socket) -> None:
    """Serve until Ctrl-C or SIGTERM; what is being translated then is finished first."""
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,  # which would keep what readers typed
        server_header=False,
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=MOST_HEADER_BYTES,
        timeout_graceful_shutdown=SECONDS_TO_END,
        lifespan="off",
        ws="none",
        http="h11",
    )
    uvicorn.Server(config).run(sockets=[listening])
