"""Who may submit, how much, and what was confirmed to whom: one SQLite file. Tokens are kept as hashes only.

A submission is on record before the holdout or gate is asked, so that a crash never gives back a quota; it is taken off
again only when the submission's form was wrong or nothing was left to ask.
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import sqlite3
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dpselect.errors import ArgumentError, BudgetError, StudyError, integer, public_text
from dpselect.holdout.server.boards import BoardAnswer
from dpselect.randomness import system_source
from dpselect.storage import durable

__all__ = ["QuotaError", "Submission", "Submitter", "Submitters"]

_FORMAT: Final = 1
_SCHEMA: Final = (
    """
    CREATE TABLE IF NOT EXISTS submitter (
        name TEXT PRIMARY KEY,
        token BLOB UNIQUE,
        questions INTEGER NOT NULL,
        answers INTEGER NOT NULL,
        boards TEXT NOT NULL,
        own_stakes INTEGER NOT NULL
    ) STRICT
    """,
    """
    CREATE TABLE IF NOT EXISTS submission (
        number INTEGER PRIMARY KEY,
        board TEXT NOT NULL,
        submitter TEXT NOT NULL,
        fingerprint BLOB NOT NULL,
        day TEXT NOT NULL,
        answered INTEGER NOT NULL DEFAULT 0,
        scored INTEGER NOT NULL DEFAULT 1,
        accepted INTEGER NOT NULL DEFAULT 0,
        value REAL,
        low REAL,
        high REAL,
        UNIQUE (board, submitter, fingerprint)
    ) STRICT
    """,
    f"PRAGMA user_version = {_FORMAT}",
)
_MOST: Final = 1 << 53


class QuotaError(BudgetError):
    """A submitter has used up what they may ask."""


@dataclass(frozen=True)
class Submitter:
    """Who has a token. `boards`: the names of those that they may submit to; empty for all."""

    name: str
    questions: int
    answers: int
    boards: tuple[str, ...]
    own_stakes: bool

    def may(self, board: str) -> bool:
        """Whether they may submit there."""
        return not self.boards or board in self.boards


@dataclass(frozen=True)
class Submission:
    """A submission on record. `again`: it was before, and is not counted twice."""

    number: int
    again: bool


class Submitters:
    """The file of submitters. Threads share one, and processes the file.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Submitters(Path(folder.name, "submitters.db")) as submitters:
    ...     token = submitters.invite("Ada", questions=20, answers=2)
    ...     submitters.by_token(token).name
    'Ada'
    """

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        with suppress(FileExistsError):
            durable.create_private(self._path, b"")
        try:
            self._connection = durable.connect(self._path, logged=True)
        except sqlite3.DatabaseError:
            raise StudyError(f"{self._path} is no file of submitters, or it is damaged") from None
        self._lock = threading.Lock()
        with self._transaction() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if version > _FORMAT or (tables and version != _FORMAT):
                raise StudyError(f"{self._path} is another file, or was written by a newer version of dpselect")
            for statement in _SCHEMA:
                connection.execute(statement)

    def __enter__(self) -> Submitters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._connection.close()

    def invite(
        self,
        name: str,
        *,
        questions: int,
        answers: int | None = None,
        boards: Iterable[str] = (),
        own_stakes: bool = False,
    ) -> str:
        """A new submitter's token, which is nowhere else. Who was revoked keeps what they have used.

        Args:
            name: public: it stands on leaderboards.
            questions: how many, to each holdout or gate.
            answers: how many of them may be answered by a score; by default all.
            boards: the names of the holdouts and gates that they may submit to; by default all.
            own_stakes: whether they may say what they stake of a gate's purse.

        Raises `ArgumentError` for a name that is taken, and numbers out of range.
        """
        public_text("name", name, longest=80)
        questions = integer("questions", questions, at_least=1, at_most=_MOST)
        answers = questions if answers is None else integer("answers", answers, at_least=1, at_most=questions)
        allowed = json.dumps(sorted({public_text("boards", board) for board in boards}))
        token = "dps_" + base64.urlsafe_b64encode(system_source().bytes(32)).decode().rstrip("=")
        with self._transaction() as connection:
            found = connection.execute("SELECT token FROM submitter WHERE name = ?", (name,)).fetchone()
            if found is not None and found[0] is not None:
                raise ArgumentError("name is taken; revoke that submitter first, for a new token")
            connection.execute(
                "INSERT OR REPLACE INTO submitter VALUES (?, ?, ?, ?, ?, ?)",
                (name, _hashed(token), questions, answers, allowed, int(own_stakes)),
            )
        return token

    def revoke(self, name: str) -> None:
        """End a submitter's token. Raises `ArgumentError` when there is none of that name."""
        with self._transaction() as connection:
            changed = connection.execute("UPDATE submitter SET token = NULL WHERE name = ?", (name,)).rowcount
        if not changed:
            raise ArgumentError("name is not that of a submitter")

    def by_token(self, token: str) -> Submitter | None:
        """Whose token it is."""
        row = self._one(
            "SELECT name, questions, answers, boards, own_stakes FROM submitter WHERE token = ?",
            (_hashed(token),),
        )
        return None if row is None else Submitter(row[0], row[1], row[2], tuple(json.loads(row[3])), bool(row[4]))

    def begin(self, submitter: Submitter, board: str, fingerprint: bytes | None) -> Submission:
        """Count a submission, durably; one with a fingerprint that was there before is not counted again.

        Raises `QuotaError` when nothing is left.
        """
        mark = system_source().bytes(32) if fingerprint is None else fingerprint
        place = (board, submitter.name, mark)
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT number FROM submission WHERE board = ? AND submitter = ? AND fingerprint = ?", place
            ).fetchone()
            if row is not None:
                return Submission(row[0], again=True)
            questions, answers = _left(connection, submitter, board)
            if not questions or not answers:
                raise QuotaError("your quota of questions, or of answers with a score, is used up")
            found = connection.execute(
                "INSERT INTO submission (board, submitter, fingerprint, day) VALUES (?, ?, ?, ?)", (*place, _today())
            )
            return Submission(int(found.lastrowid or 0), again=False)

    def give_back(self, opened: Submission) -> None:
        """Take a submission off the record that was not asked."""
        if not opened.again:
            with self._transaction() as connection:
                connection.execute("DELETE FROM submission WHERE number = ?", (opened.number,))

    def finish(self, opened: Submission, answer: BoardAnswer) -> None:
        """What was answered. After a power cut it may have to be asked again, for which nothing is charged."""
        low, high = answer.interval or (None, None)
        with self._transaction(synced=False) as connection:
            connection.execute(
                "UPDATE submission SET answered = 1, scored = ?, accepted = ?, value = ?, low = ?, high = ? "
                "WHERE number = ?",
                (int(answer.scored), int(answer.accepted), answer.value, low, high, opened.number),
            )

    def left(self, submitter: Submitter, board: str) -> tuple[int, int]:
        """How many questions, and how many of them with a score, a submitter still has there."""
        with self._lock:
            return _left(self._connection, submitter, board)

    def standing(self, board: str, *, smaller_is_better: bool) -> list[dict[str, Any]]:
        """The best confirmed value of each submitter with its interval, the best first."""
        order = "ASC" if smaller_is_better else "DESC"
        rows = self._all(
            "SELECT submitter, value, low, high, day FROM submission "
            f"WHERE board = ? AND answered = 1 AND value IS NOT NULL ORDER BY value {order}, number",
            (board,),
        )
        first: dict[str, dict[str, Any]] = {}
        for name, value, low, high, day in rows:
            interval = None if low is None else [low, high]
            first.setdefault(name, {"submitter": name, "value": value, "interval": interval, "day": day})
        return list(first.values())

    def accepted(self, board: str) -> list[dict[str, Any]]:
        """Whose candidates a gate has accepted, the present incumbent first."""
        rows = self._all(
            "SELECT submitter, day FROM submission WHERE board = ? AND accepted = 1 ORDER BY number DESC", (board,)
        )
        return [{"submitter": name, "day": day} for name, day in rows]

    def _one(self, statement: str, values: tuple[Any, ...]) -> Any:
        with self._lock:
            return self._connection.execute(statement, values).fetchone()

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        with self._lock:
            return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _transaction(self, *, synced: bool = True) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._connection.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                    durable.commit(self._connection)
                except BaseException:
                    with suppress(sqlite3.Error):
                        self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.DatabaseError:
                raise StudyError(f"{self._path} cannot be written, or it is no file of submitters") from None


def _left(connection: sqlite3.Connection, submitter: Submitter, board: str) -> tuple[int, int]:
    asked, scored = connection.execute(
        "SELECT count(*), coalesce(sum(scored), 0) FROM submission WHERE board = ? AND submitter = ?",
        (board, submitter.name),
    ).fetchone()
    answers = max(submitter.answers - scored, 0)
    return (max(submitter.questions - asked, 0) if answers else 0), answers


def _hashed(token: str) -> bytes:
    """A token has 256 random bits, so that one hash hides it."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()
