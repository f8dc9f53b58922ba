"""Scores of predictions are those of scikit-learn, and losses are held within their bound."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.holdout.scores import BITS, METRICS, Scored, area_under_curve, f1_score


def test_areas_are_what_scikit_learn_says():
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(3)
    for _ in range(20):
        labels = generator.random(40) < 0.3
        scores = generator.integers(0, 8, 40).astype(float)
        assert area_under_curve(labels, scores) == pytest.approx(roc_auc_score(labels, scores))


@pytest.mark.full
def test_f1_is_what_scikit_learn_says():
    from sklearn.metrics import f1_score as theirs, log_loss

    generator = np.random.default_rng(3)
    for _ in range(20):
        labels, guesses, chances = generator.random(40) < 0.3, generator.random(40) < 0.4, generator.random(40)
        assert f1_score(labels, guesses) == pytest.approx(theirs(labels, guesses))
        loss = METRICS["log-loss"].row_values(labels, chances, 50.0).mean() * 50.0
        assert loss == pytest.approx(log_loss(labels, chances))


def test_infinite_losses_count_as_the_bound():
    values = METRICS["log-loss"].row_values(np.array([True, True, False, False]), np.array([0.0, 1.0, 1.0, 0.0]), 4.0)
    assert values.tolist() == [1.0, 0.0, 1.0, 0.0]


@pytest.mark.parametrize(("metric", "third"), [("absolute-error", 0.75), ("squared-error", 1.0)])
def test_errors_are_shares_of_their_bound(metric, third):
    labels = np.array([1.0, 2.0, 5.0, 1e300])
    scored = Scored(METRICS[metric], labels, np.array([1.0, 3.0, 2.0, -1e300]), 4.0)
    assert scored.values().tolist() == [0.0, 0.25, third, 1.0]
    assert scored.total() == (1.25 + third) * 2**BITS
    assert scored.exact() == (1.25 + third) / 4


def test_accuracy_is_the_fraction_of_correct_predictions():
    scored = Scored(METRICS["accuracy"], np.array(["a", "b", "b"]), np.array(["a", "b", "a"]), 1.0)
    assert (scored.rows, scored.total()) == (3, 2 << BITS)
    assert scored.exact() == pytest.approx(2 / 3, abs=1e-9)


def test_scores_of_one_class():
    labels, some = np.array([True, True]), np.array([True, False])
    assert area_under_curve(labels, np.array([0.1, 0.2])) == 0.5
    assert f1_score(labels, some) == pytest.approx(2 / 3)
    assert f1_score(some, ~some) == 0.0


def test_an_area_is_no_mean_over_rows():
    scored = Scored(METRICS["auc"], np.array([True, False, True]), np.array([0.9, 0.1, 0.1]), 1.0)
    assert scored.exact() == 0.75
    assert scored.block_areas(np.array([[0, 1], [2, 1]])).tolist() == [1.0, 0.5]
    with pytest.raises(ArgumentError, match="not a mean over rows"):
        scored.values()
