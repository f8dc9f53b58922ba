"""Candidates: one run of a private proposal, as a plain callable, and how runs are ranked."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpselect.mechanisms import Mechanism
from dpselect.privacy import Guarantee, Release
from dpselect.privacy.boundary import run_confined
from dpselect.privacy.nothing_found import warn_if_nothing_found
from dpselect.privacy.promises import hold_promises
from dpselect.randomness import RandomSource
from dpselect.selection.rehearsal import Rehearsal, rehearse_candidate

__all__ = [
    "Candidate",
    "Outcome",
    "PrivateCandidate",
    "Selector",
    "check_candidate",
    "or_nothing",
    "output_of",
    "run_once",
]

Candidate = Callable[[RandomSource], tuple[float, Any]]
"""`candidate(random) -> (score, output)` is one run; all its randomness comes from `random`."""

_TAG_BITS = 128


@dataclass(frozen=True, repr=False)
class PrivateCandidate:
    """A candidate together with the guarantee of one run of it, its score and its failure included.

    It is a candidate itself: call it, or pass it to `select_best(it, guarantee=it.guarantee, ...)`. It shows nothing of
    the data that `run` holds.

    Args:
        run: `run(random) -> (score, output)`, one run. All its randomness comes from `random` (you must ensure this).
        guarantee: the guarantee of one run. It covers the score, the output and a failure (you must ensure this).

    Raises:
        PromiseError: if `guarantee` is not a `Guarantee`.

    >>> from dpselect.privacy import laplace
    >>> noisy = PrivateCandidate(lambda random: (float(random.laplace(1)[0]), "found"), laplace(scale=1.0))
    >>> noisy.guarantee.epsilon(delta=0)
    1.0
    """

    run: Candidate
    guarantee: Guarantee

    def __post_init__(self) -> None:
        hold_promises(self, "guarantee")

    def __call__(self, random: RandomSource) -> tuple[float, Any]:
        """One run."""
        return self.run(random)


class Outcome(NamedTuple):
    """One run that did not fail. Secret, unless it wins: no repr."""

    score: float
    tag: int
    output: Any

    def beats(self, other: Outcome | None) -> bool:
        """Larger scores win, NaN ranks below every number, and a random tag decides ties."""
        if other is None:
            return True
        score, best = self.score, other.score
        is_number, best_is_number = score == score, best == best
        if is_number and best_is_number and score != best:
            return score > best
        return self.tag > other.tag if is_number == best_is_number else is_number

    def __repr__(self) -> str:
        return "<Outcome>"


def or_nothing(form: Callable[..., Release], no_runs: float) -> Callable[..., Release]:
    """The same form, with a warning if nothing was found. `no_runs` is the probability of no run."""

    def released(value: Any, **paid_for: Any) -> Release:
        warn_if_nothing_found(value, no_runs=no_runs)
        return form(value=value, **paid_for)

    return released


def check_candidate(candidate: object, rehearse: Rehearsal = True) -> None:
    """Raise `TypeError` for what cannot be run, `ArgumentError` for what would fail in every run: see `Rehearsal`."""
    rehearse_candidate("candidate", candidate.run if isinstance(candidate, PrivateCandidate) else candidate, rehearse)


def output_of(outcome: Outcome | None) -> Any:
    """The released part of the winning run, None if there was none."""
    return outcome.output if outcome else None


class Selector(Mechanism):
    """A mechanism that runs a candidate; the value is None, with a `NothingFoundWarning`, when nothing was found.

    Configured by public numbers and by `base`, what one run of the candidate promises with its score and its failure
    (you must ensure this). A call takes the candidate. For `rehearse` see `Rehearsal`. In memory and in this process.
    """

    @property
    def no_runs(self) -> float:
        """The probability that there is no run at all."""
        return 0.0

    def prepared(self, candidate: Candidate, *, rehearse: Rehearsal = True) -> Callable[[RandomSource], Any]:
        """The search by runs of this candidate, `candidate(random) -> (score, output)`."""
        check_candidate(candidate, rehearse)
        return lambda random: self._found(candidate, random)

    @abstractmethod
    def _found(self, candidate: Candidate, random: RandomSource) -> Any:
        """The algorithm without its price."""

    def form(self, *data: Any) -> Callable[..., Release]:  # noqa: ARG002
        """A release, with a warning when it holds nothing."""
        return or_nothing(Release, self.no_runs)


def run_once(candidate: Candidate, random: RandomSource) -> Outcome | None:
    """One run, or None if it failed. A failure ranks below every score and is never retried. Call it within `silence`.

    A run fails when it raises (see `dpselect.privacy.boundary`), when its score is not a number, or when its output
    cannot be copied. The copy is taken at once, so that no later run can change what is released.
    """
    tag = random.bits(_TAG_BITS)

    def run() -> Outcome:
        score, output = candidate(random)
        return Outcome(float(score), tag, copy.deepcopy(output))

    return run_confined(run, None, quiet=False)
