"""From a good result on average to one with high probability (Liu, Talwar 2019, Section 5.4)."""

from __future__ import annotations

from typing import SupportsFloat

from dpselect.errors import number
from dpselect.privacy import Guarantee
from dpselect.selection.above import SelectAbove

__all__ = ["amplification_stop_probability", "amplified", "markov_probability"]


def markov_probability(*, mean: SupportsFloat, margin: SupportsFloat) -> float:
    """a / (1 - mu + a): a score in [0, 1] with mean at least mu is at least mu - a with this probability.

    Markov's inequality for one minus the score. `margin` a is in (0, mu].

    >>> round(markov_probability(mean=0.6, margin=0.1), 12)
    0.2
    """
    mu = number("mean", mean, above=0.0, at_most=1.0)
    a = number("margin", margin, above=0.0, at_most=mu)
    return a / (1.0 - mu + a)


def amplification_stop_probability(
    *, mean: SupportsFloat, margin: SupportsFloat, failure_probability: SupportsFloat
) -> float:
    """failure_probability times `markov_probability`: of the coin in `amplified`, or gamma of a `Geometric` law.

    `select_best` does not need to know the mean to be private, at 3 epsilon_1. Its expected number of runs is one over
    this. A search by `select_above` is expected to take no more runs than one over `markov_probability`.

    >>> round(1 / amplification_stop_probability(mean=0.6, margin=0.1, failure_probability=0.05), 9)
    100.0
    """
    beta = number("failure_probability", failure_probability, above=0.0, below=1.0)
    return beta * markov_probability(mean=mean, margin=margin)


def amplified(
    *, mean: SupportsFloat, margin: SupportsFloat, failure_probability: SupportsFloat, base: Guarantee
) -> SelectAbove:
    """Return a search for a run that scores at least mean - margin, for at most 2 epsilon_1.

    It is for scores in [0, 1] whose mean is at least `mean` on every data set. The search finds nothing with
    `failure_probability` (Liu, Talwar 2019, Section 5.4).

    Args:
        mean: a lower bound on the mean score, above 0 and at most 1, public. A wrong one costs success, never privacy.
        margin: how far below the mean the score may be, above 0 and at most `mean`.
        failure_probability: how often the search may find nothing, above 0 and below 1. It sets the coin of the search.
        base: the guarantee of one run of the candidate, its score and failure included (you must ensure this). Its
            epsilon is epsilon_1.

    Raises:
        ArgumentError: if a number is out of range.
        PromiseError: if `base` is not a `Guarantee`.

    >>> from dpselect.privacy import pure_dp
    >>> search = amplified(mean=0.5, margin=0.2, failure_probability=1e-6, base=pure_dp(epsilon=0.5))
    >>> search(lambda random: (float(random.uniform(1)[0]), "found")).value
    'found'
    """
    stop = amplification_stop_probability(mean=mean, margin=margin, failure_probability=failure_probability)
    return SelectAbove(threshold=float(mean) - float(margin), stop_probability=stop, base=base)
