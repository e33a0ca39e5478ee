"""The port, and the start and end of the server."""

import os
import socket

import uvicorn
from starlette.applications import Starlette

from fairseq_capsule_lab.errors import LabError

MOST_CONNECTIONS = 200
MOST_HEADER_BYTES = 64 * 1024  # a character in a URL takes up to nine bytes
SECONDS_TO_END = 10  # for the translation in progress when the server is stopped


def bound(host: str, port: int) -> socket.socket:
    """A listening socket. The port is bound before a model is loaded.

    Raises:
        LabError: the address does not belong to this computer, or the port is not available.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (socket.gaierror, UnicodeError):  # UnicodeError: an invalid host name, such as a very long one
        raise LabError(
            f"--host {host[:100]}: no such host; give an address of this computer, such as 127.0.0.1"
        ) from None
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise LabError(
            f"port {port} of {host}: {reason}; choose another, such as --port {min(port + 1, 65535)}"
        ) from None


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
