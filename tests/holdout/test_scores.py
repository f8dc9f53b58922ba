"""Scores of predictions are those of scikit-learn, and losses are held within their bound."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.holdout.scores import METRICS, area_under_curve, f1_score


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
