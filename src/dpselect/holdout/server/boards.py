"""Holdouts and gates by name: what is public about each, what a submission to it asks, and what the answer may say."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.holdout.gate.service import Gate
from dpselect.holdout.gate.terms import GateTerms
from dpselect.holdout.server.uploads import Upload
from dpselect.holdout.service import Holdout
from dpselect.holdout.shared_record import name_of, names_at
from dpselect.numerics.digits import rounded_down

__all__ = ["Board", "BoardAnswer", "BoardQuestion", "open_boards"]

_SUFFIXES: Final = (".holdout", ".gate")
_LONGEST: Final = 4000
"""Signs of an outcome. Python reads no integer of more digits."""
_FRESH: Final = 1.0
"""Seconds that what is public is kept for: reading it takes the record's lock."""


@dataclass(frozen=True, kw_only=True)
class BoardAnswer:
    """The answer to a submitter, and what is kept for the leaderboard and the quota.

    `scored`: whether it counts as an answer with a score. `value`: the confirmed score, with its interval, or None
    for gates.
    """

    body: dict[str, Any]
    scored: bool = True
    value: float | None = None
    interval: tuple[float, float] | None = None
    accepted: bool = False


@dataclass(frozen=True, kw_only=True)
class BoardQuestion:
    """A submission whose form is right. `fingerprint`: the same for what is the same question, or None."""

    fingerprint: bytes | None
    ask: Callable[[], BoardAnswer]


class Board(ABC):
    """One holdout or gate by name. Its public facts are read again when they are a second old."""

    kind: ClassVar[str]

    def __init__(self, name: str, identifier: str) -> None:
        self.name, self.identifier = name, identifier
        self._reading = threading.Lock()
        self._last, self._at = self._described(), time.monotonic()

    @abstractmethod
    def question(self, upload: Upload, submitter: str, *, own_stakes: bool) -> BoardQuestion:
        """The question of a submission. Raises `ContentError` and `ArgumentError`, and charges nothing."""

    def describe(self) -> dict[str, Any]:
        """All that anyone may know. Raises `StudyError`.

        While one reader waits for the record, the others see what it was.
        """
        if time.monotonic() - self._at > _FRESH and self._reading.acquire(blocking=False):
            try:
                self._last, self._at = self._described(), time.monotonic()
            finally:
                self._reading.release()
        return self._last

    @abstractmethod
    def _described(self) -> dict[str, Any]: ...


class HoldoutBoard(Board):
    """A holdout: predictions, with or without a claim, for an answer with its interval."""

    kind = "holdout"

    def __init__(self, name: str, holdout: Holdout) -> None:
        self._holdout = holdout
        super().__init__(name, holdout.identifier)

    def question(self, upload: Upload, submitter: str, *, own_stakes: bool) -> BoardQuestion:  # noqa: ARG002 - gates'
        # of each submitter's own, and charged to it: that someone else has asked the same is no one's business
        terms = self._holdout.terms
        ids, values = upload.predictions(terms.id_column, terms.rows)
        if len(ids) != terms.rows:
            raise ContentError(f"column {terms.id_column!r} must have each of the {terms.rows} ids of the holdout once")
        claim, metric = upload.number("claim"), upload.text("metric")
        upload.check_taken()
        kind, plan = terms.of(metric)
        ranked = kind is terms.metric  # what stands on the leaderboard is all of one metric

        def ask() -> BoardAnswer:
            found = self._holdout.score(ids=ids, predictions=values, claim=claim, submitter=submitter, metric=metric)
            return BoardAnswer(
                body=found.describe(),
                scored=plan.answers == plan.questions or found.agrees is not True,
                value=found.value if ranked else None,
                interval=found.interval if ranked else None,
            )

        named = json.dumps([sorted(zip(ids, values, strict=True)), claim, kind.name]).encode()
        return BoardQuestion(fingerprint=hashlib.sha256(named).digest(), ask=ask)

    def _described(self) -> dict[str, Any]:
        terms, status = self._holdout.terms, self._holdout.status()
        status.pop("asked"), status.pop("answered")
        about = {"name": self.name, "kind": self.kind, "open": status.pop("open")}
        return {**about, "smaller_is_better": terms.metric.bounded, "id_column": terms.id_column, **status}


class GateBoard(Board):
    """A gate: outcomes of a candidate for one word."""

    kind = "gate"

    def __init__(self, name: str, gate: Gate) -> None:
        self._gate = gate
        super().__init__(name, gate.identifier)

    def question(self, upload: Upload, submitter: str, *, own_stakes: bool) -> BoardQuestion:
        terms = self._gate.terms
        columns = terms.id_column, terms.outcome_columns, terms.tasks * terms.repeats
        outcomes, incumbent = upload.outcomes("outcomes", *columns), upload.outcomes("incumbent", *columns)
        outcomes, incumbent = (_of_size(given, terms) for given in (outcomes, incumbent))
        stake, candidate = upload.stake(), upload.text("candidate")
        upload.check_taken()
        if stake is not None and not own_stakes:
            raise ArgumentError(
                "stake is not taken from this submitter: leave it out for an even share of the error budget"
            )
        # of each submitter's own: that someone else has asked about a candidate is no one's business
        name = None if candidate is None else json.dumps([submitter, candidate])

        def ask() -> BoardAnswer:
            accepted = self._gate.ask(outcomes, stake, candidate=name, incumbent=incumbent)  # type: ignore[arg-type]
            return BoardAnswer(body={"verdict": "accepted" if accepted else "rejected"}, accepted=accepted)

        return BoardQuestion(fingerprint=None, ask=ask)

    def _described(self) -> dict[str, Any]:
        terms, status = self._gate.terms, self._gate.status()
        shown = ("purse", "next_stake", "open", "accepted", "claim", "retired")
        return {
            "name": self.name,
            "kind": self.kind,
            **terms.fields(),
            **{name: status[name] for name in shown},
            "purse_shown": rounded_down(status["purse"]),
        }


def _of_size(outcomes: Mapping[str, Any] | None, terms: GateTerms) -> Mapping[str, Any] | None:
    """The outcomes, so that nothing large waits for its turn: a value that is no outcome counts as 0.

    Raises `ContentError` for more or fewer than there are. The gate itself checks which ones they are.
    """
    if outcomes is None:
        return None
    listed = (len(values) for values in outcomes.values() if isinstance(values, list))
    if len(outcomes) != terms.tasks or any(count != terms.repeats for count in listed):
        raise ContentError(
            f"outcomes must have each of the gate's {terms.tasks} ids once, with {terms.repeats} of each"
        )
    return {
        name: [_small(one) for one in value] if isinstance(value, list) else _small(value)
        for name, value in outcomes.items()
    }


def _small(outcome: Any) -> Any:
    short = isinstance(outcome, (bool, int, float)) or (isinstance(outcome, str) and len(outcome) <= _LONGEST)
    return outcome if short else None


def open_boards(paths: Iterable[str | Path]) -> dict[str, Board]:
    """The holdouts and gates in these files, and in the files of these folders that end in .holdout or .gate, by name.

    Also those in a database, postgresql://..., or one of them, postgresql://...#NAME. A board's name is its file's,
    without the ending. Raises `StudyError` for what cannot be opened, `ArgumentError` for names that are not different
    or nothing to serve.
    """
    files = [one for path in paths for one in _files(path)]
    boards = [_opened(path) for path in files]
    names = [board.name for board in boards]
    if len(set(names)) != len(names):
        raise ArgumentError("the files to serve must have different names, without their endings")
    if not boards:
        raise ArgumentError("there is nothing to serve: no file ends in .holdout or .gate")
    return {board.name: board for board in boards}


def _files(where: str | Path) -> list[str | Path]:
    name, path = name_of(where), Path(where)
    if name is not None:
        url = str(where).partition("#")[0]
        return [f"{url}#{one}" for one in ([name] if name else names_at(url))]
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES)


def _opened(path: str | Path) -> Board:
    name = name_of(path) or Path(path).stem
    if Path(path).suffix == ".gate":
        return GateBoard(name, Gate.open(path))
    try:
        return HoldoutBoard(name, Holdout.open(path))
    except StudyError:
        with suppress(StudyError):
            return GateBoard(name, Gate.open(path))
        raise
