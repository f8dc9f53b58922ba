"""The best of a random number of private runs (Liu, Talwar 2019, Algorithm 2; Papernot, Steinke 2022, Section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from dpselect.accounting import best_of
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import expect_law
from dpselect.selection.candidates import Candidate, Outcome, Selector, output_of, run_once
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["SelectBest", "select_best"]


@dataclass(frozen=True, kw_only=True)
class SelectBest(Selector):
    """Draw K from a law, run the candidate K times afresh, and release the output of the best score only.

    `select_best` with the same arguments, `base` being its `guarantee`, is a call of this.
    """

    repetitions: Repetitions
    base: Guarantee

    def __post_init__(self) -> None:
        promise("base", self.base)
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
    """Draw K from a law, run the candidate K times afresh, and release the output of the best score only.

    `candidate(random) -> (score, output)` is one run of the proposal and `guarantee` covers everything that it returns,
    its score and its failure included (you must ensure this, and that it draws from `random` only and keeps
    nothing between runs). A run that raises ranks last, a score that is not a number just above it; random tags decide
    ties. The value is None when K = 0 or every run failed. The release carries the winner's output and the guarantee of
    the whole selection, `best_of(guarantee, repetitions)`; neither K nor a score leaves. In memory and in this process:
    to survive a crash, use `dpselect.tuning.tune`.

    `rehearse`: the candidate on made-up or public rows, which is run once before anything is drawn; by default its code
    alone is searched for names that are defined nowhere (`dpselect.selection.rehearsal`). `NothingFoundWarning` says
    that the value is None.

    Raises `TypeError` for arguments of another kind, `ArgumentError` for a candidate that would always fail.

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
