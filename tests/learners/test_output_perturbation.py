"""`OutputPerturbationClassifier`: the law of its noise, its draws, its limit on rows, its accuracy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.learners import (
    OutputPerturbationClassifier,
)
from dpselect.learners.output_perturbation import _add_spherical_noise
from dpselect.randomness import RandomSource, keyed_source
from tests.learners.estimators_cases import small, table


def test_a_source_is_only_asked_for_what_is_public() -> None:
    """The number of random words that output perturbation draws does not depend on the data."""
    from dpselect.learners import OutputPerturbationClassifier

    class Counting(RandomSource):
        __slots__ = ("asked",)

        def bytes(self, count: int) -> bytes:
            self.asked = getattr(self, "asked", 0) + count
            return super().bytes(count)

    asked = set()
    for X in (np.zeros((5, 3)), np.full((5, 3), 1e9), np.full((5, 3), np.nan)):
        source = Counting(b"k" * 32)
        OutputPerturbationClassifier(classes=[0, 1], nominal_rows=5, random=source).fit(X, [0, 1, 0, 1, 5])
        asked.add(source.asked)
    assert len(asked) == 1


def test_more_rows_than_the_nominal_number_covers_are_refused() -> None:
    with pytest.raises(ArgumentError, match="nominal_rows"):
        small("output perturbation", nominal_rows=3).fit(*table(49))
    small("output perturbation", nominal_rows=3).fit(*table(48))


@pytest.mark.statistical
def test_output_perturbation_learns_two_classes() -> None:
    """Two classes two units apart in the plane at epsilon 1: without noise 0.98; mean of ten fits above 0.9."""
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 1000)
    X = generator.normal(size=(1000, 2)) * 0.25 + np.where(y, 0.5, -0.5)[:, None] * [1.0, 0.0]
    source = keyed_source("two classes")
    fits = [
        OutputPerturbationClassifier(classes=[0, 1], nominal_rows=1000, random=source).fit(X, y).score(X, y)
        for _ in range(10)
    ]
    assert np.mean(fits) > 0.9


@pytest.mark.full
@pytest.mark.statistical
def test_output_perturbation_adds_the_noise_that_it_charges_for() -> None:
    """The radius is Gamma(dimension) in units of sensitivity/epsilon, the direction uniform. False alarm 3e-6; a scale
    3 % too small is detected (asserted on the same draws)."""
    source = keyed_source("spherical")
    draws = np.array([_add_spherical_noise(np.full((3, 1), 0.3), 2.0, 0.5, source)[:, 0] for _ in range(20_000)]) - 0.3
    radii = np.linalg.norm(draws, axis=1) / (2.0 / 0.5)
    assert stats.kstest(radii, stats.gamma(3).cdf).pvalue > 1e-6
    assert stats.kstest(radii * 0.97, stats.gamma(3).cdf).pvalue < 1e-6
    # a coordinate of a uniform point on the sphere in three dimensions is uniform (Archimedes)
    for axis in (0, 2):
        assert stats.kstest(draws[:, axis] / np.linalg.norm(draws, axis=1), stats.uniform(-1, 2).cdf).pvalue > 1e-6


@pytest.mark.full
def test_the_norm_of_output_perturbation():
    """Fact 23: 10 features, 700 rows, regularisation 1, epsilon 1; a z-test and a binomial test at 1e-6 each."""
    draws = 6_000
    sensitivity = 2 / 700
    source = keyed_source(17)
    norms = np.linalg.norm(
        [_add_spherical_noise(np.zeros((10, 1)), sensitivity, 1.0, source)[:, 0] for _ in range(draws)], axis=1
    )
    error = 4.9 * norms.std() / math.sqrt(draws)  # detects a mean off by 2 %
    assert abs(norms.mean() - 0.0285714286) < error + 1e-7
    beyond = int(np.count_nonzero(norms > 0.0448720469))
    assert stats.binomtest(beyond, draws, 0.05).pvalue > 1e-6
