"""Outcomes of tasks as one number for each independent unit (a task, or a declared cluster), in a secret order.

No outcome of a candidate makes reading fail: anything that is not a number in [0, 1] is a failure,
0. Ids and how many outcomes each has are the form of a submission, and are judged before anything is charged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any

import numpy as np

from dpselect.errors import ContentError
from dpselect.holdout.files import texts
from dpselect.numerics.search import Array
from dpselect.randomness import RandomSource
from dpselect.tables.numbers import number_in

__all__ = ["Layout", "Outcomes", "by_text", "repeats_of", "wins_and_losses"]

_PLAIN = frozenset((float, int, bool))
Outcomes = Mapping[Any, Any]
"""By the id of a task: a number in [0, 1], True or False, or a sequence of those, one a repeat or a grader."""


def by_text(outcomes: Outcomes) -> dict[str, list[Any]]:
    """Each id as a text with its repeats. Raises `ContentError` for an id that is empty or twice, `TypeError`."""
    if not isinstance(outcomes, Mapping):
        listed = (
            ". Write dict(enumerate(...)) for a list in the order of the tasks" if isinstance(outcomes, list) else ""
        )
        raise TypeError(f"outcomes must map the ids of tasks to their outcomes, got {type(outcomes).__name__}{listed}")
    ids = texts(list(outcomes))
    if "" in ids or len(set(ids)) != len(ids):
        raise ContentError("outcomes must have one id for each task, none of them empty")
    values = outcomes.values()
    return {
        name: [value] if type(value) in _PLAIN else _repeats(value) for name, value in zip(ids, values, strict=True)
    }


def _repeats(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return list(np.ravel(value).tolist())
    return list(value) if isinstance(value, Sequence) and not isinstance(value, (str, bytes)) else [value]


def repeats_of(outcomes: Mapping[str, Sequence[Any]]) -> int:
    """How many outcomes each task has. Raises `ContentError` unless all have the same number."""
    counts = {len(values) for values in outcomes.values()}
    if len(counts) != 1 or 0 in counts:
        raise ContentError("outcomes must hold at least one task, and as many repeats of each as of the others")
    return counts.pop()


def _outcome(value: Any) -> float | None:
    """A number in [0, 1], or None for everything else. True and false are 1 and 0."""
    if type(value) is float:
        return value + 0.0 if 0.0 <= value <= 1.0 else None
    if isinstance(value, (bytes, bytearray)):
        return None
    try:
        found = number_in(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found + 0.0 if 0.0 <= found <= 1.0 else None


@dataclass(frozen=True)
class Layout:
    """The place of the outcome of each task: ids by unit, in the secret order, and the repeats of each task."""

    units: tuple[tuple[str, ...], ...]
    repeats: int

    @staticmethod
    def shuffled(ids: Iterable[str], clusters: Mapping[str, str] | None, repeats: int, random: RandomSource) -> Layout:
        """All ids in a new random order. Raises `ContentError` unless the clusters, where given, have the same ids."""
        names = list(ids)
        members: dict[str, list[str]] = {}
        if clusters is not None and clusters.keys() != set(names):
            raise ContentError("clusters must have the ids of the outcomes, each once")
        for name in names:
            members.setdefault(name if clusters is None else clusters[name], []).append(name)
        units = [tuple(unit) for unit in members.values()]
        return Layout(tuple(units[place] for place in random.permutation(len(units))), repeats)

    @cached_property
    def _ids(self) -> frozenset[str]:
        return frozenset(chain.from_iterable(self.units))

    def check(self, outcomes: Mapping[str, Sequence[Any]]) -> None:
        """Raise `ContentError` unless there is every id, no other one, and each with the declared repeats."""
        ids = self._ids
        if not outcomes.keys() <= ids:
            raise ContentError("outcomes have ids that the gate does not have")
        if len(outcomes) != len(ids):
            raise ContentError("outcomes lack ids of the gate; a task that failed has the outcome 0")
        if any(len(values) != self.repeats for values in outcomes.values()):
            raise ContentError(f"outcomes must hold {self.repeats} of each task, as those that the gate was made with")

    def known(self, outcomes: Mapping[str, Sequence[Any]]) -> Array:
        """The units' means of outcomes that must all be numbers in [0, 1]. Raises `ContentError` if one is not."""
        if any(_outcome(value) is None for values in outcomes.values() for value in values):
            raise ContentError("outcomes must all be numbers from 0 to 1")
        return self.means(outcomes)

    def means(self, outcomes: Mapping[str, Sequence[Any]]) -> Array:
        """The units' means. An outcome that is missing, or no number in [0, 1], counts as 0. Never fails."""
        given = map(outcomes.get, chain.from_iterable(self.units))
        if self.repeats == 1:
            tasks = np.array([(_outcome(values[0]) or 0.0) if values else 0.0 for values in given])
        else:
            tasks = np.array([self._task(values or ()) for values in given])
        if len(tasks) == len(self.units):
            return tasks
        starts = accumulate(map(len, self.units), initial=0)
        return np.array([math.fsum(tasks[start:stop]) / (stop - start) for start, stop in pairwise(starts)])

    def _task(self, values: Sequence[Any]) -> float:
        return math.fsum(_outcome(value) or 0.0 for value in values[: self.repeats]) / self.repeats


def wins_and_losses(incumbent: Outcomes, candidate: Outcomes) -> tuple[int, int, int]:
    """On how many of your tasks the candidate does better and worse, and of how many. Raises `ContentError`.

    >>> wins_and_losses({"a": 0, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 0.5})
    (1, 1, 3)
    """
    before, after = by_text(incumbent), by_text(candidate)
    layout = Layout(tuple((name,) for name in before), repeats_of(before))
    layout.check(after)
    differences = layout.known(after) - layout.known(before)
    return int((differences > 0.0).sum()), int((differences < 0.0).sum()), len(differences)
