"""Numbers of repetitions that are wrong, or right and priced wrongly, with the exact laws that show it.

Candidates are one-private, outputs are worst first; the claim is what `dpselect.accounting.best_of` asks for the law
that is named, which the corrected program draws from. On candidates with a rare output between worse and better ones
(Papernot, Steinke 2022, Appendix D.3) best-of-K leaks the most; it is as common here as an audit by samples needs.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpselect.accounting import best_of
from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed, Geometric, Poisson, Repetitions, Tabulated, capped
from dpselect.testing.exact import FinitePair, finite_pair
from tests.audits.defects import Defect

__all__ = [
    "MISCOUNTED",
    "counts_for_each_candidate",
    "delta_of_one_run",
    "fixed_count_at_a_random_price",
    "grid_at_the_price_of_one",
    "lump_at_the_cap",
    "off_by_one",
    "one_more_than_poisson",
    "releases_the_count",
]

EPSILON = 1.0
HIGH, LOW = math.e / (1.0 + math.e), 1.0 / (1.0 + math.e)
RESPONSE = FinitePair((HIGH, LOW), (LOW, HIGH))
"""Randomised response, the answer of the neighbour ranked best."""


def fixed_count_at_a_random_price(count: int = 5) -> Defect:
    """Grid and random search: a fixed number of runs at the price of a geometric one with the same mean."""
    law = Geometric.with_mean(mean=count)
    return _best(Fixed(count=count), law, rare=0.0, seen="grid and random search reported at the price of one run")


def counts_for_each_candidate(count: int = 4, gamma: float = 0.1) -> Defect:
    """Every candidate is run a geometric number of times of its own: together a negative binomial number of runs."""
    k = np.arange(1500.0)
    single = Geometric(gamma=gamma).pmf(k)
    total = single
    for _ in range(count - 1):
        total = np.convolve(total, single)[: k.size]
    law = Tabulated(probabilities=tuple((total / total.sum()).tolist()))
    return _best(law, Geometric(gamma=gamma), rare=0.0, seen="constructed: K means draws of one mixture")


def one_more_than_poisson(mean: float = 9.0) -> Defect:
    """K = 1 + Poisson, claimed at three times the price of a run as a geometric K is."""
    law = Geometric.with_mean(mean=mean + 1.0)
    return _best(_one_more(Poisson(mean=mean), 80), law, rare=0.01, seen="a Rust module for private tuning")


def off_by_one(gamma: float = 0.1) -> Defect:
    """K = 1 + a geometric number from 1 on: `numpy.random.geometric(p) + 1`."""
    law = Geometric(gamma=gamma)
    return _best(_one_more(law, 500), law, rare=0.01, seen="an example in the style of OpenDP's documentation")


def lump_at_the_cap(gamma: float = 0.05, cap: int = 12) -> Defect:
    """min(K, cap) at the price of K redrawn until it is within the cap."""
    law = Geometric(gamma=gamma)
    return _best(capped(law, cap), law.at_most(cap), rare=0.01, seen="Papernot, Steinke (2022) redraw, others cap")


def releases_the_count(gamma: float = 0.1, most: int = 12) -> Defect:
    """The best of K runs, and K. Outputs are (k, answer) with k up to `most`, and all larger k as one."""
    law = Geometric(gamma=gamma).at_most(most)
    k = np.arange(1.0, most + 1.0)
    drawn = law.pmf(k)
    told = [np.concatenate((drawn * worse**k, drawn * (1.0 - worse**k))) for worse in (HIGH, LOW)]
    return Defect(
        broken=finite_pair(*told),
        corrected=RESPONSE.best_of(law),
        epsilon=best_of(pure_dp(epsilon=EPSILON), law, bound="pure").epsilon(0.0),
        seen="a Rust module for private tuning",
    )


def delta_of_one_run(gamma: float = 0.01, delta: float = 1e-4, epsilon: float = 0.5) -> Defect:
    """A run fails with probability delta, the whole is claimed to fail with 3 exp(epsilon) delta.

    Outputs: an answer that both data sets give, and one that only this one can, ranked best. Corrected: so few runs
    that the claim holds.
    """
    one = FinitePair((1.0 - delta, delta), (1.0, 0.0))
    claimed = 3.0 * math.exp(epsilon) * delta
    return Defect(
        broken=one.best_of(Geometric(gamma=gamma)),
        corrected=one.best_of(Fixed(count=int(claimed / delta))),
        epsilon=3.0 * epsilon,
        delta=claimed,
        seen="a Rust module for private tuning",
    )


def grid_at_the_price_of_one(epsilon: float = 0.5) -> Defect:
    """Three different candidates, each run once, at the price of three draws of one.

    Which of a candidate's two answers is more likely on the data is its own affair: this is the worst ranking of the
    three candidates' answers. Corrected: three draws of one candidate.
    """
    ranking = (0, 3, 1, 5, 4, 2)
    ours, theirs = np.zeros(6), np.zeros(6)
    for outcome in np.ndindex(2, 2, 2):
        best = max(ranking[2 * candidate + answer] for candidate, answer in enumerate(outcome))
        ours[best] += math.prod(HIGH if answer == 0 else LOW for answer in outcome)
        theirs[best] += math.prod(LOW if answer == 0 else HIGH for answer in outcome)
    return Defect(
        broken=finite_pair(ours, theirs),
        corrected=RESPONSE.best_of(Fixed(count=3)),
        epsilon=epsilon,
        delta=float(best_of(pure_dp(epsilon=EPSILON), Fixed(count=3)).delta(epsilon)),
        seen="grid and random search reported at the price of one run",
    )


def _best(broken: Repetitions, law: Repetitions, *, rare: float, seen: str) -> Defect:
    """The best of a number of runs drawn from `broken`, claimed at the price of `law`."""
    split = FinitePair((HIGH - math.e * rare, math.e * rare, LOW), (LOW - rare, rare, HIGH))
    base = split if rare else RESPONSE
    return Defect(
        broken=base.best_of(broken),
        corrected=base.best_of(law),
        epsilon=best_of(pure_dp(epsilon=EPSILON), law, bound="pure").epsilon(0.0),
        seen=seen,
    )


def _one_more(law: Repetitions, terms: int) -> Tabulated:
    """K + 1 for a law of K."""
    masses = law.pmf(np.arange(float(terms)))
    return Tabulated(probabilities=(0.0, *(masses / masses.sum()).tolist()))


MISCOUNTED: tuple[Callable[[], Defect], ...] = (
    fixed_count_at_a_random_price,
    grid_at_the_price_of_one,
    counts_for_each_candidate,
    one_more_than_poisson,
    delta_of_one_run,
    releases_the_count,
    off_by_one,
    lump_at_the_cap,
)
