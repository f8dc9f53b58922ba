"""The first private run whose score clears a threshold (Liu, Talwar 2019, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsFloat

from dpselect.accounting import threshold_stopping
from dpselect.errors import number
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import hold_promises, promise
from dpselect.randomness import RandomSource
from dpselect.repetitions import Geometric, Repetitions
from dpselect.selection.candidates import Candidate, Outcome, Selector, output_of, run_once
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["SelectAbove", "select_above"]


@dataclass(frozen=True, kw_only=True)
class SelectAbove(Selector):
    """A search that runs the candidate until a score is at least `threshold`, and releases that run's output only.

    `select_above` with the same arguments, `base` being its `guarantee`, is a call of this.

    Args:
        threshold: the score to reach, fixed without the data (you must ensure this). It may be infinite.
        stop_probability: the probability that a coin stops the search after a failure, from 1e-100 to below 1, fixed
            without the data.
        base: the guarantee of one run of the candidate, its score and failure included (you must ensure this).
        max_runs: the largest number of tries, public. The number of tries is drawn again until it is within the limit.
            None sets no limit.

    Raises:
        ArgumentError: if a number is out of range. `stop_probability` and `max_runs` are checked when the guarantee is
            asked for.
        PromiseError: if `base` is not a `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> select = SelectAbove(threshold=0.5, stop_probability=0.001, base=pure_dp(epsilon=0.1))
    >>> select(lambda random: (float(random.below(10)), "found")).value
    'found'
    """

    threshold: SupportsFloat
    stop_probability: SupportsFloat
    base: Guarantee
    max_runs: int | None = None

    def __post_init__(self) -> None:
        hold_promises(self, "base")
        object.__setattr__(self, "threshold", number("threshold", self.threshold, finite=False))

    @property
    def guarantee(self) -> Guarantee:
        """`threshold_stopping` of these."""
        return threshold_stopping(self.base, stop_probability=self.stop_probability, max_runs=self.max_runs)

    @property
    def tries(self) -> Repetitions:
        """The law of the number of runs when none clears the threshold."""
        law = Geometric(gamma=float(self.stop_probability))
        return law if self.max_runs is None else law.at_most(self.max_runs)

    def _found(self, candidate: Candidate, random: RandomSource) -> object:
        return output_of(first_above(candidate, float(self.threshold), self.tries, random))


def select_above(  # noqa: PLR0913
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
    """Return a release of the first run whose score is at least `threshold`.

    It runs the candidate again, with new randomness, after each failure, until a coin stops the search. The number of
    tries, which depends on the data, is not released. The time it takes is visible, and is not covered.

    Args:
        candidate: `candidate(random) -> (score, output)`, one run of the proposal. A run that raises or scores NaN does
            not clear any threshold.
        threshold: the score to reach, fixed without the data (you must ensure this).
        stop_probability: the probability that the coin stops the search after a failure, from 1e-100 to below 1, fixed
            without the data (you must ensure this).
        max_runs: the largest number of tries. The number of tries is drawn again until it is within the limit
            (conditioned, never clipped). None sets no limit.
        guarantee: the guarantee of one run, its score and failure included (you must ensure this).
        rehearse: as in `select_best`.
        spender: pays the cost before the first run. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness, for the coin and the runs. By default it is a fresh one from system entropy.

    Returns:
        A `Release` with the output of that run only. Its `value` is None if the coin stopped the search, and then
        `NothingFoundWarning` says so. Its guarantee is `threshold_stopping(guarantee, ...)`.

    Raises:
        ArgumentError: if an argument does not fit. It names the argument.
        TypeError: if an argument is of another type. It names the argument.
        BudgetError: if the spender refuses.

    >>> from dpselect.privacy import laplace
    >>> noisy = lambda random: (float(random.laplace(1)[0]), "found")
    >>> release = select_above(noisy, threshold=-50.0, stop_probability=0.01, guarantee=laplace(scale=1.0))
    >>> release.value, round(release.guarantee.epsilon(delta=0), 3) <= 2.0
    ('found', True)
    """
    base = promise("guarantee", guarantee)
    select = SelectAbove(threshold=threshold, stop_probability=stop_probability, base=base, max_runs=max_runs)
    return select(candidate, rehearse=rehearse, spender=spender, label=label, random=random)


def first_above(candidate: Candidate, bar: float, tries: Repetitions, source: RandomSource) -> Outcome | None:
    """The first of a random number of tries that scores at least `bar`, or None: the algorithm without its price."""
    with silence():
        for _ in range(tries.sample(source)):
            outcome = run_once(candidate, source)
            if outcome is not None and outcome.score >= bar:
                return outcome
    return None
