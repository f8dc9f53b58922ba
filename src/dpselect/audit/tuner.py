"""The audit of the tuner: a search whose every choice is the worst that the price allows, and what it leaks.

The best of K runs leaks most when scores are ranked against the data: the outcomes that favour one data set by the
most come last or first, in an order that depends on the law of K (docs/theory/optimal-selection.md). `worst_search`
builds that order for a base and a law. The search is then looked at in three ways that hide different faults:

- `exact()`: its two laws, for an exact audit of the accountant.
- `sampled()`: K from the law's own sampler, the runs in bulk. It draws a million times in seconds.
- `tuned()`: the real `dpselect.tuning.tune`, run by run, so that nothing in its states, ties or order is left out.

`tuned_learner` is a search of `DPSGDClassifier` itself on a data set of one row against none.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from dpselect.accounting import best_of
from dpselect.audit.subject import FiniteSubject, Subject
from dpselect.errors import ArgumentError, integer, number
from dpselect.learners import DPSGDClassifier
from dpselect.numerics.search import Array, root_between
from dpselect.privacy import Guarantee, gaussian, pure_dp
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource
from dpselect.repetitions import Geometric, Logarithmic, Repetitions
from dpselect.tuning import Categorical, tune

__all__ = [
    "WorstSearch",
    "exact_search",
    "sampled_search",
    "tuned_learner",
    "tuned_search",
    "worst_order",
    "worst_search",
]

Objective = Callable[[Any, RandomSource], tuple[float, int]]

_CHUNK = 1 << 15
_SPACE = {"setting": Categorical([1, 2])}


@dataclass(frozen=True, eq=False, kw_only=True)
class WorstSearch:
    """A search over runs with finitely many outcomes, ranked so that the winner leaks as much as it can.

    Attributes:
        base: the guarantee of one run.
        repetitions: the law of K.
        claim: the guarantee of the search, `best_of(base, repetitions)`.
        upper: the probabilities of one run's outcomes on the data, worst score first.
        lower: the same on the neighbour.
        ranks: the place of each outcome in that order, by the outcome's number in the pair it was made from.
    """

    base: Guarantee
    repetitions: Repetitions
    claim: Guarantee
    upper: Array
    lower: Array
    ranks: NDArray[np.intp]

    def exact(self) -> FiniteSubject:
        """The laws of the winner: -1 when there was no run, else its rank."""
        laws: list[dict[Hashable, Fraction | float]] = [
            dict(enumerate([self.repetitions.zero_probability, *_winner(m, self.repetitions).tolist()], start=-1))
            for m in (self.upper, self.lower)
        ]
        return FiniteSubject(name=self._name("exact law"), data=laws[0], neighbour=laws[1], claim=self.claim)

    def sampled(self) -> Subject:
        """The same by drawing: K from `Repetitions.sample`, then K outcomes, then the best."""
        return Subject(name=self._name("sampled"), draw=self._draw, claim=self.claim)

    def tuned(self) -> Subject:
        """The same by `dpselect.tuning.tune`, about a millisecond a draw and more for many runs."""

        def draw(neighbour: bool, count: int, random: RandomSource) -> NDArray[np.int64]:
            cumulated = self._cumulated[neighbour]

            def objective(params: Any, random: RandomSource) -> tuple[float, int]:  # noqa: ARG001
                rank = int(np.searchsorted(cumulated, random.uniform(1)[0]))
                return float(rank), rank

            return _tuned(objective, self.base, self.repetitions, count, random)

        return Subject(name=self._name("tune"), draw=draw, claim=self.claim)

    @cached_property
    def _cumulated(self) -> tuple[Array, Array]:
        # without the last, whose 1 may have been rounded
        return np.cumsum(self.upper)[:-1], np.cumsum(self.lower)[:-1]

    def _draw(self, neighbour: bool, count: int, random: RandomSource) -> NDArray[np.int64]:
        winners = np.full(count, -1, dtype=np.int64)
        for start in range(0, count, _CHUNK):
            size = min(_CHUNK, count - start)
            runs = np.array([self.repetitions.sample(random) for _ in range(size)])
            some = np.flatnonzero(runs)
            if some.size:
                ranks = np.searchsorted(self._cumulated[neighbour], random.uniform(int(runs.sum())))
                first = np.concatenate(([0], np.cumsum(runs[some])[:-1]))
                winners[start + some] = np.maximum.reduceat(ranks, first)
        return winners

    def _name(self, way: str) -> str:
        return f"best of K, worst case, {self.repetitions.law_name} K, {way}"


def worst_search(
    base: Guarantee, repetitions: Repetitions, *, delta: float, atoms: int = 256, claim: Guarantee | None = None
) -> WorstSearch:
    """The search that leaks most at `delta`, among those over a base cut into about `atoms` outcomes.

    The cut is a post-processing of the pair of laws that `base` is tight for, so the search is one that the claim
    covers. `claim` is `best_of(base, repetitions)` unless told. Raises `ArgumentError` for a base that is a bound only,
    with no pair of laws that attains it.

    >>> from dpselect.privacy import gaussian
    >>> from dpselect.repetitions import Geometric
    >>> search = worst_search(gaussian(noise_multiplier=2.0), Geometric.with_mean(mean=5), delta=1e-3, atoms=64)
    >>> len(search.exact().data) == len(search.upper) + 1
    True
    """
    base = promise("base", base)
    atoms = integer("atoms", atoms, at_least=2, at_most=2000)
    delta = number("delta", delta, at_least=0.0, below=1.0)
    claim = best_of(base, repetitions) if claim is None else promise("claim", claim)
    found: list[tuple[float, WorstSearch]] = []
    source = base.attained_pairs()
    if source is None:
        raise ArgumentError("base must be attained by a pair of laws: this one is a bound only")
    for enclosure in source(atoms):
        assert enclosure.optimistic is not None
        upper, lower = _split(enclosure.optimistic.upper, enclosure.optimistic.lower, atoms)
        found.append(_ranked(upper, lower, base, repetitions, claim, delta))
    return max(found, key=lambda pair: pair[0])[1]


def _split(upper: Array, lower: Array, atoms: int) -> tuple[Array, Array]:
    """Heavy outcomes in equal parts, none heavier than 1/atoms: orders of parts leak more than orders of wholes."""
    parts = np.maximum(1, np.ceil(np.maximum(upper, lower) * atoms * (1.0 - 1e-9))).astype(int)
    return np.repeat(upper / parts, parts), np.repeat(lower / parts, parts)


def _ranked(
    upper: Array, lower: Array, base: Guarantee, repetitions: Repetitions, claim: Guarantee, delta: float
) -> tuple[float, WorstSearch]:
    """The largest epsilon that some order shows at `delta`, with that order."""
    upper, lower = upper / upper.sum(), lower / lower.sum()
    steps = _steps(upper, lower, repetitions)
    most = min(claim.epsilon(delta), 50.0)

    @cache
    def best(epsilon: float) -> tuple[float, NDArray[np.intp]]:
        return _best_order(steps, epsilon=epsilon)

    # at delta = 0 a divergence above rounding shows
    low = root_between(lambda e: best(e)[0] > max(delta, 1e-12), safe=0.0, unsafe=most, relative=1e-4)
    order = best(low)[1]
    ranks = np.argsort(order)
    search = WorstSearch(
        base=base, repetitions=repetitions, claim=claim, upper=upper[order], lower=lower[order], ranks=ranks
    )
    return low, search


def worst_order(
    upper: Array, lower: Array, repetitions: Repetitions, *, epsilon: float
) -> tuple[float, NDArray[np.intp]]:
    """The largest H_{exp(epsilon)}(best of K under `upper` || under `lower`) over orders, and an order that has it.

    The masses must be sorted by ascending upper/lower. Some best order takes from the top down, at each place, the
    outcome left whose ratio is largest (and counts it) or smallest (and does not): a recursion over intervals of
    outcomes (docs/theory/optimal-selection.md). The order lists outcomes, worst score first.
    """
    return _best_order(_steps(upper, lower, repetitions), epsilon=epsilon)


def _steps(upper: Array, lower: Array, repetitions: Repetitions) -> list[tuple[Array, Array]]:
    """By how much the last outcome of an interval raises the chance that the winner is in it, under both laws.

    One pair of arrays for each length of interval, by the interval's start.
    """
    below = [np.concatenate(([0.0], np.cumsum(m))) for m in (upper, lower)]

    def steps(b: Array, mass: Array, length: int) -> Array:
        return repetitions.increment(complement_after=1.0 - (b[length:] - b[:-length]), mass=mass[length - 1 :])

    return [(steps(below[0], upper, length), steps(below[1], lower, length)) for length in range(1, upper.size + 1)]


def _best_order(steps: list[tuple[Array, Array]], *, epsilon: float) -> tuple[float, NDArray[np.intp]]:
    size, factor = len(steps), np.exp(epsilon)
    value = np.zeros(size + 1)
    taken = []
    for one, two in steps:
        counted = value[:-1] + one - factor * two
        taken.append(counted >= value[1:])
        value = np.maximum(counted, value[1:])
    order = []
    a, b = 0, size
    while b > a:
        if taken[b - a - 1][a]:
            b -= 1
            order.append(b)
        else:
            order.append(a)
            a += 1
    return float(value[0]), np.array(order[::-1], dtype=np.intp)


def _winner(masses: Array, repetitions: Repetitions) -> Array:
    """The law of the best of K, worst first, without the mass of no run."""
    better = np.append(np.cumsum(masses[::-1])[::-1][1:], 0.0)
    return repetitions.increment(complement_after=better, mass=masses)


def _tuned(
    objective: Objective, base: Guarantee, repetitions: Repetitions, count: int, random: RandomSource
) -> NDArray[np.int64]:
    """Draw `count` releases of `tune`: the winner's value and setting in one number, or -1 for nothing."""
    winners = np.full(count, -1, dtype=np.int64)
    for i in range(count):
        found = tune(objective, space=_SPACE, base=base, repetitions=repetitions, random=random)
        if found.value is not None:
            winners[i] = found.value
    return winners


# ---- entry points: `dpselect audit dpselect.audit.tuner:exact_search` ---------------------------------------------


def exact_search() -> FiniteSubject:
    """Gaussian runs (noise multiplier 4), K geometric with mean 10: the exact laws of the worst search at 1e-6."""
    return worst_search(gaussian(noise_multiplier=4.0), Geometric.with_mean(mean=10.0), delta=1e-6).exact()


def sampled_search() -> Subject:
    """Randomised response (epsilon 1), logarithmic K with mean 5, drawn in bulk."""
    return worst_search(pure_dp(epsilon=1.0), Logarithmic.with_mean(mean=5.0), delta=0.05, atoms=32).sampled()


def tuned_search() -> Subject:
    """The same by `tune`: audit it with a few thousand draws."""
    return worst_search(pure_dp(epsilon=1.0), Logarithmic.with_mean(mean=5.0), delta=0.05, atoms=32).tuned()


def tuned_learner(
    *, noise_multiplier: float = 1.0, repetitions: Repetitions | None = None, delta: float = 0.05, bins: int = 64
) -> Subject:
    """`tune` on `DPSGDClassifier`, one full-batch step, on one row against none, scored in the worst order.

    The row's gradient has norm 1, which is where it would be clipped, so the released weights along it are N(1, s^2)
    with the row and N(0, s^2) without, s the noise multiplier: the pair that the price of DP-SGD is made of. The
    learning rate is what is tuned. The score, a function of the weights, is the rank of their bin. About three
    milliseconds a draw.
    """
    law = Geometric.with_mean(mean=3.0) if repetitions is None else repetitions
    search, cuts = _learner_search(noise_multiplier, law, delta, bins)
    row, label = np.array([[1.0]]), np.array([1])
    # the gradient at zero weights of the row (1, intercept 1) with label 1: (probability - label) on either class
    direction = np.array([[0.5, -0.5], [0.5, -0.5]])

    def draw(neighbour: bool, count: int, random: RandomSource) -> NDArray[np.int64]:
        rows, labels = (row[:0], label[:0]) if neighbour else (row, label)

        def objective(params: Any, random: RandomSource) -> tuple[float, int]:
            model = _one_step(noise_multiplier, rate=float(params["setting"]), random=random).fit(rows, labels)
            along = -float(np.sum(model.weights_[0] * direction)) / params["setting"]
            rank = int(search.ranks[np.searchsorted(cuts, along)])
            return float(rank), rank

        return _tuned(objective, search.base, law, count, random)

    return Subject(name="tune over DPSGDClassifier, one row against none", draw=draw, claim=search.claim)


def _learner_search(noise_multiplier: float, law: Repetitions, delta: float, bins: int) -> tuple[WorstSearch, Array]:
    """The worst search over the binned projection of the weights, and the cuts between the bins."""
    base = _one_step(noise_multiplier, rate=1.0, random=None).guarantee()
    cuts = noise_multiplier * np.linspace(-4.0, 4.0 + 1.0 / noise_multiplier, bins - 1)
    edges = np.concatenate(([-np.inf], cuts, [np.inf]))
    upper, lower = np.diff(ndtr((edges - 1.0) / noise_multiplier)), np.diff(ndtr(edges / noise_multiplier))
    return _ranked(upper, lower, base, law, best_of(base, law), delta)[1], cuts


def _one_step(noise_multiplier: float, *, rate: float, random: RandomSource | None) -> DPSGDClassifier:
    return DPSGDClassifier(
        noise_multiplier=noise_multiplier,
        sampling_rate=1.0,
        steps=1,
        learning_rate=rate,
        averaged_share=0.0,
        nominal_rows=1,
        classes=[0, 1],
        random=random,
    )
