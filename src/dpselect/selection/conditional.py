"""Run a private candidate until its output is acceptable, with a stop coin before every round.

Papernot, Steinke 2022, Appendix C. The floor coin gives every data set a probability of stopping, without which no
Renyi or approximate guarantee of the repetition would follow from one of the candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.errors import number
from dpselect.privacy import Guarantee
from dpselect.privacy.boundary import run_confined, silence
from dpselect.privacy.promises import hold_promises
from dpselect.randomness import RandomSource
from dpselect.repetitions import Geometric, Repetitions
from dpselect.selection.candidates import Candidate, Outcome, Selector, output_of, run_once

__all__ = ["SelectAcceptable", "first_acceptable_run"]


@dataclass(frozen=True, kw_only=True)
class SelectAcceptable(Selector):
    """A search that runs the candidate until `acceptable(score, output)`, and releases that output only.

    Before each round a coin stops the search, and then the value is None. The number of rounds depends on the data and
    is not released. The time it takes is visible, and is not covered.

    Args:
        acceptable: a function of the score and the output of one run that returns whether to release it. It is fixed
            without the data (you must ensure this). A run that raises is not acceptable, nor is one for which
            `acceptable` raises.
        floor: the probability that the coin stops the search before a round, from 1e-100 to below 1, public. There are
            1/floor rounds at most in expectation.
        base: the guarantee of one run of the candidate, its score and failure included (you must ensure this).

    Raises:
        ArgumentError: if `floor` is out of range. It names the argument.
        TypeError: if `acceptable` or `floor` is of another type. It names the argument.
        PromiseError: if `base` is not a `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> sixes = SelectAcceptable(acceptable=lambda score, face: face == 5, floor=0.001, base=pure_dp(epsilon=0.5))
    >>> release = sixes(lambda random: (0.0, random.below(6)))
    >>> release.value in (5, None), release.guarantee.epsilon(delta=0) < 1.0
    (True, True)
    """

    acceptable: Callable[[float, Any], bool]
    floor: float
    base: Guarantee

    def __post_init__(self) -> None:
        hold_promises(self, "base")
        if not callable(self.acceptable):
            raise TypeError("acceptable must be callable: acceptable(score, output) -> bool")
        object.__setattr__(self, "floor", number("floor", self.floor, at_least=1e-100, below=1.0))

    @property
    def guarantee(self) -> Guarantee:
        """`conditional_sampling(base, floor=floor)`."""
        return conditional_sampling(self.base, floor=self.floor)

    def _found(self, candidate: Candidate, random: RandomSource) -> Any:
        return output_of(first_acceptable_run(candidate, self.acceptable, Geometric(gamma=self.floor), random))


def first_acceptable_run(
    candidate: Candidate, acceptable: Callable[[float, Any], bool], coins: Repetitions, source: RandomSource
) -> Outcome | None:
    """The algorithm without its price: the last of a random number of coins stops before its run."""
    with silence():
        for _ in range(coins.sample(source) - 1):
            outcome = run_once(candidate, source)
            if outcome is not None and _accepted(acceptable, outcome):
                return outcome
    return None


def _accepted(acceptable: Callable[[float, Any], bool], outcome: Outcome) -> bool:
    # what goes wrong is a function of a private output that is not released
    return run_confined(lambda: bool(acceptable(outcome.score, outcome.output)), False)
