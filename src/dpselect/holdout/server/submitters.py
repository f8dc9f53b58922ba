"""Submitters, their quotas, and what was confirmed to whom: one database. Tokens are kept as hashes only.

A submission is on record before the holdout or gate is asked, so that a crash never gives back a quota. It is taken off
again only when the submission's form was wrong or nothing was left to ask.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.json_text import json_of
from dpselect.decoding.limits import ENTRY
from dpselect.errors import ArgumentError, BudgetError, StudyError, integer, number, public_text
from dpselect.holdout.server.boards import BoardAnswer
from dpselect.randomness import system_source
from dpselect.records.engines import CREATION_LOCKS, Database, is_server, server, sqlite, unusable
from dpselect.storage import durable

__all__ = ["QuotaError", "Submission", "Submitter", "Submitters"]

Execute = Callable[..., Any]
_FORMAT: Final = 2
_SUBMITTER: Final = """
CREATE TABLE holdout_submitter (
    name TEXT PRIMARY KEY,
    token {bytes} UNIQUE,
    questions {whole} NOT NULL,
    answers {whole} NOT NULL,
    boards TEXT NOT NULL,
    own_stakes {whole} NOT NULL,
    max_bytes {whole},
    rate {real}
) {strict}
"""
_SUBMISSION: Final = """
CREATE TABLE holdout_submission (
    number {key},
    board TEXT NOT NULL,
    submitter TEXT NOT NULL,
    fingerprint {bytes} NOT NULL,
    day TEXT NOT NULL,
    answered {whole} NOT NULL DEFAULT 0,
    scored {whole} NOT NULL DEFAULT 1,
    accepted {whole} NOT NULL DEFAULT 0,
    value {real},
    low {real},
    high {real},
    UNIQUE (board, submitter, fingerprint)
) {strict}
"""
_LOCK: Final = "LOCK TABLE holdout_submission, holdout_submitter IN EXCLUSIVE MODE"
_MOST: Final = 1 << 53


class QuotaError(BudgetError):
    """A submitter has used up what they may ask."""


@dataclass(frozen=True)
class Submitter:
    """A submitter: the owner of a token. `boards`: the names of those that they may submit to (empty for all).

    `max_bytes` of a body and `rate`, requests a minute: None for the server's.
    """

    name: str
    questions: int
    answers: int
    boards: tuple[str, ...]
    own_stakes: bool
    max_bytes: int | None
    rate: float | None
    token: bytes = field(repr=False)
    """Its hash."""

    def may(self, board: str) -> bool:
        """Whether they may submit there."""
        return not self.boards or board in self.boards


@dataclass(frozen=True)
class Submission:
    """A submission on record. `again`: it was before, and is not counted twice."""

    number: int
    again: bool


class Submitters:
    """The database of submitters: a SQLite file, or PostgreSQL for several servers. Threads share one.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Submitters(Path(folder.name, "submitters.db")) as submitters:
    ...     token = submitters.invite("Ada", questions=20, answers=2)
    ...     submitters.by_token(token).name
    'Ada'
    """

    def __init__(self, where: str | Path) -> None:
        """A file, made where there is none, or a postgresql:// URL.

        Raises `StudyError` for what is something else or cannot be used, `MissingExtraError` without the extra
        "postgres", and `ArgumentError` for a URL that is none.
        """
        self._lock = threading.Lock()
        self._database: Database
        self._unsynced: Database
        named = os.fspath(where)
        if is_server(named):
            self._name = "the database of submitters"
            self._database = self._unsynced = server(named)
        else:
            self._name, path = named, Path(where)
            with suppress(FileExistsError):
                durable.create_private(path, b"")
            self._database, self._unsynced = sqlite(path, logged=True), sqlite(path, logged=True, synced=False)
        with self._transaction(write=True, lock=CREATION_LOCKS["submitters"]):
            self._make()

    def _make(self) -> None:
        """The tables, where there are none. Raises `StudyError` for those of something else."""
        database = self._database
        tables = database.tables()
        if database.dialect == "sqlite":
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if tables and version != _FORMAT:
                raise StudyError(f"{self._name} is another file, or was written by another version of dpselect")
            database.execute(f"PRAGMA user_version = {_FORMAT}")
        if "holdout_submitter" not in tables:
            database.create(_SUBMITTER, _SUBMISSION)

    def __enter__(self) -> Submitters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._database.close()
            self._unsynced.close()

    def invite(
        self,
        name: str,
        *,
        questions: int,
        answers: int | None = None,
        boards: Iterable[str] = (),
        own_stakes: bool = False,
        max_bytes: int | None = None,
        rate: float | None = None,
    ) -> str:
        """A new submitter's token, which is nowhere else. A revoked submitter's used quota stays used.

        Args:
            name: public: it stands on leaderboards.
            questions: how many, to each holdout or gate.
            answers: how many of them may be answered by a score (by default all).
            boards: the names of the holdouts and gates that they may submit to (by default all).
            own_stakes: whether they may say what they stake of a gate's error budget.
            max_bytes: of the body of a submission, where it should be fewer than the server takes.
            rate: requests a minute (by default the server's limit).

        Raises `ArgumentError` for a name that is taken, and numbers out of range.
        """
        public_text("name", name, longest=80)
        questions = integer("questions", questions, at_least=1, at_most=_MOST)
        answers = questions if answers is None else integer("answers", answers, at_least=1, at_most=questions)
        allowed = json.dumps(sorted({public_text("boards", board) for board in boards}))
        token = "dps_" + base64.urlsafe_b64encode(system_source().bytes(32)).decode().rstrip("=")
        row = {
            "name": name,
            "token": _hashed(token),
            "questions": questions,
            "answers": answers,
            "boards": allowed,
            "own_stakes": int(own_stakes),
            "max_bytes": None if max_bytes is None else integer("max_bytes", max_bytes, at_least=1, at_most=_MOST),
            "rate": None if rate is None else number("rate", rate, at_least=1.0, at_most=1e9),
        }
        with self._transaction(write=True) as execute:
            found = execute("SELECT token FROM holdout_submitter WHERE name = :name", name=name).fetchone()
            if found is not None and found[0] is not None:
                raise ArgumentError("name is taken; revoke that submitter first, for a new token")
            execute("DELETE FROM holdout_submitter WHERE name = :name", name=name)
            execute(
                "INSERT INTO holdout_submitter (name, token, questions, answers, boards, own_stakes, max_bytes, rate) "
                "VALUES (:name, :token, :questions, :answers, :boards, :own_stakes, :max_bytes, :rate)",
                **row,
            )
        return token

    def revoke(self, name: str) -> None:
        """End a submitter's token. Raises `ArgumentError` when there is none of that name."""
        with self._transaction(write=True) as execute:
            changed = execute("UPDATE holdout_submitter SET token = NULL WHERE name = :name", name=name).rowcount
        if not changed:
            raise ArgumentError("name is not that of a submitter")

    def by_token(self, token: str) -> Submitter | None:
        """Whose token it is."""
        hashed = _hashed(token)
        with self._transaction() as execute:
            row = execute(
                "SELECT name, questions, answers, boards, own_stakes, max_bytes, rate FROM holdout_submitter "
                "WHERE token = :token",
                token=hashed,
            ).fetchone()
        if row is None:
            return None
        name, questions, answers, boards, own_stakes, max_bytes, rate = row
        allowed = tuple(json_of(boards, ENTRY, "the boards"))
        return Submitter(name, questions, answers, allowed, bool(own_stakes), max_bytes, rate, hashed)

    def valid(self, submitter: Submitter) -> bool:
        """Whether the token with which the submitter came is still theirs."""
        with self._transaction() as execute:
            row = execute("SELECT token FROM holdout_submitter WHERE name = :name", name=submitter.name).fetchone()
        return row is not None and row[0] is not None and bytes(row[0]) == submitter.token

    def begin(self, submitter: Submitter, board: str, fingerprint: bytes | None) -> Submission:
        """Count a submission, durably. One with a fingerprint that was there before is not counted again.

        Raises `QuotaError` when nothing is left.
        """
        place = {
            "board": board,
            "submitter": submitter.name,
            "fingerprint": system_source().bytes(32) if fingerprint is None else fingerprint,
        }
        with self._transaction(write=True) as execute:
            row = execute(
                "SELECT number FROM holdout_submission "
                "WHERE board = :board AND submitter = :submitter AND fingerprint = :fingerprint",
                **place,
            ).fetchone()
            if row is not None:
                return Submission(row[0], again=True)
            questions, answers = _left(execute, submitter, board)
            if not questions or not answers:
                raise QuotaError("your quota of questions, or of answers with a score, is used up")
            (number,) = execute(
                "INSERT INTO holdout_submission (board, submitter, fingerprint, day) "
                "VALUES (:board, :submitter, :fingerprint, :day) RETURNING number",
                **place,
                day=datetime.now(UTC).date().isoformat(),
            ).fetchone()
            return Submission(number, again=False)

    def give_back(self, opened: Submission) -> None:
        """Take a submission off the record that was not asked."""
        if not opened.again:
            with self._transaction(write=True) as execute:
                execute("DELETE FROM holdout_submission WHERE number = :number", number=opened.number)

    def finish(self, opened: Submission, answer: BoardAnswer) -> None:
        """Record the answer. After a power cut it may have to be asked again, for which nothing is charged."""
        low, high = answer.interval or (None, None)
        with self._transaction(write=True, database=self._unsynced) as execute:
            execute(
                "UPDATE holdout_submission SET answered = 1, scored = :scored, accepted = :accepted, value = :value, "
                "low = :low, high = :high WHERE number = :number",
                scored=int(answer.scored),
                accepted=int(answer.accepted),
                value=answer.value,
                low=low,
                high=high,
                number=opened.number,
            )

    def left(self, submitter: Submitter, board: str) -> tuple[int, int]:
        """How many questions, and how many of them with a score, a submitter still has there."""
        with self._transaction() as execute:
            return _left(execute, submitter, board)

    def standing(self, board: str, *, smaller_is_better: bool) -> list[dict[str, Any]]:
        """The best confirmed value of each submitter with its interval, the best first."""
        order = "value" if smaller_is_better else "-value"
        with self._transaction() as execute:
            rows = execute(
                "SELECT submitter, value, low, high, day FROM (SELECT submitter, value, low, high, day, number, "
                f"row_number() OVER (PARTITION BY submitter ORDER BY {order}, number) AS place FROM holdout_submission "
                f"WHERE board = :board AND answered = 1 AND value IS NOT NULL) AS best WHERE place = 1 "
                f"ORDER BY {order}, number",
                board=board,
            ).fetchall()
        return [
            {"submitter": name, "value": value, "interval": None if low is None else [low, high], "day": day}
            for name, value, low, high, day in rows
        ]

    def accepted(self, board: str) -> list[dict[str, Any]]:
        """Whose candidates a gate has accepted, the present incumbent first."""
        with self._transaction() as execute:
            rows = execute(
                "SELECT submitter, day FROM holdout_submission WHERE board = :board AND accepted = 1 "
                "ORDER BY number DESC",
                board=board,
            ).fetchall()
        return [{"submitter": name, "day": day} for name, day in rows]

    @contextmanager
    def _transaction(
        self, *, write: bool = False, lock: str = _LOCK, database: Database | None = None
    ) -> Iterator[Execute]:
        """A function that executes statements until the transaction ends. Raises `StudyError` if the database fails."""
        database = self._database if database is None else database
        failing = unusable(f"{self._name} cannot be used, or holds something else than submitters")
        with self._lock, failing, database.transaction(write=write, lock=lock if write else None):
            yield database.execute


def _left(execute: Execute, submitter: Submitter, board: str) -> tuple[int, int]:
    asked, scored = execute(
        "SELECT count(*), coalesce(sum(scored), 0) FROM holdout_submission "
        "WHERE board = :board AND submitter = :submitter",
        board=board,
        submitter=submitter.name,
    ).fetchone()
    answers = max(submitter.answers - int(scored), 0)
    return (max(submitter.questions - asked, 0) if answers else 0), answers


def _hashed(token: str) -> bytes:
    """A token has 256 random bits, so that one hash hides it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
