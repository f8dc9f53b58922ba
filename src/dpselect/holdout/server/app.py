"""The server's routes. An error is one JSON object with a code and a message. Nothing else is said or logged.

The leaderboard for people is plain HTML without scripts, readable from 320 pixels on.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from dpselect.errors import ArgumentError, BudgetError, ContentError, StudyError, missing_extra
from dpselect.holdout.server.boards import Board, BoardAnswer, BoardQuestion
from dpselect.holdout.server.limits import AtOnce, KnownAddresses, ServerSettings, Share, TooOften, network_of
from dpselect.holdout.server.openapi import openapi
from dpselect.holdout.server.submitters import QuotaError, Submitter, Submitters
from dpselect.holdout.server.uploads import MEDIA, Feed, Upload, feed_of

try:
    import anyio
    from anyio.to_thread import run_sync
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import HTMLResponse, JSONResponse, Response
    from starlette.routing import Route
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
except ImportError:
    raise missing_extra("server", "serving holdouts and gates") from None

__all__ = ["LOG", "make_app"]

LOG: Final = logging.getLogger("dpselect.server")
_METHODS: Final = ("GET", "HEAD", "POST")
_LONGEST: Final = 1000
"""Signs of what is said about a submission: names of its columns stand there."""
_SMALL: Final = 256 << 10
"""Bytes of a body that takes little memory while it is decoded."""
_STYLE: Final = files("dpselect.holdout.server").joinpath("templates/style.css").read_text(encoding="utf-8")
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_PAGES: Final = Environment(
    loader=PackageLoader("dpselect.holdout.server"), undefined=StrictUndefined, autoescape=True, trim_blocks=True
)
_HEADERS: Final = {
    "Cache-Control": "no-store",
    # nothing is loaded, and no style but ours
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class _RefusedError(Exception):
    """A request that gets no answer."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(code)
        self.response = _problem(status, code, message, headers)


def _problem(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": {"code": code, "message": message}}, status, dict(headers or {}))


def _page(name: str, **shown: Any) -> Response:
    """The page of what is served ("index"), or of who has what and what is left, by the kind of the board."""
    return HTMLResponse(_PAGES.get_template(f"{name}.html").render(**shown, style=_STYLE))


class _Server:
    """The state that the routes share."""

    def __init__(
        self, boards: Mapping[str, Board], submitters: Submitters, settings: ServerSettings, known: KnownAddresses
    ) -> None:
        self._boards, self._submitters, self._settings, self._known = boards, submitters, settings, known
        self._by_name = TooOften(settings.rate)
        # a holdout or gate gives one answer at a time: who comes later waits here, not for a lock on a file
        self._lines = {name: anyio.CapacityLimiter(1) for name in boards}
        self._waiting = AtOnce(settings.waiting)
        self._at_once = AtOnce(settings.at_once)
        self._bytes = Share(max(settings.memory // 4, settings.max_bytes), max(settings.memory, settings.max_bytes))
        # a body takes many times its size while it is decoded: of large ones one at a time, beside a few small ones
        self._small, self._large = anyio.CapacityLimiter(4), anyio.CapacityLimiter(1)

    def routes(self) -> list[Route]:
        return [
            Route("/", self.index),
            Route("/boards/{board}", self.page),
            Route("/api/boards", self.boards),
            Route("/api/boards/{board}", self.show),
            Route("/api/boards/{board}/quota", self.quota),
            Route("/api/boards/{board}/submissions", self.submit, methods=["POST"]),
            Route("/openapi.json", self.document),
            Route("/healthz", self.health),
        ]

    async def index(self, request: Request) -> Response:  # noqa: ARG002 - every route has one
        return _page("index", boards=await run_sync(self._public))

    async def page(self, request: Request) -> Response:
        board = self._board(request)
        return _page(board.kind, board=await run_sync(self._described, board))

    async def boards(self, request: Request) -> Response:  # noqa: ARG002 - every route has one
        return JSONResponse(await run_sync(self._public))

    async def show(self, request: Request) -> Response:
        return JSONResponse(await run_sync(self._described, self._board(request)))

    async def quota(self, request: Request) -> Response:
        who, board = await self._who(request), self._board(request)
        questions, answers = await run_sync(self._submitters.left, who, board.identifier)
        return JSONResponse({"submitter": who.name, "questions_left": questions, "answers_left": answers})

    async def document(self, request: Request) -> Response:
        return JSONResponse(openapi(request.scope.get("root_path", ""), self._boards))

    async def health(self, request: Request) -> Response:  # noqa: ARG002 - every route has one
        return JSONResponse({"status": "ok"})

    async def submit(self, request: Request) -> Response:
        who, board = await self._who(request), self._board(request)
        if not who.may(board.name):
            raise _RefusedError(403, "not_yours", "this token is not for this holdout or gate")
        media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if media not in MEDIA:
            raise _RefusedError(415, "media", f"the body must be one of {', '.join(MEDIA)}")
        if request.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise _RefusedError(415, "encoding", "the body must not be compressed", {"Accept-Encoding": "identity"})
        query = dict(request.query_params)
        if len(query) != len(request.query_params.multi_items()):
            raise _RefusedError(422, "malformed", "an option stands in the query twice")
        with self._at_once.of(who.name) as place:  # before the body is read: bodies are what takes memory
            if not place:
                raise _busy("too many submissions of yours are under way")
            with _refusals():
                question = await self._question(request, who, board, media, query)
                with self._waiting.of(board.name) as place:
                    if not place:
                        raise _busy("too many submissions are waiting")
                    return JSONResponse(await self._answered(who, board, question))

    async def _question(
        self, request: Request, who: Submitter, board: Board, media: str, query: Mapping[str, str]
    ) -> BoardQuestion:
        def asked() -> BoardQuestion | Exception:
            try:
                return board.question(Upload(body, media, query), who.name, own_stakes=who.own_stakes)
            except (ContentError, ArgumentError) as refused:
                refused.__context__ = None
                return refused.with_traceback(None)  # else its frames keep what was decoded until they are collected

        with self._bytes.of(who.name) as take, closing(feed_of(media)) as body:
            await self._body(request, who, body, take)
            found = await run_sync(asked, limiter=self._small if body.size <= _SMALL else self._large)
        if isinstance(found, Exception):
            raise found
        return found

    async def _answered(self, who: Submitter, board: Board, question: BoardQuestion) -> dict[str, Any]:
        opened = await run_sync(self._submitters.begin, who, board.identifier, question.fingerprint)
        begun = False

        def ask() -> BoardAnswer:
            nonlocal begun
            begun = True
            if not self._submitters.valid(who):  # revoked while this was waiting for its turn
                self._submitters.give_back(opened)
                raise _unauthorized()
            try:
                answer = question.ask()
            except StudyError:
                raise  # the record failed, perhaps after it was charged
            except (ContentError, ArgumentError, BudgetError):
                self._submitters.give_back(opened)
                raise
            self._submitters.finish(opened, answer)
            return answer

        try:
            with anyio.fail_after(self._settings.turn_seconds):  # which breaks off no turn that has come
                answer = await run_sync(ask, limiter=self._lines[board.name])
        except TimeoutError:
            if begun:
                raise
            await run_sync(self._submitters.give_back, opened)
            raise _busy("the submission has waited too long; nothing was charged") from None
        if "repeated" in answer.body:  # that someone else has asked the same is no one's business
            return {**answer.body, "repeated": bool(answer.body["repeated"] and opened.again)}
        return answer.body

    def _public(self) -> list[dict[str, Any]]:
        return [board.describe() for board in self._boards.values()]

    def _described(self, board: Board) -> dict[str, Any]:
        found = board.describe()
        if board.kind == "gate":
            return {**found, "leaderboard": self._submitters.accepted(board.identifier)}
        standing = self._submitters.standing(board.identifier, smaller_is_better=found["smaller_is_better"])
        return {**found, "leaderboard": standing}

    def _board(self, request: Request) -> Board:
        board = self._boards.get(request.path_params["board"])
        if board is None:
            raise _RefusedError(404, "not_found", "there is no holdout or gate of this name")
        return board

    async def _who(self, request: Request) -> Submitter:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        who = None
        if scheme.lower() == "bearer" and token:
            who = await run_sync(self._submitters.by_token, token.strip())
        if who is None:
            raise _unauthorized()
        if request.client is not None:
            self._known.add(request.client.host)
        if self._by_name.hit(who.name, who.rate):
            raise _too_often()
        return who

    async def _body(self, request: Request, who: Submitter, feed: Feed, take: Callable[[int], bool]) -> None:
        most = min(self._settings.max_bytes, who.max_bytes or self._settings.max_bytes)
        if int(request.headers.get("content-length", "0")) > most:
            raise _too_large(most)
        try:
            with anyio.fail_after(self._settings.body_seconds):
                async for chunk in request.stream():
                    if feed.size + len(chunk) > most:
                        raise _too_large(most)
                    if not take(len(chunk)):
                        raise _busy("too many bodies are under way")
                    feed.add(chunk)
        except TimeoutError:
            raise _RefusedError(408, "too_slow", "the body took too long") from None
        except ClientDisconnect:
            raise _RefusedError(400, "disconnected", "the body is not complete") from None


@contextmanager
def _refusals() -> Iterator[None]:
    """An error of a submission, or a used-up quota, as an answer."""
    try:
        yield
    except StudyError:
        raise
    except BudgetError as refused:
        raise _RefusedError(409, "quota" if isinstance(refused, QuotaError) else "budget", str(refused)) from None
    except (ContentError, ArgumentError) as malformed:
        raise _RefusedError(422, "malformed", f"{str(malformed)[:_LONGEST]}; nothing was charged") from None


def _too_large(most: int) -> _RefusedError:
    return _RefusedError(413, "too_large", f"a body may hold {most} bytes")


def _too_often(*, close: bool = False) -> _RefusedError:
    """With `close`, anything else that was sent on the connection is not read."""
    headers = {"Retry-After": "30", **({"Connection": "close"} if close else {})}
    return _RefusedError(429, "rate", "too many requests; wait a little", headers)


def _busy(message: str) -> _RefusedError:
    return _RefusedError(429, "busy", message, {"Retry-After": "5"})


def _unauthorized() -> _RefusedError:
    message = "a valid token is needed: Authorization: Bearer TOKEN"
    return _RefusedError(401, "unauthorized", message, {"WWW-Authenticate": "Bearer"})


def make_app(
    boards: Mapping[str, Board],
    submitters: Submitters,
    settings: ServerSettings,
    known: KnownAddresses | None = None,
) -> ASGIApp:
    """The server as an ASGI application. Addresses from which a valid token comes are noted as known."""

    async def refused(request: Request, error: Exception) -> Response:  # noqa: ARG001 - of this form
        assert isinstance(error, _RefusedError)
        return error.response

    async def no_route(request: Request, error: Exception) -> Response:  # noqa: ARG001 - of this form
        assert isinstance(error, HTTPException)
        code = {404: "not_found", 405: "method"}.get(error.status_code, "refused")
        return _problem(error.status_code, code, "see openapi.json for what is served", error.headers)

    async def failed(request: Request, error: Exception) -> Response:  # noqa: ARG001 - of this form
        return _problem(500, "failed", "the server failed; nothing was shown")

    async def unavailable(request: Request, error: Exception) -> Response:  # noqa: ARG001 - of this form
        return _problem(503, "unavailable", "the record cannot be used now; ask again", {"Retry-After": "5"})

    handlers: dict[Any, Any] = {
        _RefusedError: refused,
        HTTPException: no_route,
        StudyError: unavailable,
        Exception: failed,
    }
    server = _Server(boards, submitters, settings, KnownAddresses() if known is None else known)
    app = Starlette(routes=server.routes(), exception_handlers=handlers)
    app.router.redirect_slashes = False  # to an address that a proxy may not show
    return _Guarded(app, settings)


class _Guarded:
    """The rate of each address, headers, a line of log, and no word about an error that no one foresaw."""

    def __init__(self, app: Starlette, settings: ServerSettings) -> None:
        self._app, self._root_path = app, settings.root_path
        self._by_address = TooOften(settings.address_rate)
        self._paths: dict[Any, str] = {route.endpoint: route.path for route in app.routes if isinstance(route, Route)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        if self._root_path:  # some proxies take it off, others do not
            shown = scope["path"].startswith(f"{self._root_path}/")
            path = scope["path"] if shown else self._root_path + scope["path"]
            scope = {**scope, "root_path": self._root_path, "path": path}
        status = 0

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                extra = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        client = scope.get("client")
        often = self._by_address.hit(network_of(client[0]) if client else "")  # no matter what it asks for
        app = _too_often(close=scope["method"] != "POST").response if often else self._app
        try:
            await app(scope, receive, sent)
        except Exception as error:
            # the kind alone: a message could hold what someone has sent
            LOG.error("a request failed: %s", type(error).__name__)
        method = scope["method"] if scope["method"] in _METHODS else "-"  # else it could be anything, of any length
        LOG.info("%s %s %d", method, self._paths.get(scope.get("endpoint"), "-"), status)
