"""Runs from the rows of a table: a row for each run, or for each candidate of a cross-validated search."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from dpselect.errors import ContentError
from dpselect.integrations.sweeps.sweep import RecordedRun, RecordedSweep, Scalar

__all__ = ["status_of", "sweep_of_rows"]

_STATUSES: Final = {
    "finished": ("finished", "complete", "completed", "terminated", "success", "succeeded", "done"),
    "failed": ("failed", "fail", "error", "crashed", "killed", "invalid", "preempted", "preempting"),
    "pruned": ("pruned", "stopped", "paused"),
    "running": ("running",),
    "waiting": ("waiting", "pending", "scheduled", "idle"),
}
_BY_WORD: Final = {word: status for status, words in _STATUSES.items() for word in words}
_NAMES: Final = ("run_id", "trial_id", "id", "name", "number")
_STATES: Final = ("state", "status")
_SPLIT: Final = re.compile(r"split(\d+)_test_\w+")
_RANK: Final = re.compile(r"rank_test_\w+")


def status_of(word: object) -> str:
    """The status that a tool's word means, "unknown" for any other.

    >>> status_of("TERMINATED"), status_of(None)
    ('finished', 'unknown')
    """
    return _BY_WORD.get(str(word).strip().lower(), "unknown")


def sweep_of_rows(tool: str, name: str, rows: Sequence[Mapping[str, Scalar]]) -> RecordedSweep:
    """The sweep that a table holds, a row for each run.

    A table of `cv_results_` has a row for each candidate. It was trained once for each split, and the best once more on
    all rows. Raises `ContentError` for a table without rows, or of a search whose splits are not among its columns.
    """
    if not rows:
        raise ContentError(f"{name} has no rows: there is no run to price")
    columns = dict.fromkeys(column for row in rows for column in row)
    if any(column in ("mean_fit_time", "mean_test_score") or _SPLIT.fullmatch(column) for column in columns):
        return _searched(tool, name, rows, columns)
    lower = {column.lower(): column for column in reversed(list(columns))}
    called = next((lower[word] for word in _NAMES if word in lower), None)
    state = next((lower[word] for word in _STATES if word in lower), None)
    runs = (
        RecordedRun(
            name=f"row {at}" if called is None or row.get(called) is None else str(row[called]),
            values=row,
            status="unknown" if state is None else status_of(row.get(state)),
        )
        for at, row in enumerate(rows, 1)
    )
    return RecordedSweep(tool, name, tuple(runs))


def _searched(tool: str, name: str, rows: Sequence[Mapping[str, Scalar]], columns: Iterable[str]) -> RecordedSweep:
    """The fits of a search of scikit-learn: each candidate on each split, and the best of each metric on all rows."""
    splits = {found[1] for column in columns if (found := _SPLIT.fullmatch(column))}
    if not splits:
        raise ContentError(f"{name} lacks the columns split0_test_score, ...: how often each candidate was trained")
    ranks = [column for column in columns if _RANK.fullmatch(column)]
    best = [at for at, row in enumerate(rows) if not ranks or any(_first(row.get(rank)) for rank in ranks)]
    runs = [
        RecordedRun(name=f"candidate {at}", values=row, status="finished", times=len(splits))
        for at, row in enumerate(rows)
    ]
    runs += [RecordedRun(name=f"refit of candidate {at}", values=rows[at], status="finished") for at in best]
    return RecordedSweep(
        tool,
        name,
        tuple(runs),
        rests_on=(
            f"must hold: each candidate was trained once for each of {len(splits)} splits",
            "must hold: every candidate at rank 1 was trained at most once more, on all rows",
            "must hold: the rates and steps cover the fits on each split, which have fewer rows, and on all rows",
        ),
    )


def _first(rank: Any) -> bool:
    return rank in (1, 1.0, "1", "1.0")
