"""The first private run whose score clears a threshold (Liu, Talwar 2019, Algorithm 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import SupportsFloat

from dpselect.accounting import threshold_stopping
from dpselect.errors import number
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.boundary import silence
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource
from dpselect.repetitions import Geometric, Repetitions
from dpselect.selection.candidates import Candidate, Outcome, Selector, output_of, run_once
from dpselect.selection.rehearsal import Rehearsal

__all__ = ["SelectAbove", "select_above"]


@dataclass(frozen=True, kw_only=True)
class SelectAbove(Selector):
    """Run the candidate afresh until a score is at least `threshold`, and release that run's output only.

    `select_above` with the same arguments, `base` being its `guarantee`, is a call of this.
    """

    threshold: SupportsFloat
    stop_probability: SupportsFloat
    base: Guarantee
    max_runs: int | None = None

    def __post_init__(self) -> None:
        promise("base", self.base)
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
    """Run the candidate afresh until a score is at least `threshold`, and release that run's output only.

    After each failure a coin stops the search with `stop_probability`; the value is then None. With `max_runs` the
    number of tries is drawn again until it is within the limit (conditioned, never clipped). `threshold` and
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
