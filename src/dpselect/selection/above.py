"""The first private run whose score clears a threshold (Liu, Talwar 2019, Algorithm 1)."""

from __future__ import annotations

from typing import Any, SupportsFloat

from dpselect.accounting import threshold_stopping
from dpselect.errors import number
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions import Geometric, Repetitions
from dpselect.selection.candidates import Candidate, Outcome, check_candidate, output_of, run_once, searched
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["select_above"]


def select_above(
    candidate: Candidate,
    *,
    threshold: SupportsFloat,
    stop_probability: SupportsFloat,
    max_runs: int | None = None,
    guarantee: Guarantee,
    rehearse: Rehearsal = True,
    spender: Spender | None = None,
    label: str = "select above",
    random: RandomSource | None = None,
) -> Release:
    """Run the candidate afresh until a score is at least `threshold`, and release that run's output only.

    After each failure a coin stops the search with `stop_probability`; the value is then None. With `max_runs` the
    number of tries is drawn anew until it is within the limit (conditioned, never cut off). `threshold` and
    `stop_probability` are fixed without the data and `guarantee` covers one run, its score and failure included (the
    caller must ensure it). A run that raises or scores NaN does not clear any threshold. The number of
    tries, which depends on the data, does not leave; the time it takes does, and is not covered. `rehearse`: as in
    `select_best`.

    The guarantee of the whole is `threshold_stopping(guarantee, ...)`. Raises `ArgumentError` or `TypeError` naming the
    argument.

    >>> from dpselect.privacy import laplace
    >>> noisy = lambda random: (float(random.laplace(1)[0]), "found")
    >>> release = select_above(noisy, threshold=-50.0, stop_probability=0.01, guarantee=laplace(scale=1.0))
    >>> release.value, round(release.guarantee.epsilon(delta=0), 3) <= 2.0
    ('found', True)
    """
    check_candidate(candidate, rehearse)
    guarantee = promise("guarantee", guarantee)
    bar = number("threshold", threshold, finite=False)
    total = threshold_stopping(guarantee, stop_probability=stop_probability, max_runs=max_runs)
    tries = Geometric(gamma=float(stop_probability))
    law = tries if max_runs is None else tries.at_most(max_runs)
    source = resolve(random)

    def run() -> Any:
        return output_of(first_above(candidate, bar, law, source))

    return searched(run, total, spender=spender, label=label, replayable=source.replayable)


def first_above(candidate: Candidate, bar: float, tries: Repetitions, source: RandomSource) -> Outcome | None:
    """The first of a random number of tries that scores at least `bar`, or None: the algorithm without its price."""
    with silence():
        for _ in range(tries.sample(source)):
            outcome = run_once(candidate, source)
            if outcome is not None and outcome.score >= bar:
                return outcome
    return None
