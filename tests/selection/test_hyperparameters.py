"""Hyperparameters on two data sets: prices apart and together, and the noise of the validation score."""

import math

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.errors import AdjacencyError
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import compose, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Geometric
from dpselect.selection import SelectHyperparameters
from dpselect.selection.hyperparameters import tuning_candidate, two_set_guarantee

BASE = pure_dp(epsilon=0.5)


def test_two_data_sets():
    law = Geometric(gamma=0.05)
    release = SelectHyperparameters(
        candidates=100_000, repetitions=law, training=BASE, validation_epsilon=0.25, may_overlap=True
    )(lambda i, random: i, correct=lambda model: 500, random=keyed_source(5))
    validation = NoisyCount(epsilon=0.25).guarantee
    assert release.training.epsilon(0.0) == best_of(BASE, law).epsilon(0.0) < 1.5
    assert release.validation.epsilon(0.0) == best_of(validation, law).epsilon(0.0) < 0.75
    assert release.guarantee.epsilon(0.0) == best_of(compose(BASE, validation), law).epsilon(0.0)
    apart = two_set_guarantee(lambda base: best_of(base, law), training=BASE, validation=validation, may_overlap=False)
    assert apart.total.epsilon(0.0) == release.training.epsilon(0.0) < release.guarantee.epsilon(0.0)
    assert release.value.model == release.value.candidate
    with pytest.raises(AdjacencyError):
        two_set_guarantee(
            lambda base: base,
            training=BASE,
            validation=NoisyCount(epsilon=1.0, adjacency="replace_one").guarantee,
            may_overlap=True,
        )


@pytest.mark.statistical
def test_noise_of_the_validation_score():
    """1,000 rows at epsilon 0.5: an accuracy with Laplace noise of scale 0.002, mean absolute error near 0.002.

    Discrete Laplace of scale 2 counts: E|X| = 2q/(1-q^2), q = exp(-1/2); within five standard errors over 2,000 draws.
    """
    candidate = tuning_candidate(lambda i, r: i, candidates=3, correct=lambda model: 900, validation_epsilon=0.5)
    source = keyed_source("validation")
    errors = np.array([abs(candidate(source)[0] - 900.0) for _ in range(2000)])
    q = math.exp(-0.5)
    mean, square = 2 * q / (1 - q * q), 2 * q / (1 - q) ** 2
    assert mean / 1000 == pytest.approx(0.002, rel=0.05)
    assert abs(errors.mean() - mean) < 5 * math.sqrt((square - mean**2) / 2000)
