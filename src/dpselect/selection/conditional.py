"""Run a private candidate until its output is acceptable, with a stop coin before every round.

Papernot, Steinke 2022, Appendix C. The floor coin gives every data set a probability of stopping, without which no
Renyi or approximate guarantee of the repetition would follow from one of the candidate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

from dpselect.accounting import conditional_sampling
from dpselect.errors import number
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.boundary import result_of, silence
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions import Geometric, Repetitions
from dpselect.selection.candidates import Candidate, Outcome, check_candidate, output_of, run_once, searched
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["first_acceptable_run", "select_acceptable"]


def select_acceptable(
    candidate: Candidate,
    *,
    acceptable: Callable[[float, Any], bool],
    floor: SupportsFloat,
    guarantee: Guarantee,
    rehearse: Rehearsal = True,
    spender: Spender | None = None,
    label: str = "select acceptable",
    random: RandomSource | None = None,
) -> Release:
    """Run the candidate until `acceptable(score, output)`, and release that output only; None if the coin came first.

    Before each round a coin stops the search with probability `floor`, in (0, 1): there are 1/floor rounds at most in
    expectation. What is acceptable is fixed without the data and is a function of what one run gives, which
    `guarantee` covers with its failure (the caller must ensure it). A run that raises is not acceptable, nor is one for
    which `acceptable` raises. The number of rounds depends on the data and does not leave; the time it takes does, and
    is not covered. `rehearse`: as in `select_best`.

    The guarantee is `conditional_sampling(guarantee, floor=floor)`. Raises `ArgumentError` or `TypeError` naming the
    argument.

    >>> from dpselect.privacy import pure_dp
    >>> release = select_acceptable(lambda random: (0.0, random.below(6)), acceptable=lambda score, face: face == 5,
    ...                             floor=0.001, guarantee=pure_dp(epsilon=0.5))
    >>> release.value in (5, None), release.guarantee.epsilon(delta=0) < 1.0
    (True, True)
    """
    check_candidate(candidate, rehearse)
    guarantee = promise("guarantee", guarantee)
    if not callable(acceptable):
        raise TypeError("acceptable must be callable: acceptable(score, output) -> bool")
    probability = number("floor", floor, at_least=1e-100, below=1.0)
    total = conditional_sampling(guarantee, floor=probability)
    source = resolve(random)

    def run() -> Any:
        return output_of(first_acceptable_run(candidate, acceptable, Geometric(gamma=probability), source))

    return searched(run, total, spender=spender, label=label, replayable=source.replayable)


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
    return result_of(lambda: bool(acceptable(outcome.score, outcome.output)), False)
