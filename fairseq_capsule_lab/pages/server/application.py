"""The routes, as a Starlette application. Every refusal is a JSON object with one line, `error`.

| route | |
|---|---|
| `GET /` | the page with the text box; its files are `live.js` and `live.css` |
| `GET /model` | facts about the models and the limits of requests |
| `POST /translate` | the n-best lists |
| `POST /inspect` | the best translation and the arrays of what was routed |
| `GET /page?text=…&beam=…` | the page of the inspector for a sentence |
"""

import sys
import traceback
from collections.abc import Callable
from typing import FrozenSet

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from capsule_routing.errors import UserError
from fairseq_capsule_lab.pages.page import page_policy
from fairseq_capsule_lab.pages.server import limits, requests
from fairseq_capsule_lab.pages.server.requests import Refusal
from fairseq_capsule_lab.pages.server.translator import Translator
from fairseq_capsule_lab.pages.template import read

LIVE_FILES = {
    "/": ("live.html", "text/html"),
    "/live.css": ("live.css", "text/css"),
    "/live.js": ("live.js", "text/javascript"),
}


def application(translator: Translator, names: FrozenSet[str], waiting: int, per_minute: int) -> Starlette:
    """The server as an ASGI application.

    Requests may use the host names in `names`. `waiting` of them may wait, and one address may send `per_minute`.
    """
    queue, rate = limits.Queue(waiting), limits.Rate(per_minute)

    def admit(request: Request) -> None:
        limits.require_own_origin(request.headers)
        rate.take(request.client.host if request.client else "")

    def post(task: str, *fields: str) -> Route:
        """The route of a task of the translator, whose requests may have these fields."""

        async def send(request: Request) -> Response:
            admit(request)
            sentence = requests.read_body(await requests.receive_body(request), fields)
            return JSONResponse(await queue.run(request.is_disconnected, getattr(translator, task), sentence))

        return Route(f"/{task}", send, methods=["POST"])

    async def page(request: Request) -> Response:
        admit(request)
        sentence = requests.read_query(request.query_params)
        content = await queue.run(request.is_disconnected, translator.page, sentence)
        return _content(content, "text/html", f"{page_policy()}; frame-ancestors 'self'")

    async def model(_: Request) -> Response:
        return JSONResponse(translator.facts())

    routes = [
        *(Route(path, _file(*described), methods=["GET"]) for path, described in LIVE_FILES.items()),
        Route("/model", model, methods=["GET"]),
        Route("/page", page, methods=["GET"]),
        post("translate", "beam"),
        post("inspect", "beam", "arrays"),
    ]
    handlers = dict.fromkeys((Refusal, UserError, HTTPException, ClientDisconnect), _explain)
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
                default = {name.lower().encode(): value.encode() for name, value in limits.HEADERS.items()}
                message["headers"] = [*(default | dict(message["headers"])).items()]
            await send(message)

        request = Request(scope)
        try:
            limits.require_host(request.headers.get("host", ""), self._names)
            await self._app(scope, receive, send_guarded)
        except Refusal as refusal:
            await (await _explain(request, refusal))(scope, receive, send_guarded)
        except Exception:
            traceback.print_exc(file=sys.stderr)
            if not started:
                message = "the request failed; the terminal of the server shows the error"
                await _error(500, message)(scope, receive, send_guarded)


def _file(name: str, kind: str) -> Callable:
    content = read(f"server/{name}")

    async def send(_: Request) -> Response:
        return _content(content, kind, limits.LIVE_POLICY if kind == "text/html" else None)

    return send


def _content(content: str, kind: str, policy: str | None) -> Response:
    return Response(content, media_type=kind, headers={"Content-Security-Policy": policy} if policy else {})


def _error(status: int, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": message}, status, headers)


async def _explain(_: Request, error: Exception) -> Response:
    """Answer an error in one line."""
    if isinstance(error, Refusal):
        return _error(error.status, str(error), error.headers)
    if isinstance(error, ClientDisconnect):
        return _error(limits.CLOSED, "the client has disconnected")
    if isinstance(error, HTTPException):  # of Starlette: no such route, or a method that the route does not have
        allowed = (error.headers or {}).get("Allow")
        message = f"wrong method; use {allowed}" if allowed else "there is no such address; see the documentation"
        return _error(error.status_code, message, dict(error.headers or {}))
    return _error(422, str(error))  # of the inspector, such as a translation that is too long for the second model
