"""The OpenAPI document of the server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from dpselect.version import __version__

__all__ = ["openapi"]

_NUMBER: Final = {"type": "number"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_TEXT: Final = {"type": "string"}
_INTERVAL: Final = {"type": ["array", "null"], "items": _NUMBER, "minItems": 2, "maxItems": 2}


def _object(properties: dict[str, Any], *optional: str, more: bool = False) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": more}


_ERROR: Final = _object({"error": _object({"code": _TEXT, "message": _TEXT})})
_SCHEMAS: Final = {
    "Predictions": _object(
        {
            "predictions": {"type": "object", "additionalProperties": {"type": ["string", "number", "boolean"]}},
            "claim": {"type": ["number", "null"]},
            "metric": {"type": ["string", "null"]},
        },
        "claim",
        "metric",
    ),
    "Outcomes": _object(
        {
            "outcomes": {"type": "object"},
            "incumbent": {"type": ["object", "null"]},
            "stake": {"type": ["number", "string", "null"]},
            "candidate": {"type": ["string", "null"], "maxLength": 200},
        },
        "incumbent",
        "stake",
        "candidate",
    ),
    "Score": _object(
        {
            "agrees": {"type": ["boolean", "null"]},
            "value": _NUMBER,
            "interval": _INTERVAL,
            "repeated": {"type": "boolean"},
            "questions_left": _COUNT,
            "answers_left": _COUNT,
        }
    ),
    "Verdict": _object({"verdict": {"enum": ["accepted", "rejected"]}}),
    "Board": _object(
        {
            "name": _TEXT,
            "kind": {"enum": ["holdout", "gate"]},
            "open": {"type": "boolean"},
            "leaderboard": {
                "type": "array",
                "items": _object(
                    {"submitter": _TEXT, "day": _TEXT, "value": _NUMBER, "interval": _INTERVAL}, "value", "interval"
                ),
            },
        },
        "leaderboard",
        more=True,
    ),
    "Quota": _object({"submitter": _TEXT, "questions_left": _COUNT, "answers_left": _COUNT}),
    "Error": _ERROR,
}


def _shown(schema: dict[str, Any], what: str) -> dict[str, Any]:
    return {"description": what, "content": {"application/json": {"schema": schema}}}


def _named(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _responses(schema: dict[str, Any], what: str, *errors: int) -> dict[str, Any]:
    return {
        "200": _shown(schema, what),
        **{str(status): _shown(_named("Error"), _ERRORS[status]) for status in errors},
    }


_ERRORS: Final = {
    400: "The request broke off.",
    401: "There is no valid token.",
    403: "The token is for other holdouts or gates.",
    404: "There is no such holdout or gate.",
    408: "The body took too long.",
    409: "The holdout, the gate or the submitter's quota is used up.",
    413: "The body is too large.",
    415: "The body is of another kind, or compressed (Content-Encoding).",
    422: "The form of the submission is wrong; nothing was charged.",
    429: "Too many requests.",
    503: "The record cannot be used now. Asking again costs no more.",
}
_TOKEN: Final[list[dict[str, list[str]]]] = [{"token": []}]


def _got(summary: str, schema: dict[str, Any], what: str, *errors: int, **more: Any) -> dict[str, Any]:
    return {"get": {"summary": summary, **more, "responses": _responses(schema, what, *errors)}}


def _option(name: str, schema: dict[str, Any], what: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": what}


def openapi(root_path: str, boards: Iterable[str]) -> dict[str, Any]:
    """The document, for a server of these holdouts and gates that a proxy shows below `root_path`."""
    named = {"name": "board", "in": "path", "required": True, "schema": {"enum": sorted(boards)}}
    table = {"schema": {"type": "string", "format": "binary"}}
    submission = {
        "summary": "Ask one question: predictions to a holdout, outcomes to a gate",
        "description": "An option is given in the query or in a JSON body, not in both.",
        "security": _TOKEN,
        "parameters": [
            named,
            _option("claim", _NUMBER, "For a holdout: the score that you take it to be."),
            _option("metric", _TEXT, "For a holdout of several metrics: which; else the first."),
            _option("stake", _TEXT, "For a gate: a number or all, where the submitter may."),
            _option("candidate", _TEXT, "For a gate: what the candidate is. The same one is not charged again."),
        ],
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {"schema": {"oneOf": [_named("Predictions"), _named("Outcomes")]}},
                "text/csv": table,
                "application/x-ndjson": table,
            },
        },
        "responses": _responses(
            {"oneOf": [_named("Score"), _named("Verdict")]},
            "The answer, which is counted.",
            *(400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 503),
        ),
    }
    all_boards = {"type": "array", "items": _named("Board")}
    return {
        "openapi": "3.1.0",
        "info": {"title": "dpselect holdouts and gates", "version": __version__},
        "servers": [{"url": root_path or "/"}],
        "paths": {
            "/healthz": _got("Whether the server runs", _object({"status": {"const": "ok"}}), "It runs.", 429),
            "/openapi.json": _got("This document", {"type": "object"}, "The interface.", 429),
            "/api/boards": _got("What is served", all_boards, "All of them.", 429, 503),
            "/api/boards/{board}": _got(
                "What is public about one: its terms, what is left, the leaderboard",
                _named("Board"),
                "What is public.",
                *(404, 429, 503),
                parameters=[named],
            ),
            "/api/boards/{board}/quota": _got(
                "What the submitter has left there",
                _named("Quota"),
                "What is left.",
                *(401, 404, 429, 503),
                security=_TOKEN,
                parameters=[named],
            ),
            "/api/boards/{board}/submissions": {"post": submission},
        },
        "components": {"schemas": _SCHEMAS, "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
