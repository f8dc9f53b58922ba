"""The client: what a submitter's program needs of the server. Standard library only."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import DOCUMENT
from dpselect.errors import ArgumentError, BudgetError, ContentError, number
from dpselect.holdout.files import read_columns, texts
from dpselect.holdout.gate.files import read_outcomes

__all__ = ["HoldoutClient", "ServerError"]

_LOCAL: Final = ("localhost", "127.0.0.1", "::1")
_BUDGET: Final = ("budget", "quota")
_LONGEST: Final = 2000


class ServerError(RuntimeError):
    """The server has refused for a reason that is not in the submission: a token, a rate, a failure. `code` says it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """A token goes nowhere but to the server that it was made for."""


class HoldoutClient:
    """Submits to a server of holdouts and gates.

    Args:
        url: the server's, with the path below which it is shown.
        token: the submitter's. It is sent over https only, or to this machine.
        timeout: seconds to wait for an answer.

    >>> client = HoldoutClient("https://leaderboard.example.org/", token="dps_...")
    >>> client.url
    'https://leaderboard.example.org'
    """

    def __init__(self, url: str, *, token: str | None = None, timeout: float = 120.0) -> None:
        parts = urllib.parse.urlsplit(url)
        if "@" in parts.netloc:
            raise ArgumentError("url must not hold a user or a password; the token says who submits")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ArgumentError(f"url must begin with https://, got {url!r}")
        if parts.scheme == "http" and token is not None and parts.hostname not in _LOCAL:
            raise ArgumentError("url must begin with https://: a token is not sent in the clear to another machine")
        self.url = url.rstrip("/")
        self._token = token
        self._timeout = number("timeout", timeout, above=0.0)
        # a proxy of the environment is another machine: it may carry what is encrypted, and nothing else
        direct = [urllib.request.ProxyHandler({})] if parts.scheme == "http" else []
        self._opener = urllib.request.build_opener(_NoRedirect, *direct)

    def boards(self) -> list[dict[str, Any]]:
        """The boards that are served, with their public facts."""
        return list(self._sent("/api/boards"))

    def board(self, name: str) -> dict[str, Any]:
        """The public facts of one board, with its leaderboard."""
        return dict(self._sent(f"/api/boards/{_quoted(name)}"))

    def quota(self, name: str) -> dict[str, Any]:
        """The quota that the submitter has left there."""
        return dict(self._sent(f"/api/boards/{_quoted(name)}/quota"))

    def score(
        self,
        name: str,
        *,
        ids: Iterable[Any],
        predictions: Iterable[Any],
        claim: float | None = None,
        metric: str | None = None,
    ) -> dict[str, Any]:
        """Check a claimed score of predictions, or get one, as `Holdout.score` does. Returns its fields.

        Raises `ContentError` for predictions that cannot be used, when nothing was charged, `BudgetError` when the
        holdout or the quota is used up, and `ServerError`.
        """
        names, values = texts(ids), texts(predictions)
        if len(set(names)) != len(names) or len(names) != len(values):
            raise ContentError("ids must all be different, with as many predictions")
        predictions = dict(zip(names, values, strict=True))
        return dict(self._submitted(name, {"predictions": predictions, "claim": claim, "metric": metric}))

    def ask(
        self,
        name: str,
        outcomes: Mapping[Any, Any],
        *,
        stake: float | str | None = None,
        candidate: str | None = None,
        incumbent: Mapping[Any, Any] | None = None,
    ) -> bool:
        """Whether a candidate is better than the incumbent, as `Gate.ask` does."""
        sent = {"outcomes": _plain(outcomes), "incumbent": None if incumbent is None else _plain(incumbent)}
        found = self._submitted(name, {**sent, "stake": stake, "candidate": candidate})
        return bool(found["verdict"] == "accepted")

    def submit(
        self,
        name: str,
        file: str | os.PathLike[str],
        *,
        claim: float | None = None,
        stake: float | str | None = None,
        candidate: str | None = None,
        column: str = "prediction",
        metric: str | None = None,
    ) -> dict[str, Any]:
        """Submit a table of ids with predictions, or with outcomes, whichever is taken there, in any format of a study.

        The fields of `score`, or {"verdict": "accepted" or "rejected"}.
        """
        about, path = self.board(name), Path(file)
        if about["kind"] == "gate":
            outcomes = read_outcomes(path, about["id_column"], about["outcome_columns"], own=True)
            accepted = self.ask(name, outcomes, stake=stake, candidate=candidate)
            return {"verdict": "accepted" if accepted else "rejected"}
        ids, values = read_columns(path, [about["id_column"], column], own=True)
        return self.score(name, ids=ids, predictions=values, claim=claim, metric=metric)

    def _submitted(self, name: str, fields: dict[str, Any]) -> Any:
        given = {field: value for field, value in fields.items() if value is not None}
        return self._sent(f"/api/boards/{_quoted(name)}/submissions", json.dumps(given, default=_number).encode())

    def _sent(self, path: str, body: bytes | None = None) -> Any:
        request = urllib.request.Request(self.url + path, body, {"Accept": "application/json"})
        if body is not None:
            request.add_header("Content-Type", "application/json")
        if self._token is not None:
            request.add_unredirected_header("Authorization", f"Bearer {self._token}")
        try:
            with self._opener.open(request, timeout=self._timeout) as response:
                return json_of(response.read(DOCUMENT.size + 1), DOCUMENT, "the answer")
        except urllib.error.HTTPError as refused:
            problem = _problem(refused)
        except (OSError, ValueError, HTTPException):  # the last: killed while it answered
            problem = ServerError("unreachable", f"no answer from {self.url}")
        raise problem

    def __repr__(self) -> str:
        return f"<HoldoutClient {self.url}>"


def _problem(refused: urllib.error.HTTPError) -> Exception:
    try:
        error = json_of(refused.read(1 << 16), DOCUMENT, "the answer")["error"]
        code, message = _printable(error["code"]), _printable(error["message"])
    except (OSError, ValueError, KeyError, TypeError, HTTPException):
        return ServerError("unknown", f"the server has answered with status {refused.code}")
    if code == "malformed":
        return ContentError(message)
    return BudgetError(message) if code in _BUDGET else ServerError(code, message)


def _printable(text: Any) -> str:
    """The text of a server, without characters that would steer a terminal."""
    return "".join(sign if sign.isprintable() else "?" for sign in str(text)[:_LONGEST])


def _quoted(name: str) -> str:
    return urllib.parse.quote(name, safe="")


def _plain(outcomes: Mapping[Any, Any]) -> dict[str, Any]:
    names = texts(list(outcomes))
    if len(set(names)) != len(names):
        raise ContentError("outcomes must have one id for each task")
    return dict(zip(names, outcomes.values(), strict=True))


def _number(value: Any) -> Any:
    """Arrays and their numbers as Python's."""
    return value.tolist()
