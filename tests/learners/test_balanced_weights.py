"""Class weights from noisy numbers of rows: their cost is within the fit's, and they find rare classes."""

from unittest.mock import patch

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.learners import (
    DPSGDClassifier,
    PrivateBoostingClassifier,
    PrivateRidgeClassifier,
    balanced_weights as weights,
    dp_sgd,
    tree_rounds,
)
from dpselect.randomness import keyed_source

PUBLIC = {"classes": ["common", "rare"], "nominal_rows": 1500, "class_weights": "balanced"}


def rows(count=1500, share=0.04):
    random = np.random.default_rng(1)
    X = random.uniform(-1.0, 1.0, (count, 2))
    return X, np.where(X[:, 0] + 0.1 * random.normal(size=count) > 1.0 - 2.0 * share, "rare", "common")


def drawn(model, X, y):
    """The deviation of the noise of the counts, and the schedules or rounds that trained."""
    deviations, trained = [], []

    def recorded(deviation, size, random):
        deviations.append(deviation)
        return np.zeros(size, dtype=np.int64)

    run = dp_sgd.GradientSchedule.run
    grow = tree_rounds.TreeRounds.run

    def schedule(self, *args):
        trained.append(self)
        return run(self, *args)

    def rounds(self, *args):
        trained.append(self)
        return grow(self, *args)

    with (
        patch.object(weights, "gaussian_integers", recorded),
        patch.object(dp_sgd.GradientSchedule, "run", schedule),
        patch.object(tree_rounds.TreeRounds, "run", rounds),
    ):
        model.fit(X, y)
    return deviations, trained


@pytest.mark.parametrize("noise", [5.0, 40.0])
def test_counts_and_gradients_together_cost_what_the_fit_says(noise):
    model = DPSGDClassifier(**PUBLIC, steps=20, noise_multiplier=noise, random=keyed_source(1))
    (deviation,), (schedule,) = drawn(model, *rows())
    spent = 1.0 / deviation**2 + 20.0 / schedule.noise_multiplier**2
    claimed = model.guarantee().gaussian_mu ** 2
    assert claimed * (1.0 - 1e-9) <= spent <= claimed


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
@pytest.mark.parametrize("linear", [0.0, 0.5])
def test_counts_and_trees_together_cost_what_the_fit_says(adjacency, linear):
    if adjacency == "replace_one":
        linear = 0.0
    options = {"noise_multiplier": 3.0, "n_estimators": 2, "linear_share": linear, "adjacency": adjacency}
    model = PrivateBoostingClassifier(**PUBLIC, **options, random=keyed_source(1))
    (deviation,), trained = drawn(model, *rows(300))
    moved = 2.0 if adjacency == "replace_one" else 1.0
    spent = moved / deviation**2 + 1.0 / trained[-1].noise_multiplier ** 2
    if linear:
        spent += trained[0].steps / trained[0].noise_multiplier ** 2
    assert (1.0 - 1e-5) / 9.0 <= spent <= (1.0 + 1e-12) / 9.0


def test_a_rare_class_is_found():
    X, y = rows()
    plain = {**PUBLIC, "class_weights": None}
    for kind, options in (
        (DPSGDClassifier, {"noise_multiplier": 20.0}),
        (PrivateBoostingClassifier, {"n_estimators": 5}),
    ):
        found = [kind(**public, **options, random=keyed_source(2)).fit(X, y).predict(X) for public in (PUBLIC, plain)]
        recall = [np.mean(each[y == "rare"] == "rare") for each in found]
        assert recall[0] > recall[1] + 0.1, kind


def test_a_class_with_few_rows_counts_as_the_noise():
    found = weights.noisy_weights(np.zeros(500, dtype=int), 3, 5.0, replace=False, random=keyed_source(1))
    assert 0.008 < found[0] < 0.05  # 5 rows are the deviation
    assert found.max() == 1.0
    assert weights.noisy_weights(np.zeros(0, dtype=int), 2, 1.0, replace=True, random=keyed_source(1)).max() == 1.0


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (DPSGDClassifier, {"sampling_rate": 0.5, "steps": 3}),
        (PrivateRidgeClassifier, {}),
        (DPSGDClassifier, {"class_weights": "even"}),
    ],
)
def test_what_cannot_pay_for_the_counts_is_refused_before_the_data(kind, options):
    with pytest.raises(ArgumentError, match="class_weights"):
        kind(**{"classes": ["common", "rare"], "class_weights": "balanced", **options}).fit(
            np.zeros((2, 2)), ["common", "rare"]
        )
