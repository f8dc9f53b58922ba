"""Learners on tables of which one row is added, for `tests.audits.shipped_mechanisms`."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dpselect.accounting import gated
from dpselect.accounting.planning.portfolio import PortfolioPrice, covering
from dpselect.audit import Subject
from dpselect.learners import (
    DPSGDClassifier,
    DPSGDRegressor,
    EarlyStopping,
    GatedLogisticRegression,
    GatedRelease,
    OutputPerturbationClassifier,
    PrivateBoostingClassifier,
    PrivateBoostingRegressor,
    PrivateLeastSquares,
    PrivateNaiveBayes,
    PrivateRectangleClassifier,
    PrivateRidge,
    PrivateRidgeClassifier,
    PrivateThresholdClassifier,
    PrivateValidation,
    Reached,
)
from dpselect.mechanisms import NoisyCount, noisy_count
from dpselect.privacy import Adjacency, pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.searching.portfolio import CandidateTrials
from dpselect.study.learners.recipe import Recipe
from dpselect.study.portfolio import agreement, fitted, the_choice
from dpselect.study.target import Target
from tests.audits.shipped import audited, label, looped, number_or_nan

__all__: list[str] = []

Table = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def table(rows: int, value: float = 1.0) -> Table:
    """So many rows of one number, of the second class."""
    return np.full((rows, 1), value), np.ones(rows, dtype=np.int64)


def trained(
    name: str, make: Callable[..., Any], output: Callable[[Any], Any], pair: tuple[Table, Table], *columns: int
) -> Subject:
    """The `output` of the model that `make(random=...)` is once fitted, at the price that it states of its columns."""
    claim = make().guarantee(*columns)
    return looped(name, lambda data, random: make(random=random).fit(*data), pair, claim, output)


ONE_MORE = (table(0), table(1))
OPPOSED = (table(1), (np.array([[1.0], [1.0]]), np.array([1, 0])))
CLASSES: dict[str, Any] = {"classes": [0, 1], "nominal_rows": 1}


def only_weight(model: Any) -> float:
    """That of the only feature."""
    return float(model.weights_[0][0, 0])


def moved(model: Any) -> float:
    """The weights after one row's gradient, projected on where the row pulls them."""
    weights = model.weights_[0]
    return float(np.sum(weights[:, 1] - weights[:, 0]))


@audited("learners.OutputPerturbationClassifier", draws=150, many=10_000, planted=0.2)
def output_perturbation() -> Subject:
    """`OutputPerturbationClassifier`: the weight of the only feature."""
    make = partial(OutputPerturbationClassifier, epsilon=1.0, regularization=1.0, fit_intercept=False, **CLASSES)
    return trained("output perturbation", make, only_weight, ONE_MORE)


RIDGE: dict[str, Any] = {"noise_multiplier": 0.5, "intercept_scale": 0.0}


@audited("learners.PrivateRidge", draws=300, many=6_000, planted=0.25)
def ridge() -> Subject:
    """`PrivateRidge`: the weight of the only feature, one row more."""
    make = partial(PrivateRidge, label_bounds=(-1.0, 1.0), **RIDGE)
    return trained("ridge regression", make, only_weight, ONE_MORE)


@audited("learners.PrivateLeastSquares", draws=150, many=6_000, planted=0.15)
def least_squares() -> Subject:
    """`PrivateLeastSquares`: the weight of the only feature after two steps, one row more."""
    public: dict[str, Any] = {"label_bounds": (-1.0, 1.0), "nominal_rows": 1, "intercept_scale": 2.0**-16}
    return trained(
        "least squares", partial(PrivateLeastSquares, noise_multiplier=0.5, steps=2, **public), only_weight, ONE_MORE
    )


@audited("learners.PrivateNaiveBayes", draws=300, many=6_000, planted=0.25)
def naive_bayes() -> Subject:
    """`PrivateNaiveBayes`, one row more."""
    make = partial(PrivateNaiveBayes, classes=[0, 1], noise_multiplier=0.5)
    return trained("naive Bayes", make, moved, ONE_MORE)


@audited("learners.PrivateRidgeClassifier", draws=300, many=6_000, planted=0.25)
def ridge_classifier() -> Subject:
    """`PrivateRidgeClassifier`, one row more."""
    make = partial(PrivateRidgeClassifier, classes=[0, 1], **RIDGE)
    return trained("ridge classifier", make, moved, ONE_MORE)


STEPS: dict[str, Any] = {
    "noise_multiplier": 1.0,
    "sampling_rate": 0.5,
    "steps": 2,
    "clip_norm": 0.5,
    "learning_rate": 1.0,
    "averaged_share": 0.0,
    **CLASSES,
}


@audited("learners.DPSGDClassifier", draws=100, many=6_000, planted=0.15)
def gradient_descent() -> Subject:
    """`DPSGDClassifier`: two steps, one row more."""
    return trained("DP-SGD", partial(DPSGDClassifier, **STEPS), moved, ONE_MORE)


@audited("learners.DPSGDRegressor", draws=100, many=6_000, planted=0.25)
def gradient_regression() -> Subject:
    """`DPSGDRegressor`: two full batches, one row more."""
    make = partial(
        DPSGDRegressor, label_bounds=(-1.0, 1.0), noise_multiplier=1.5, steps=2, learning_rate=1.0, nominal_rows=1
    )
    return trained("regression by noisy gradients", make, lambda model: float(np.sum(model.weights_[0])), ONE_MORE)


TREES: dict[str, Any] = {"n_estimators": 1, "max_depth": 1, "max_bins": 2, "linear_share": 0.0, "nominal_rows": 1}


def pulled(model: Any) -> float:
    """The leaves of the trees, projected on where a row of the second class, or of the label 1, pulls them."""
    leaves = model.weights_[-1]
    return float(np.sum(leaves[..., -1]) - (np.sum(leaves[..., 0]) if leaves.shape[-1] == 2 else 0.0))


@audited("learners.PrivateBoostingClassifier", draws=150, many=6_000, planted=0.22)
def boosted_classes() -> Subject:
    """`PrivateBoostingClassifier`: one tree of two leaves, one row more."""
    make = partial(PrivateBoostingClassifier, classes=[0, 1], noise_multiplier=0.7, **TREES)
    return trained("boosted trees of classes", make, pulled, ONE_MORE)


@audited("learners.PrivateBoostingRegressor", draws=150, many=6_000, planted=0.22)
def boosted_numbers() -> Subject:
    """`PrivateBoostingRegressor`: one tree of two leaves, one row more."""
    make = partial(PrivateBoostingRegressor, label_bounds=(-1.0, 1.0), noise_multiplier=0.7, **TREES)
    return trained("boosted trees of numbers", make, pulled, ONE_MORE)


@audited(draws=100, many=6_000, planted=0.2)
def portfolio() -> Subject:
    """A study's `CandidateTrials`: which of two ridge classifiers was chosen, its last run's weights; one row more."""
    target = Target((0, 1))
    recipe = Recipe("ridge", {"intercept_scale": 0.0}, target, 1.0, Adjacency.ADD_OR_REMOVE_ONE)
    compared, trials, noises = agreement(target), (1.4, 1.4), (0.7, 0.7)
    price = PortfolioPrice(
        trials,
        tuple(recipe.guarantee(noise) for noise in trials),
        the_choice(compared, 1.0, Adjacency.ADD_OR_REMOVE_ONE),
        noises,
        covering([recipe.guarantee(noise) for noise in noises]),
    )
    run = CandidateTrials([partial(fitted, recipe)] * 2, price, compared.cells)

    def drawn(data: Table, random: RandomSource) -> float:
        model, (place,) = run({}, keyed_source(random.bytes(32)), data)  # spawns, and so takes a trial's own source
        return 1000.0 * float(place) + moved(model)

    return looped("portfolio", drawn, ONE_MORE, price.guarantee)


@audited("learners.EarlyStopping", draws=100, many=50, heavy=True)
def early_stopping() -> Subject:
    """`EarlyStopping` with a `PrivateValidation`: where training ended, and the weights."""
    fixed = {**STEPS, "noise_multiplier": 2.0}

    def make(data: Table, random: RandomSource | None) -> DPSGDClassifier:
        score = PrivateValidation(*data, nominal_rows=1, epsilon=0.5)
        stopping = EarlyStopping(stops=[1, 2], delta=0.01, score=score, rule=Reached(0.9))
        return DPSGDClassifier(early_stopping=stopping, random=random, **fixed)

    def run(data: Table, random: RandomSource) -> float:
        model = make(data, random).fit(*data)
        return 1000.0 * model.n_steps_ + moved(model)

    price = make(ONE_MORE[0], None).price()
    assert price is not None
    where = ["dpselect.learners.early_stopping.iterative"]
    return looped("early stopping", run, ONE_MORE, price.worst(), priced_by=where)


class Always:
    """A model that predicts the second class."""

    def predict(self, X: Any) -> np.ndarray[Any, Any]:
        """One label a row."""
        return np.ones(len(X), dtype=np.int64)


@audited("learners.PrivateValidation", draws=500, planted=0.8)
def private_validation() -> Subject:
    """`PrivateValidation`: a noisy count of right predictions."""
    return looped(
        "private validation",
        lambda data, random: PrivateValidation(*data, nominal_rows=1, epsilon=1.0)(Always(), random),
        ONE_MORE,
        NoisyCount(epsilon=1.0).guarantee,
    )


@audited("learners.PrivateThresholdClassifier", draws=200, many=6_000, planted=0.3)
def threshold_classifier() -> Subject:
    """`PrivateThresholdClassifier`."""
    make = partial(
        PrivateThresholdClassifier, lower=0, upper=7, granularity=1.0, positives="below", epsilon=1.0, classes=[0, 1]
    )
    return trained("threshold classifier", make, lambda model: model.rule_.cut, OPPOSED)


@audited("learners.PrivateRectangleClassifier", draws=200, many=5_000)
def rectangle_classifier() -> Subject:
    """`PrivateRectangleClassifier` on one column."""
    make = partial(
        PrivateRectangleClassifier,
        lower=0,
        upper=7,
        granularity=1.0,
        epsilon=4.0,
        failure_probability=0.9,
        classes=[0, 1],
    )

    def sides(model: Any) -> str:
        return label([*model.rule_.first, *model.rule_.last])

    return trained("rectangle classifier", make, sides, (table(40, 7.0), table(41, 7.0)), 1)


GATE: dict[str, Any] = {
    "training": pure_dp(epsilon=1.0),
    "test_epsilon": 0.5,
    "test_shift": 1.0,
    "train_shift": 1.0,
    "disjoint": False,
}


@audited("learners.GatedRelease", draws=200, many=6_000, planted=0.8)
def gate() -> Subject:
    """`GatedRelease` with one row more for training and for the test: a large model, whose error is smaller too."""
    return looped(
        "gated release",
        lambda count, random: number_or_nan(
            GatedRelease(max_error=-0.5, **GATE)(
                lambda inner: noisy_count(count, epsilon=1.0, random=inner), lambda _: -float(count), random=random
            ).value
        ),
        (0, 1),
        gated(**GATE).worst(),
    )


@audited("learners.GatedLogisticRegression", draws=100, many=4_000)
def gated_regression() -> Subject:
    """`GatedLogisticRegression`: a training row more."""
    model = OutputPerturbationClassifier(epsilon=1.0, regularization=1.0, fit_intercept=False, **CLASSES)
    gate = GatedLogisticRegression(model=model, features=1, nominal_test_rows=1, test_epsilon=0.5, max_error=1.0)
    held_out = table(1)

    def run(data: Table, random: RandomSource) -> float:
        found = gate(*data, *held_out, random=random).value
        return math.nan if found is None else only_weight(found)

    return looped("gated logistic regression", run, ONE_MORE, gate.guarantee.worst())
