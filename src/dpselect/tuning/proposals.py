"""Proposals that learn from earlier runs, kept within a ratio of the search space's distribution.

A trial draws a pool of settings from the space and picks one of them with integer weights. However a proposer weighs
the pool, each weight is brought into [lower_ratio, upper_ratio] with mean 1. So, given the past, the setting's
distribution has a density in that box with respect to the space's distribution. Averaged over the pool, the chance that
the pick is in a set is a weighted sum of the chances that the members are. That holds for every space, continuous or
not, and is what `dpselect.accounting.best_of_k.adaptive_proposals` prices. Nothing that a proposer does can leave the
box.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dpselect.accounting.best_of_k.adaptive_proposals import Ratio
from dpselect.errors import ArgumentError, integer
from dpselect.numerics.search import Array, root_between
from dpselect.privacy.boundary import run_confined
from dpselect.randomness import keyed_source
from dpselect.repetitions import Repetitions
from dpselect.tuning.machine import Candidate, Search
from dpselect.tuning.space import Space
from dpselect.tuning.trial import pool_settings, trial_key, trial_params

__all__ = ["ENTRY_BYTES", "AdaptiveProposal", "Observation", "Proposer", "project"]

_UNIT: Final = 1 << 32
"""The weight of a pool member that is drawn as often as under the space's law."""

_ENTRY: Final = struct.Struct(">Id")
ENTRY_BYTES: Final = _ENTRY.size
"""What a search keeps of one trial: the place of its setting in its pool, plus one, and its score."""


@dataclass(frozen=True)
class Observation:
    """An earlier run: its setting and its score. A failed run and a score of NaN have score -inf. Secret."""

    params: Mapping[str, Any]
    score: float


@runtime_checkable
class Proposer(Protocol):
    """Weighs settings in the light of earlier runs. A pure function, fixed before the data are seen."""

    def __call__(self, history: Sequence[Observation], candidates: Sequence[Mapping[str, Any]]) -> ArrayLike:
        """One weight for each candidate, relative to the space's distribution. Only ratios matter. Prints nothing."""
        ...

    def describe(self) -> dict[str, Any]:
        """A JSON-able description, part of a study's fingerprint."""
        ...


@dataclass(frozen=True)
class AdaptiveProposal:
    """A proposer and the density ratios that it is held to: the argument `proposal` of `tune`.

    The privacy cost grows by about (2 + eta) log(upper_ratio / lower_ratio).

    A proposer that raises, or whose weights are not that many finite numbers >= 0, or all zero, proposes from the
    space's distribution for that trial. It does so without a message: an error would tell of the scores that it has
    seen.

    Args:
        proposer: a `Proposer`, such as `GaussianProcessProposer`: a function of the history and the candidates with a
            method `describe`. You must fix it before the data are seen.
        lower_ratio: the least that a setting's density may be, relative to the space's distribution, in (0, 1].
        upper_ratio: the most that it may be, at least 1.
        pool: how many settings are weighed for each trial, 2 to 10,000.
        batch: how many trials are proposed at a time, from the runs of earlier batches, so that an executor can run
            that many side by side. The proposals do not depend on the order in which they end.

    Raises:
        TypeError: if `proposer` is not such a function.
        ArgumentError: for numbers out of range.

    >>> from dpselect.tuning import GaussianProcessProposer
    >>> AdaptiveProposal(GaussianProcessProposer(), lower_ratio=0.8, upper_ratio=1.25).describe()["batch"]
    1
    """

    proposer: Proposer
    lower_ratio: float
    upper_ratio: float
    pool: int = 64
    batch: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.proposer, type) or not isinstance(self.proposer, Proposer):
            raise TypeError(
                "proposer must weigh candidates (a function of history and candidates with a method `describe`); one "
                "that draws settings itself cannot be held to a density ratio"
            )
        ratio = Ratio(self.lower_ratio, self.upper_ratio)
        object.__setattr__(self, "lower_ratio", ratio.lower)
        object.__setattr__(self, "upper_ratio", ratio.upper)
        object.__setattr__(self, "pool", integer("pool", self.pool, at_least=2, at_most=10_000))
        object.__setattr__(self, "batch", integer("batch", self.batch, at_least=1))

    def describe(self) -> dict[str, Any]:
        """A JSON-able description, part of a study's fingerprint."""
        return {**vars(self), "proposer": dict(self.proposer.describe())}

    def check(self, law: Repetitions, slots: int) -> None:
        """Raise `ArgumentError` where the record of a search could not hold every run."""
        if law.limit is None or law.limit > slots:
            raise ArgumentError(
                "proposal needs a repetition law with a limit, such as Harmonic(limit=...) or law.at_most(limit), and "
                "as many slots: every run's score is kept in a record of public size"
            )

    def propose(self, space: Space, search: Search) -> Search:
        """The search with the next batch proposed, if all batches before are done. Else it is unchanged."""
        entries = _entries(search)
        start = next((i for i, (choice, _) in enumerate(entries) if choice == 0), len(entries))
        waiting = not all(search.done[i] for i in range(start))
        if start >= search.executed or search.finished or waiting:
            return search
        history = [
            Observation(trial_params(space, trial_token(search, index)), score)
            for index, (_, score) in enumerate(entries[:start])
        ]
        for index in range(start, min(start + self.batch, search.executed)):
            key = trial_key(search.master, index)
            entries[index] = (1 + self._pick(space, key, history), -math.inf)
        return replace(search, history=b"".join(_ENTRY.pack(*entry) for entry in entries))

    def runnable(self, search: Search) -> list[int]:
        """The trials that are proposed and not done."""
        return [i for i, (choice, _) in enumerate(_entries(search)) if choice and not search.done[i]]

    def _pick(self, space: Space, key: bytes, history: Sequence[Observation]) -> int:
        pool = pool_settings(space, key, self.pool)
        with np.errstate(all="ignore"):  # what a proposer says of scores is as secret as they are
            wanted = run_confined(lambda: np.array(self.proposer(history, pool), dtype=np.float64), np.ones(self.pool))
        weights = project(wanted, self.pool, lower_ratio=self.lower_ratio, upper_ratio=self.upper_ratio)
        drawn = keyed_source(key).spawn("pick").below(self.pool * _UNIT)
        for place, weight in enumerate(weights):
            drawn -= weight
            if drawn < 0:
                return place
        raise AssertionError("weights add up to their number")


def observed(search: Search, index: int, candidate: Candidate | None) -> Search:
    """The search with a trial's score in its record. Call it with the arguments of `Search.finish`."""
    if not search.history or index >= search.executed:
        return search
    score = candidate.score if candidate is not None and candidate.score == candidate.score else -math.inf
    at = index * ENTRY_BYTES
    choice, _ = _ENTRY.unpack_from(search.history, at)
    history = search.history[:at] + _ENTRY.pack(choice, score) + search.history[at + ENTRY_BYTES :]
    return replace(search, history=history)


def trial_token(search: Search, index: int) -> bytes:
    """The token of a trial: its key and, if a proposal chose its setting, the index in its pool."""
    key = trial_key(search.master, index)
    if not search.history:
        return key
    choice, _ = _ENTRY.unpack_from(search.history, index * ENTRY_BYTES)
    return key + int(choice - 1).to_bytes(4, "big")


def project(wanted: Array, count: int, *, lower_ratio: float, upper_ratio: float) -> list[int]:
    """Integer weights of mean 2**32 in [lower_ratio, upper_ratio] times that, near a multiple of `wanted`.

    The weights are clipped to the box after scaling, with the scale chosen such that the mean is right. Integers make
    this exact, no matter what `wanted` holds. If it is not `count` finite numbers >= 0 with one above 0, all `count`
    weights are equal.

    >>> [w / 2**32 for w in project(np.array([0.0, 1.0, 9.0]), 3, lower_ratio=0.5, upper_ratio=2.0)]
    [0.5, 0.5, 2.0]
    """
    with np.errstate(all="ignore"):
        usable = wanted.shape == (count,) and bool(np.all(np.isfinite(wanted)) and np.all(wanted >= 0.0))
        if not usable or not np.any(wanted > 0.0):
            return [_UNIT] * count
        # so that every weight can be scaled up, and no product overflows
        relative = np.maximum(wanted / np.max(wanted), 1e-9)

        def within(scale: float) -> bool:
            return bool(np.sum(np.clip(scale * relative, lower_ratio, upper_ratio)) <= count)

        low = root_between(within, safe=0.0, unsafe=upper_ratio * 1e9)
        scaled = np.clip(low * relative, lower_ratio, upper_ratio)
    least, most = math.ceil(Fraction(lower_ratio) * _UNIT), math.floor(Fraction(upper_ratio) * _UNIT)
    weights = [min(max(int(part * _UNIT), least), most) for part in scaled]
    missing = count * _UNIT - sum(weights)
    for place in range(count):
        step = min(missing, most - weights[place]) if missing > 0 else max(missing, least - weights[place])
        weights[place] += step
        missing -= step
    return weights


def _entries(search: Search) -> list[tuple[int, float]]:
    record = search.history or bytes(ENTRY_BYTES * search.slots)
    return [(choice, score) for choice, score in _ENTRY.iter_unpack(record)]
