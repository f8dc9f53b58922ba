"""The best of a random number of private runs (Liu, Talwar 2019, Algorithm 2; Papernot, Steinke 2022, Section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dpselect.accounting import best_of
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import hold_promises, promise
from dpselect.randomness import RandomSource
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import expect_law
from dpselect.selection.candidates import Candidate, Outcome, Selector, output_of, run_once
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["SelectBest", "select_best"]


@dataclass(frozen=True, kw_only=True)
class SelectBest(Selector):
    """A search that runs the candidate K times, for a random K, and releases the output of the best score only.

    `select_best` with the same arguments, `base` being its `guarantee`, is a call of this.

    Args:
        repetitions: the distribution of the number of runs K, public.
        base: the guarantee of one run of the candidate, its score and failure included (you must ensure this).

    Raises:
        PromiseError: if `base` is not a `Guarantee`.
        TypeError: if `repetitions` is not such a distribution.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Fixed
    >>> select = SelectBest(repetitions=Fixed(count=3), base=pure_dp(epsilon=0.1))
    >>> select(lambda random: (float(random.below(10)), "found")).value
    'found'
    """

    repetitions: Repetitions
    base: Guarantee

    def __post_init__(self) -> None:
        hold_promises(self, "base")
        expect_law(self.repetitions)

    @property
    def no_runs(self) -> float:
        """The law's probability of zero."""
        return self.repetitions.zero_probability

    @property
    def guarantee(self) -> Guarantee:
        """`best_of(base, repetitions)`."""
        return _priced(self.base, self.repetitions)

    def _found(self, candidate: Candidate, random: RandomSource) -> object:
        return output_of(best_outcome(candidate, self.repetitions, random))


def select_best(
    candidate: Candidate,
    *,
    repetitions: Repetitions,
    guarantee: Guarantee,
    rehearse: Rehearsal = True,
    spender: Spender | None = None,
    label: str = "select best",
    random: RandomSource | None = None,
) -> Release:
    """Return a release of the best of K runs, for a random number K.

    It draws K, runs the candidate K times with new randomness, and releases the output of the best score only. Random
    tags decide ties. K and the scores are not released. The search is in memory and in this process. To survive a
    crash, use `dpselect.tuning.tune`.

    Args:
        candidate: `candidate(random) -> (score, output)`, one run of the proposal. It draws from `random` only and
            keeps nothing between runs (you must ensure this). A run that raises ranks last, and a score that is not a
            number just above it.
        repetitions: the distribution of K, public.
        guarantee: the guarantee of one run. It covers everything that the candidate returns, its score and its failure
            included (you must ensure this).
        rehearse: the candidate on synthetic or public rows, which is run once before anything is drawn. True searches
            its code for names that are defined nowhere (`dpselect.selection.rehearsal`). It also runs the function that
            its method `rehearsal()` returns, if it has one. False does neither.
        spender: pays the cost before the first run. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.

    Returns:
        A `Release` with the winner's output and the guarantee of the whole selection, `best_of(guarantee,
        repetitions)`. Its `value` is None if K = 0 or every run failed, and then `NothingFoundWarning` says so.

    Raises:
        ArgumentError: if the candidate would always fail. An error of its rehearsal passes as it is.
        TypeError: if an argument is of another kind.
        BudgetError: if the spender refuses.

    >>> from dpselect.privacy import laplace
    >>> from dpselect.repetitions import Harmonic
    >>> noisy = lambda random: (float(random.laplace(1)[0]), "found")
    >>> select_best(noisy, repetitions=Harmonic(limit=5), guarantee=laplace(scale=1.0)).value
    'found'
    """
    select = SelectBest(repetitions=repetitions, base=promise("guarantee", guarantee))
    return select(candidate, rehearse=rehearse, spender=spender, label=label, random=random)


@lru_cache(maxsize=32)
def _priced(base: Guarantee, repetitions: Repetitions) -> Guarantee:
    # the guarantee's curves keep what they work out too, so that the next search of this kind is priced at once
    return best_of(base, repetitions)


def best_outcome(candidate: Candidate, repetitions: Repetitions, source: RandomSource) -> Outcome | None:
    """The best of K runs, or None: the algorithm without its price."""
    best: Outcome | None = None
    with silence():
        for _ in range(repetitions.sample(source)):
            outcome = run_once(candidate, source)
            if outcome is not None and outcome.beats(best):
                best = outcome
    return best
