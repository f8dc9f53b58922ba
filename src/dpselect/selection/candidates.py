"""Candidates: one run of a private proposal, as a plain callable, and how runs are ranked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dpselect.errors import ArgumentError
from dpselect.randomness import RandomSource

__all__ = ["Candidate", "Outcome", "run_once", "uniform_mixture"]

Candidate = Callable[[RandomSource], tuple[float, Any]]
"""`candidate(random) -> (score, output)` is one run; all its randomness comes from `random`."""

_TAG_BITS = 128


@dataclass(frozen=True, repr=False)
class Outcome:
    """One run that did not fail. Secret, unless it wins."""

    score: float
    tag: int
    output: Any

    def beats(self, other: Outcome | None) -> bool:
        """Larger scores win, NaN ranks below every number, and a random tag decides ties."""
        return other is None or self._rank() > other._rank()

    def _rank(self) -> tuple[bool, float, int]:
        is_number = self.score == self.score
        return is_number, self.score if is_number else 0.0, self.tag


def run_once(candidate: Candidate, random: RandomSource) -> Outcome | None:
    """One run; None when it raised an exception, which ranks below every score and is never retried.

    Whether a run failed is part of its private output, so the exception is swallowed here with its traceback.
    `KeyboardInterrupt` and `SystemExit` pass.
    """
    tag = random.bits(_TAG_BITS)
    try:
        score, output = candidate(random)
        return Outcome(float(score), tag, output)
    except Exception:
        return None


def uniform_mixture(candidates: Sequence[Candidate]) -> Candidate:
    """A proposal that runs one of several candidates, drawn uniformly each time, with replacement.

    Its guarantee is any that covers every candidate (`dpselect.accounting.mixture` gives the average, which is
    smaller). Raises `ArgumentError` when there is none, `TypeError` for what cannot be called.

    >>> from dpselect.randomness import keyed_source
    >>> uniform_mixture([lambda random: (1.0, "a")])(keyed_source(1))
    (1.0, 'a')
    """
    chosen = tuple(candidates)
    if not chosen:
        raise ArgumentError("candidates must hold at least one candidate")
    if not all(callable(candidate) for candidate in chosen):
        raise TypeError("candidates must be callables: candidate(random) -> (score, output)")

    def mixture(random: RandomSource) -> tuple[float, Any]:
        return chosen[random.below(len(chosen))](random)

    return mixture
