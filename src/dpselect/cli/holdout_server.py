"""`dpselect holdout serve`, and what its operator and its submitters need: invite, revoke, submit."""

from __future__ import annotations

import hashlib
import os
import urllib.parse
from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect.cli.options import AsJson, print_result, stake_of
from dpselect.cli.terminal import say, warn
from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout.server import HoldoutClient, ServerSettings, serve as run_server
from dpselect.holdout.server.submitters import Submitters

__all__ = ["invite", "revoke", "serve", "submit"]

_People = Annotated[
    str,
    typer.Option(
        "--submitters",
        metavar="FILE_OR_URL",
        help="Submitters with their quotas and token hashes: a file, or postgresql://... for several servers.",
    ),
]
_SUBMITTERS = "submitters.db"


def serve(
    boards: Annotated[
        list[str],
        typer.Argument(
            metavar="HOLDOUT_OR_GATE...",
            help="Files, folders of .holdout and .gate files, or postgresql://... with holdouts and gates.",
        ),
    ],
    listen: Annotated[str, typer.Option(help="Address and port.")] = "127.0.0.1:8080",
    submitters: _People = _SUBMITTERS,
    root_path: Annotated[str, typer.Option(help="The path of the server behind a proxy.")] = "",
    trust_proxy: Annotated[str, typer.Option(help="Addresses of trusted proxies, separated by commas.")] = "",
    max_bytes: Annotated[int, typer.Option(help="The largest size of a submission.")] = 16 << 20,
    rate: Annotated[float, typer.Option(help="The most requests per minute of one submitter.")] = 60.0,
    address_rate: Annotated[float, typer.Option(help="The most requests per minute from one address.")] = 600.0,
    at_once: Annotated[int, typer.Option(help="The most submissions of one submitter at the same time.")] = 8,
) -> None:
    """Serve holdouts and gates: submissions over HTTP, a leaderboard for people, openapi.json for programs.

    Stops on SIGTERM or Ctrl-C, once the requests that have begun are answered. Needs the extra "server".
    """
    settings = ServerSettings(
        max_bytes=max_bytes,
        rate=rate,
        address_rate=address_rate,
        at_once=at_once,
        root_path=root_path,
        trusted_proxies=trust_proxy,
    )
    run_server(
        boards,
        submitters=submitters,
        listen=listen,
        settings=settings,
        ready=lambda url: warn(f"dpselect: serving at {url}{root_path}"),
    )


def invite(
    name: Annotated[str, typer.Argument(help="The submitter's name. It is public: leaderboards show it.")],
    questions: Annotated[int, typer.Option(help="The number of questions for each holdout or gate.")],
    answers: Annotated[
        int | None, typer.Option(help="How many questions may be answered by a score. The default is all.")
    ] = None,
    board: Annotated[
        list[str] | None,
        typer.Option(help="A holdout or gate that the submitter may use. May be repeated. The default is all."),
    ] = None,
    own_stakes: Annotated[bool, typer.Option(help="Let the submitter choose stakes of a gate's error budget.")] = False,
    max_bytes: Annotated[
        int | None, typer.Option(help="The largest size of a submission. The default is the server's.")
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="The most requests per minute. The default is the server's.")
    ] = None,
    submitters: _People = _SUBMITTERS,
    as_json: AsJson = False,
) -> None:
    """Make a token for a submitter, and print it. It is kept nowhere else."""
    with Submitters(submitters) as people:
        token = people.invite(
            name,
            questions=questions,
            answers=answers,
            boards=board or (),
            own_stakes=own_stakes,
            max_bytes=max_bytes,
            rate=rate,
        )
    print_result({"submitter": name, "token": token}, as_json, token)


def revoke(
    name: Annotated[str, typer.Argument(help="The submitter.")],
    submitters: _People = _SUBMITTERS,
) -> None:
    """End a submitter's token. Invited again, they have what is left of their quota."""
    with Submitters(submitters) as people:
        people.revoke(name)
    say(f"{name}: the token is no longer valid")


def submit(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Ids and predictions, or ids and outcomes.")],
    to: Annotated[str, typer.Option(help="The URL of the holdout's or gate's leaderboard.")],
    claim: Annotated[float | None, typer.Option(help="For a holdout: the score that you expect.")] = None,
    prediction_column: Annotated[str, typer.Option(help="For a holdout: the column of predictions.")] = "prediction",
    metric: Annotated[
        str | None, typer.Option(help="For a holdout with several metrics. The default is the first.")
    ] = None,
    stake: Annotated[str | None, typer.Option(help='For a gate: a number or "all", if you may choose stakes.')] = None,
    content: Annotated[
        Path | None, typer.Option(help="For a gate: the candidate itself. The same content is not charged again.")
    ] = None,
    token_variable: Annotated[str, typer.Option(help="The environment variable with your token.")] = "DPSELECT_TOKEN",
    as_json: AsJson = False,
) -> None:
    """Submit to a server. Exit status 2 for a file of another form, which is not charged; 3 when nothing is left."""
    url, _, name = to.rstrip("/").rpartition("/boards/")
    if not url.lower().startswith(("http://", "https://")) or not name:
        raise ArgumentError(f"to must be a leaderboard's URL, as https://example.org/boards/pets, got {to!r}")
    token = os.environ.get(token_variable)
    if not token:
        raise ArgumentError(f"the environment variable {token_variable} must hold your token")
    client, name = HoldoutClient(url, token=token), urllib.parse.unquote(name)
    try:
        named = None if content is None else hashlib.sha256(content.read_bytes()).hexdigest()
        found = client.submit(
            name,
            file,
            claim=claim,
            stake=stake_of(stake),
            candidate=named,
            column=prediction_column,
            metric=metric,
        )
    except ContentError as malformed:
        raise ArgumentError(str(malformed)) from None
    except FileNotFoundError as absent:
        raise ArgumentError(f"{absent.filename} cannot be read") from None
    print_result(found, as_json, found["verdict"] if "verdict" in found else _score(found, claim))


def _score(found: dict[str, Any], claim: float | None) -> str:
    said = f"yes: {claim:g} is confirmed" if found["agrees"] else f"{found['value']:.4g}"
    lines = [said if found["agrees"] or claim is None else f"no: {said}"]
    if found["interval"] is not None:
        low, high = found["interval"]
        lines.append(f"on new rows it is between {low:.4g} and {high:.4g}")
    again = "asked before, not charged again; " if found["repeated"] else ""
    return "\n".join([*lines, f"{again}{found['questions_left']} questions left, {found['answers_left']} with a score"])
