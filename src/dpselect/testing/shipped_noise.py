"""Noise, thresholds and tests of proposals on worst pairs, for `dpselect.testing.shipped_mechanisms`."""

from __future__ import annotations

import math
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
    add_on_grid,
    discrete_gaussian,
    discrete_laplace,
    gaussian_steps,
    noisy_count,
)
from dpselect.privacy import Guarantee, gaussian, pure_dp, zcdp
from dpselect.randomness import RandomSource, discrete_gaussian_array, discrete_laplace_array, keyed_source
from dpselect.testing.shipped import Shipped, audited, label, looped, number_or_nan

__all__ = ["NOISE"]

NOISE: list[Shipped] = []

Array = NDArray[Any]


def arrays(name: str, noise: Any, claim: Guarantee) -> Subject:
    """A count of 0 or 1 plus an array of noises."""
    return Subject(name=name, draw=lambda neighbour, count, random: int(neighbour) + noise(count, random), claim=claim)


@audited(NOISE, "mechanisms.noisy_count", "mechanisms.NoisyCount", draws=2000, planted=0.9)
def counts_with_laplace_noise() -> Subject:
    """`noisy_count` with pure privacy."""
    return looped(
        "noisy count, Laplace",
        lambda count, random: noisy_count(count, epsilon=1.0, random=random),
        (10, 11),
        NoisyCount(epsilon=1.0).guarantee,
    )


@audited(NOISE, "mechanisms.noisy_count", draws=1000, planted=0.5)
def counts_with_gaussian_noise() -> Subject:
    """`noisy_count` with concentrated privacy."""
    return looped(
        "noisy count, Gaussian",
        lambda count, random: noisy_count(count, noise_multiplier=1.0, random=random),
        (10, 11),
        NoisyCount(noise_multiplier=1.0).guarantee,
    )


@audited(NOISE, "mechanisms.discrete_laplace", draws=2000, planted=0.9)
def laplace_on_integers() -> Subject:
    """`discrete_laplace`."""
    return looped("discrete Laplace", lambda x, random: x + discrete_laplace(1.0, random), (0, 1), pure_dp(epsilon=1.0))


@audited(NOISE, "mechanisms.discrete_gaussian", draws=1000, planted=0.5)
def gaussian_on_integers() -> Subject:
    """`discrete_gaussian`."""
    return looped("discrete Gaussian", lambda x, random: x + discrete_gaussian(1.0, random), (0, 1), zcdp(rho=0.5))


@audited(NOISE, "randomness.discrete_laplace_array", draws=20_000, planted=0.9)
def arrays_of_laplace_noise() -> Subject:
    """`discrete_laplace_array`."""
    return arrays(
        "discrete Laplace, array", lambda n, random: discrete_laplace_array(1.0, n, random), pure_dp(epsilon=1.0)
    )


@audited(NOISE, "randomness.discrete_gaussian_array", draws=20_000, planted=0.5)
def arrays_of_gaussian_noise() -> Subject:
    """`discrete_gaussian_array`."""
    return arrays("discrete Gaussian, array", lambda n, random: discrete_gaussian_array(1.0, n, random), zcdp(rho=0.5))


@audited(NOISE, "mechanisms.gaussian_steps", draws=20_000, planted=0.5)
def steps_of_gaussian_noise() -> Subject:
    """`gaussian_steps`: a post-processing of continuous Gaussian noise."""
    steps = 2.0**24

    def draw(neighbour: bool, count: int, random: RandomSource) -> Array:
        return add_on_grid(np.full(count, float(neighbour)), gaussian_steps(steps, count, random) / steps, 1.0 / steps)

    return Subject(name="Gaussian noise on a grid", draw=draw, claim=gaussian(noise_multiplier=1.0))


@audited(NOISE, "mechanisms.SparseVector", draws=1000, planted=0.4)
def sparse_vector() -> Subject:
    """`SparseVector`, one query at a time: three negatives and a positive, all of which move."""
    price = {"epsilon_threshold": 0.5, "epsilon_queries": 0.5, "max_positives": 1}

    def run(values: tuple[float, ...], random: RandomSource) -> str:
        session = SparseVector(**price, random=random)  # type: ignore[arg-type]
        answers: list[bool] = []
        for value in values:
            if session.halted:
                break
            answers.append(session.above(value, 0.0))
        return label(answers)

    claim = SparseVector(**price, random=keyed_source(0)).guarantee.worst()  # type: ignore[arg-type]
    return looped("sparse vector", run, ((0.0, 0.0, 0.0, 1.0), (1.0, 1.0, 1.0, 0.0)), claim)


@audited(NOISE, "mechanisms.SparseVector", draws=200, many=10_000, planted=0.4)
def sparse_vector_batch() -> Subject:
    """`SparseVector.above_many`: two positives among four queries, all of which move."""
    price = {"epsilon_threshold": 2.0, "epsilon_queries": 4.0, "max_positives": 2}

    def run(values: Array, random: RandomSource) -> str:
        session = SparseVector(**price, random=random)  # type: ignore[arg-type]
        return label(np.flatnonzero(session.above_many(values, 0.5)))

    claim = SparseVector(**price, random=keyed_source(0)).guarantee.worst()  # type: ignore[arg-type]
    quiet = np.array([0.0, 1.0, 0.0, 1.0])
    return looped("sparse vector, batches", run, (quiet, 1.0 - quiet), claim)


@audited(NOISE, "mechanisms.SparseRelease", draws=150, many=8_000, planted=0.4)
def sparse_release() -> Subject:
    """`SparseRelease` of one entry: found or not, and its value."""
    mechanism = SparseRelease(epsilon_threshold=0.25, epsilon_queries=0.25, epsilon_release=0.5, max_positives=1)

    def run(value: float, random: RandomSource) -> float:
        return number_or_nan(mechanism.draw([value], threshold=0.0, random=random).values.get(0))

    return looped("sparse release", run, (0.0, 1.0), mechanism.guarantee.worst())


STAGE = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=0.01)
EVEN = round(STAGE.margin)
"""The distance at which the test is an even bet."""


def told(yes: bool, epsilon: float, random: RandomSource) -> int:
    """Randomised response: the answer that is just private enough."""
    return int(random.bernoulli(1.0 / (1.0 + math.exp(-epsilon if yes else epsilon)), 1)[0])


@audited(NOISE, "mechanisms.ProposeTestRelease", draws=1000, planted=0.8)
def propose_test_release() -> Subject:
    """`ProposeTestRelease` at an even bet, with randomised response for the answer."""
    return looped(
        "propose-test-release",
        lambda distance, random: number_or_nan(
            STAGE.draw(distance, lambda inner: told(distance == EVEN, 0.5, inner), random=random)
        ),
        (EVEN - 1, EVEN),
        STAGE.guarantee.worst(),
    )


@audited(NOISE, "mechanisms.ProposeTestRelease", draws=1000, planted=0.5, of_delta=True)
def propose_test_release_of_inadmissible_data() -> Subject:
    """`ProposeTestRelease` where the answer tells the data: all that protects them is the test, for delta."""
    mechanism = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=0.1)
    return looped(
        "propose-test-release, inadmissible data",
        lambda secret, random: number_or_nan(mechanism.draw(0, lambda _: secret, random=random)),
        (1, 2),
        mechanism.guarantee.worst(),
    )


@audited(NOISE, "mechanisms.Cascade", draws=500, planted=0.6)
def cascade() -> Subject:
    """`Cascade` of two such stages, whose distances move in opposite directions: no answer, then an answer."""
    both = Cascade([STAGE, STAGE])

    def run(distances: tuple[int, int], random: RandomSource) -> float:
        yes = distances[1] == EVEN
        found = both.draw([(distance, lambda inner: told(yes, 0.5, inner)) for distance in distances], random=random)
        return math.nan if found is None else 10.0 * found[0] + found[1]

    return looped("cascade of tests", run, ((EVEN, EVEN - 1), (EVEN - 1, EVEN)), both.guarantee.worst())


@audited(NOISE, "mechanisms.TrimmedMean", draws=300, many=8_000, planted=0.8)
def trimmed_mean() -> Subject:
    """`TrimmedMean` whose distance is 2, an even bet, and 1; the middle moves by the width as well."""
    mechanism = TrimmedMean(width=1.0, granularity=1.0, epsilon_test=2.0, epsilon_answer=1.0, delta=0.009)
    return looped(
        "trimmed mean",
        lambda rows, random: number_or_nan(mechanism.draw(rows, random=random)),
        ([0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 40.0], [0.0, 0.0, 0.0, 1.0, 1.0, 40.0, 40.0]),
        mechanism.guarantee.worst(),
    )


@audited(NOISE, "mechanisms.InterquantileRange", draws=200, many=8_000, planted=0.3)
def interquantile_range() -> Subject:
    """`InterquantileRange` on data whose width and distance move when one row changes (a search by exact laws)."""
    mechanism = InterquantileRange(
        granularity=1.0, epsilon_test=2.0, epsilon_answer=2.0, delta=0.02, ratio=2.0, steps=2
    )

    def run(rows: list[float], random: RandomSource) -> float:
        found = mechanism.draw(rows, random=random)
        if found is None:
            return math.nan
        return (1.0 if found[0] == 1 else -1.0) * (1.0 + found[1])  # the sign tells the stage

    return looped(
        "interquantile range",
        run,
        ([0.0, 1.0, 8.0, 16.0, 16.0, 100.0, 100.0, 100.0], [1.0, 8.0, 16.0, 16.0, 100.0, 100.0, 100.0, 100.0]),
        mechanism.guarantee.worst(),
    )


@audited(NOISE, "mechanisms.LaplaceReduction", draws=20_000, planted=0.5)
def growing_laplace() -> Subject:
    """`LaplaceReduction`: both levels. The entries of one vector are as many independent draws."""
    fixed = {"epsilons": [0.5, 1.0], "sensitivity": 1}

    def draw(neighbour: bool, count: int, random: RandomSource) -> Array:
        session = LaplaceReduction(**fixed).open(np.full(count, int(neighbour)), random=random)  # type: ignore[arg-type]
        return (1000 * session.release() + session.release()).astype(np.int64)

    claim = LaplaceReduction(**fixed).guarantee.worst()  # type: ignore[arg-type]
    return Subject(name="Laplace noise that is reduced", draw=draw, claim=claim)


@audited(NOISE, "mechanisms.LaplaceReduction", "mechanisms.GradualRelease", draws=200, many=6_000, planted=0.7)
def growing_laplace_until() -> Subject:
    """`GradualRelease.until`: the number of levels depends on what was released, and the last one tells most."""
    epsilons = [0.25, 0.5, 1.0]

    def run(count: int, random: RandomSource) -> float:
        session = LaplaceReduction(epsilons=epsilons, sensitivity=1).open(count, random=random)
        levels = session.until(lambda level: bool(level > 1)).value
        return 100.0 * len(levels) + float(levels[-1])

    claim = LaplaceReduction(epsilons=epsilons, sensitivity=1).guarantee.worst()
    return looped("Laplace noise until a level is large", run, (0, 1), claim)


@audited(NOISE, "mechanisms.ReleaseUntilAbove", draws=150, many=6_000, planted=0.5)
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


@audited(NOISE, "mechanisms.BrownianReduction", draws=5000, planted=0.5, heavy=True)
def growing_gaussian() -> Subject:
    """`BrownianReduction`: the last of two levels, which tells all. The entries are independent draws."""
    fixed = {"noise_multipliers": [4.0, 1.0], "delta": 1e-3, "sensitivity": 1.0}

    def draw(neighbour: bool, count: int, random: RandomSource) -> Array:
        session = BrownianReduction(**fixed).open(np.full(count, float(neighbour)), random=random)  # type: ignore[arg-type]
        session.release()
        return session.release()

    claim = BrownianReduction(**fixed).guarantee.worst()  # type: ignore[arg-type]
    return Subject(name="Gaussian noise that is reduced", draw=draw, claim=claim)
