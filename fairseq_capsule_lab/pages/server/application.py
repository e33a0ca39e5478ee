"""The routes, as a Starlette application. Every refusal is a JSON object with one line, `error`.

| route | |
|---|---|
| `GET /` | the page with the text box; its files are `live.js` and `live.css` |
| `GET /model` | facts about the models and the limits of requests |
| `POST /translate` | the n-best lists |
| `POST /inspect` | the best translation and the arrays of what was routed |
| `GET /page?text=…&beam=…` | the page of the inspector for a sentence |
"""

import asyncio
import sys
import traceback
from collections.abc import Callable
from importlib.resources import files
from typing import FrozenSet

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fairseq_capsule.errors import UserError
from fairseq_capsule_lab.pages.server import guards
from fairseq_capsule_lab.pages.server.bodies import MOST_BYTES, Asked, Refusal, read_body, read_query
from fairseq_capsule_lab.pages.server.limits import CLOSED, Queue, Rate
from fairseq_capsule_lab.pages.server.translator import Translator

SECONDS_FOR_A_BODY = 10.0
LIVE_FILES = {
    "/": ("live.html", "text/html"),
    "/live.css": ("live.css", "text/css"),
    "/live.js": ("live.js", "text/javascript"),
}


def application(translator: Translator, names: FrozenSet[str], waiting: int, per_minute: int) -> Starlette:
    """The server as an ASGI application.

    Args:
        names: host names of the server, besides `localhost` and addresses.
        waiting: maximum requests in the queue, without the one in progress.
        per_minute: maximum requests from one address in a minute.
    """
    queue, rate = Queue(waiting), Rate(per_minute)
    policy = guards.page_policy(translator.page_scripts)

    def admit(request: Request) -> None:
        guards.require_own_origin(request.headers)
        rate.take(request.client.host if request.client else "")

    async def post(request: Request, fields: tuple[str, ...], answer: Callable) -> Response:
        admit(request)
        asked = read_body(await _body(request), fields)
        return JSONResponse(await queue.run(request.is_disconnected, answer, asked))

    async def translate(request: Request) -> Response:
        return await post(request, ("beam",), translator.translate)

    async def inspect(request: Request) -> Response:
        return await post(request, ("beam", "arrays"), translator.inspect)

    async def page(request: Request) -> Response:
        admit(request)
        asked: Asked = read_query(request.query_params)
        content = await queue.run(request.is_disconnected, translator.page, asked)
        return Response(content, media_type="text/html", headers={"Content-Security-Policy": policy})

    async def model(_: Request) -> Response:
        return JSONResponse(translator.facts())

    routes = [
        *(Route(path, _file(*described), methods=["GET"]) for path, described in LIVE_FILES.items()),
        Route("/model", model, methods=["GET"]),
        Route("/page", page, methods=["GET"]),
        Route("/translate", translate, methods=["POST"]),
        Route("/inspect", inspect, methods=["POST"]),
    ]
    handlers = {Refusal: _refused, UserError: _user_error, HTTPException: _http_error, ClientDisconnect: _hung_up}
    guarded = Middleware(Guarded, names=names)
    return Starlette(routes=routes, middleware=[guarded], exception_handlers=handlers)


class Guarded:
    """Checks the Host of every request and adds the headers of every answer. An error never ends the server."""

    def __init__(self, app: ASGIApp, names: FrozenSet[str]):
        self._app = app
        self._names = names

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                there = {name for name, _ in message["headers"]}
                added = ((name.lower().encode(), value.encode()) for name, value in guards.HEADERS.items())
                message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in there)]
            await send(message)

        request = Request(scope)
        try:
            guards.require_host(request.headers.get("host", ""), self._names)
            await self._app(scope, receive, send_guarded)
        except Refusal as refusal:
            await _error(refusal.status, str(refusal))(scope, receive, send_guarded)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            if not started:
                message = "the request failed; the terminal of the server shows the error"
                await _error(500, message)(scope, receive, send_guarded)


async def _body(request: Request) -> bytes:
    """Read the JSON body of a request, within the limits of size and time.

    Raises:
        Refusal: 415 if it is not declared as JSON, 413 if it is too long, 408 if it is too slow.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # pages of other sites cannot send JSON without a preflight
        raise Refusal(415, "the content type is not JSON; send Content-Type: application/json")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared[:20]) > MOST_BYTES:
        raise _too_long()
    found = b""
    try:
        async with asyncio.timeout(SECONDS_FOR_A_BODY):
            async for part in request.stream():
                found += part
                if len(found) > MOST_BYTES:
                    raise _too_long()
    except TimeoutError:
        raise Refusal(408, f"the body took more than {SECONDS_FOR_A_BODY:g} s; send it again") from None
    return found


def _too_long() -> Refusal:
    # The rest of the body is not read, so the connection must close.
    return Refusal(413, f"the body has more than {MOST_BYTES} bytes; send one sentence", {"Connection": "close"})


def _file(name: str, kind: str) -> Callable:
    content = files(__package__).joinpath(name).read_bytes()
    headers = {"Content-Security-Policy": guards.LIVE_POLICY} if kind == "text/html" else {}

    async def answer(_: Request) -> Response:
        return Response(content, media_type=kind, headers=headers)

    return answer


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return _error(error.status, str(error), error.headers)


async def _user_error(_: Request, error: Exception) -> Response:
    """Answer an error of the inspector, such as a translation that is too long for the second model."""
    return _error(422, str(error))


async def _http_error(_: Request, error: Exception) -> Response:
    """Answer an error of Starlette: no such route, or a method that the route does not have."""
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow")
    message = f"wrong method; use {allowed}" if allowed else "there is no such address; see the documentation"
    return _error(error.status_code, message, dict(error.headers or {}))


async def _hung_up(_: Request, __: Exception) -> Response:
    return _error(CLOSED, "the client has disconnected")
