"""Noise, thresholds and tests of proposals on worst pairs, for `tests.audits.shipped_mechanisms`."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.audit import Subject
from dpselect.mechanisms import (
    BrownianReduction,
    Cascade,
    InterquantileRange,
    LaplaceReduction,
    NoisyCount,
    ProposeTestRelease,
    ReleaseUntilAbove,
    SparseRelease,
    SparseVector,
    TrimmedMean,
    discrete_gaussian,
    discrete_laplace,
    noisy_count,
)
from dpselect.mechanisms.grid import add_on_grid, gaussian_steps
from dpselect.privacy import Guarantee, gaussian, pure_dp, zcdp
from dpselect.randomness import RandomSource, discrete_gaussian_array, keyed_source
from dpselect.randomness.integers import discrete_laplace_array
from tests.audits.shipped import audited, label, looped, number_or_nan

__all__: list[str] = []

Array = NDArray[Any]


def arrays(name: str, noise: Any, claim: Guarantee) -> Subject:
    """A count of 0 or 1 plus an array of noises."""
    return Subject(name=name, draw=lambda neighbour, count, random: int(neighbour) + noise(count, random), claim=claim)


@audited("mechanisms.noisy_count", "mechanisms.NoisyCount", draws=2000, planted=0.9)
def counts_with_laplace_noise() -> Subject:
    """`noisy_count` with pure privacy."""
    claim = NoisyCount(epsilon=1.0).guarantee
    return looped("noisy count, Laplace", partial(noisy_count, epsilon=1.0), (10, 11), claim)


@audited("mechanisms.noisy_count", draws=1000, planted=0.5)
def counts_with_gaussian_noise() -> Subject:
    """`noisy_count` with concentrated privacy."""
    claim = NoisyCount(noise_multiplier=1.0).guarantee
    return looped("noisy count, Gaussian", partial(noisy_count, noise_multiplier=1.0), (10, 11), claim)


@audited("mechanisms.discrete_laplace", draws=2000, planted=0.9)
def laplace_on_integers() -> Subject:
    """`discrete_laplace`."""
    return looped("discrete Laplace", lambda x, random: x + discrete_laplace(1.0, random), (0, 1), pure_dp(epsilon=1.0))


@audited("mechanisms.discrete_gaussian", draws=1000, planted=0.5)
def gaussian_on_integers() -> Subject:
    """`discrete_gaussian`."""
    return looped("discrete Gaussian", lambda x, random: x + discrete_gaussian(1.0, random), (0, 1), zcdp(rho=0.5))


@audited("randomness.discrete_laplace_array", draws=20_000, planted=0.9)
def arrays_of_laplace_noise() -> Subject:
    """`discrete_laplace_array`."""
    return arrays(
        "discrete Laplace, array", lambda n, random: discrete_laplace_array(1.0, n, random), pure_dp(epsilon=1.0)
    )


@audited("randomness.discrete_gaussian_array", draws=20_000, planted=0.5)
def arrays_of_gaussian_noise() -> Subject:
    """`discrete_gaussian_array`."""
    return arrays("discrete Gaussian, array", lambda n, random: discrete_gaussian_array(1.0, n, random), zcdp(rho=0.5))


@audited("mechanisms.gaussian_steps", draws=20_000, planted=0.5)
def steps_of_gaussian_noise() -> Subject:
    """`gaussian_steps`: a post-processing of continuous Gaussian noise."""
    steps = 2.0**24

    def draw(neighbour: bool, count: int, random: RandomSource) -> Array:
        return add_on_grid(np.full(count, float(neighbour)), gaussian_steps(steps, count, random) / steps, 1.0 / steps)

    return Subject(name="Gaussian noise on a grid", draw=draw, claim=gaussian(noise_multiplier=1.0))


@audited("mechanisms.SparseVector", draws=1000, planted=0.4)
def sparse_vector() -> Subject:
    """`SparseVector`, one query at a time: three negatives and a positive, all of which move."""
    make = partial(SparseVector, epsilon_threshold=0.5, epsilon_queries=0.5, max_positives=1)

    def run(values: tuple[float, ...], random: RandomSource) -> str:
        session = make(random=random)
        answers: list[bool] = []
        for value in values:
            if session.halted:
                break
            answers.append(session.above(value, 0.0))
        return label(answers)

    claim = make(random=keyed_source(0)).guarantee.worst()
    return looped("sparse vector", run, ((0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 0.0)), claim)


@audited("mechanisms.SparseVector", draws=200, many=10_000, planted=0.4)
def sparse_vector_batch() -> Subject:
    """`SparseVector.above_many`: two positives among four queries, all of which move."""
    make = partial(SparseVector, epsilon_threshold=2.0, epsilon_queries=4.0, max_positives=2)
    quiet = np.array([0.0, 1.0, 0.0, 1.0])
    return looped(
        "sparse vector, batches",
        lambda values, random: make(random=random).above_many(values, 0.5),
        (quiet, 1.0 - quiet),
        make(random=keyed_source(0)).guarantee.worst(),
        lambda answers: label(np.flatnonzero(answers)),
    )


@audited("mechanisms.SparseRelease", draws=150, many=8_000, planted=0.4)
def sparse_release() -> Subject:
    """`SparseRelease` of one entry: found or not, and its value."""
    mechanism = SparseRelease(epsilon_threshold=0.25, epsilon_queries=0.25, epsilon_release=0.5, max_positives=1)

    return looped(
        "sparse release",
        partial(mechanism.draw, threshold=0.0),
        ([0.0], [1.0]),
        mechanism.guarantee.worst(),
        lambda found: number_or_nan(found.values.get(0)),
    )


STAGE = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=0.01)
EVEN = round(STAGE.margin)
"""The distance at which the test is an even bet."""


def told(yes: bool, epsilon: float, random: RandomSource) -> int:
    """Randomised response: the answer that is just private enough."""
    return int(random.bernoulli(1.0 / (1.0 + math.exp(-epsilon if yes else epsilon)), 1)[0])


@audited("mechanisms.ProposeTestRelease", draws=1000, planted=0.8)
def propose_test_release() -> Subject:
    """`ProposeTestRelease` at an even bet, with randomised response for the answer."""
    return looped(
        "propose-test-release",
        lambda distance, random: STAGE.draw(distance, partial(told, distance == EVEN, 0.5), random=random),
        (EVEN - 1, EVEN),
        STAGE.guarantee.worst(),
        number_or_nan,
    )


@audited("mechanisms.ProposeTestRelease", draws=1000, planted=0.5, of_delta=True)
def propose_test_release_of_inadmissible_data() -> Subject:
    """`ProposeTestRelease` where the answer tells the data: all that protects them is the test, for delta."""
    mechanism = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=0.1)
    return looped(
        "propose-test-release, inadmissible data",
        lambda secret, random: mechanism.draw(0, lambda _: secret, random=random),
        (1, 2),
        mechanism.guarantee.worst(),
        number_or_nan,
    )


@audited("mechanisms.Cascade", draws=500, planted=0.6)
def cascade() -> Subject:
    """`Cascade` of two such stages, whose distances move in opposite directions: no answer, then an answer."""
    both = Cascade([STAGE, STAGE])

    def run(distances: tuple[int, int], random: RandomSource) -> float:
        answer = partial(told, distances[1] == EVEN, 0.5)
        found = both.draw([(distance, answer) for distance in distances], random=random)
        return math.nan if found is None else 10.0 * found[0] + found[1]

    return looped("cascade of tests", run, ((EVEN, EVEN - 1), (EVEN - 1, EVEN)), both.guarantee.worst())


@audited("mechanisms.TrimmedMean", draws=300, many=8_000, planted=0.8)
def trimmed_mean() -> Subject:
    """`TrimmedMean` whose distance is 2, an even bet, and 1; the middle moves by the width as well."""
    mechanism = TrimmedMean(width=1.0, granularity=1.0, epsilon_test=2.0, epsilon_answer=1.0, delta=0.009)
    pair = ([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 40.0], [0.0, 0.0, 0.0, 1.0, 1.0, 40.0, 40.0])
    return looped("trimmed mean", mechanism.draw, pair, mechanism.guarantee.worst(), number_or_nan)


@audited("mechanisms.InterquantileRange", draws=200, many=8_000, planted=0.3)
def interquantile_range() -> Subject:
    """`InterquantileRange` on data whose width and distance move when one row changes (a search by exact laws)."""
    mechanism = InterquantileRange(
        granularity=1.0, epsilon_test=2.0, epsilon_answer=2.0, delta=0.02, ratio=2.0, steps=2
    )

    def signed(found: tuple[int, float] | None) -> float:
        if found is None:
            return math.nan
        return (1.0 if found[0] == 1 else -1.0) * (1.0 + found[1])  # the sign tells the stage

    pair = ([0.0, 1.0, 8.0, 16.0, 16.0, 100.0, 100.0, 100.0], [1.0, 8.0, 16.0, 16.0, 100.0, 100.0, 100.0, 100.0])
    return looped("interquantile range", mechanism.draw, pair, mechanism.guarantee.worst(), signed)


@audited("mechanisms.LaplaceReduction", draws=20_000, planted=0.5)
def growing_laplace() -> Subject:
    """`LaplaceReduction`: both levels. The entries of one vector are as many independent draws."""
    levels = LaplaceReduction(epsilons=[0.5, 1.0], sensitivity=1)

    def draw(neighbour: bool, count: int, random: RandomSource) -> Array:
        session = levels.open(np.full(count, int(neighbour)), random=random)
        return (1000 * session.release() + session.release()).astype(np.int64)

    return Subject(name="Laplace noise that is reduced", draw=draw, claim=levels.guarantee.worst())


@audited("mechanisms.LaplaceReduction", "mechanisms.GradualRelease", draws=200, many=6_000, planted=0.7)
def growing_laplace_until() -> Subject:
    """`GradualRelease.until`: the number of levels depends on what was released, and the last one tells most."""
    reduction = LaplaceReduction(epsilons=[0.25, 0.5, 1.0], sensitivity=1)

    def run(count: int, random: RandomSource) -> float:
        levels = reduction.open(count, random=random).until(lambda level: bool(level > 1)).value
        return 100.0 * len(levels) + float(levels[-1])

    return looped("Laplace noise until a level is large", run, (0, 1), reduction.guarantee.worst())


@audited("mechanisms.ReleaseUntilAbove", draws=150, many=6_000, planted=0.5)
def growing_laplace_tested() -> Subject:
    """`ReleaseUntilAbove`: a private test ends it."""
    until = ReleaseUntilAbove(
        reduction=LaplaceReduction(epsilons=[1.0, 2.0], sensitivity=1),
        threshold=0.5,
        epsilon_threshold=0.5,
        epsilon_queries=0.5,
    )

    def run(count: int, random: RandomSource) -> float:
        levels, found = until.draw(count, lambda _: float(count), random=random)
        return (100.0 * len(levels) + 50.0 * found) + float(levels[-1])

    return looped("Laplace noise until a test passes", run, (0, 1), until.guarantee.worst())


@audited("mechanisms.BrownianReduction", draws=5000, planted=0.5, heavy=True)
def growing_gaussian() -> Subject:
    """`BrownianReduction`: the last of two levels, which tells all. The entries are independent draws."""
    levels = BrownianReduction(noise_multipliers=[4.0, 1.0], delta=1e-3, sensitivity=1.0)

    def draw(neighbour: bool, count: int, random: RandomSource) -> Array:
        session = levels.open(np.full(count, float(neighbour)), random=random)
        session.release()
        return session.release()

    return Subject(name="Gaussian noise that is reduced", draw=draw, claim=levels.guarantee.worst())
