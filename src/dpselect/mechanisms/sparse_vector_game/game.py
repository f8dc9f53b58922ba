"""The numbers that fix the game, in units of the sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpselect.capabilities import field_values
from dpselect.errors import ArgumentError, integer, number

__all__ = ["SHIFTS", "QueryMoves", "SparseVectorGame"]

_MOST_LIMITED = 4_000
"""Queries times positives up to which a limit of queries is priced."""
_MOST_EACH = 50
"""Queries for each positive from which on a limit saves nothing that is worth the time: see the tests."""

SHIFTS = tuple(j / 40.0 for j in range(41))
"""The shifts of the threshold noise, in sensitivities, that are tried; each gives a bound by itself."""


@dataclass(frozen=True)
class QueryMoves:
    """How queries may move: by h in `interval(s)` against a threshold noise that moves by `moved(s)`."""

    low: float
    high: float
    mirrored: bool = False

    def interval(self, shift: float) -> tuple[float, float]:
        """The two ends of what a coin's argument moves by when the threshold noise moves by `shift`."""
        return shift + self.low, shift + self.high

    def moved(self, shift: float) -> float:
        """How far the threshold noise itself moves."""
        return 1.0 - shift if self.mirrored else shift


_GENERAL = (QueryMoves(-1.0, 1.0),)
_MONOTONIC = (QueryMoves(-1.0, 0.0), QueryMoves(-1.0, 0.0, mirrored=True))


@dataclass(frozen=True, kw_only=True)
class SparseVectorGame:
    """A sparse vector: noise on the threshold, noise on each query, and how many positives it gives.

    Attributes:
        threshold_rate: sensitivity over the scale of the Laplace noise on the threshold; None without noise.
        query_rate: sensitivity over the scale of the noise on each query.
        positives: how many positives are given at most, by all sessions together.
        monotonic: whether between neighbours all queries move in the same direction.
        thresholds: sessions that share the positives, each with a threshold noise of its own.
        restarts: whether the threshold noise is drawn afresh after every positive.
        queries: how many queries are answered at most; None for any number.
        release_epsilon: of a pure mechanism whose output is released after each positive; 0 without one.
        noise: of the queries: "laplace", or "geometric", where `query_rate` is one over whole steps of the sensitivity.
        steps: the sensitivity in steps of the geometric noise. Its `query_rate` is that of all of them.
    """

    query_rate: float
    positives: int
    threshold_rate: float | None = None
    monotonic: bool = False
    thresholds: int = 1
    restarts: bool = False
    queries: int | None = None
    release_epsilon: float = 0.0
    noise: str = "laplace"
    steps: int = 1

    def __post_init__(self) -> None:
        number("query_rate", self.query_rate, above=0.0)
        number("release_epsilon", self.release_epsilon, at_least=0.0, rounding="up")
        if self.threshold_rate is not None:
            number("threshold_rate", self.threshold_rate, above=0.0)
        for name, value in field_values(self, ("positives", "thresholds", "steps")).items():
            integer(name, value, at_least=1)
        if self.queries is not None:
            integer("queries", self.queries, at_least=1)
        if self.noise not in ("laplace", "geometric"):
            raise ArgumentError(f"noise must be 'laplace' or 'geometric', got {self.noise!r}")
        if self.noise == "geometric" and self.threshold_rate is not None:
            raise ArgumentError("threshold_rate must be None with geometric noise: the threshold's is not priced")

    @property
    def limited(self) -> bool:
        """Whether the number of queries is small enough to be priced. If not, any number is priced."""
        most = self.queries
        plain = not self.restarts and self.release_epsilon == 0.0
        if not plain or most is None or most > _MOST_EACH * self.positives:
            return False
        return most * min(self.positives, most) <= _MOST_LIMITED

    @property
    def query_moves(self) -> tuple[QueryMoves, ...]:
        """One for queries that move anywhere. Two for monotonic ones, which all move up or all down."""
        return _MONOTONIC if self.monotonic else _GENERAL

    def shifts(self, moves: QueryMoves) -> tuple[float, ...]:
        """The shifts of the threshold noise to choose from: without noise it cannot move."""
        if self.threshold_rate is not None:
            return SHIFTS
        return (1.0,) if moves.mirrored else (0.0,)

    def threshold_loss(self, moves: QueryMoves, shift: float) -> float:
        """The most that the shift of one threshold noise costs."""
        return (self.threshold_rate or 0.0) * moves.moved(shift)

    @property
    def mesh(self) -> float:
        """The distance of the losses at which the game's values are kept."""
        fine = 80 if self.positives <= 5 else 40 if self.positives <= 25 else 20 if self.positives <= 400 else 10
        return self.query_rate / fine

    @property
    def pure_epsilon(self) -> float:
        """The loss that no session exceeds, up to rounding, inf with neither threshold noise nor a limit of queries."""
        drawn = self.positives if self.restarts else self.thresholds
        each = (1.0 if self.monotonic else 2.0) * self.query_rate + self.release_epsilon
        found = np.inf if self.threshold_rate is None else drawn * self.threshold_rate + self.positives * each
        if self.queries is None:
            return found
        # with thresholds left where they are, no answer is off by more than a sensitivity
        still = self.queries * self.query_rate + min(self.positives, self.queries) * self.release_epsilon
        return min(found, still)
