"""Learners by noisy gradients that are told nothing: their schedule, their exact price, class weights, regression."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.datasets import load_digits, make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from dpselect import learners
from dpselect.accounting import calibrate
from dpselect.accounting.planning.portfolio import portfolio_of
from dpselect.errors import AdjacencyError, ArgumentError, StudyError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import DPSGDClassifier, DPSGDRegressor
from dpselect.learners.clipped_gradients import LinearRegression, clipped_gradient_sum
from dpselect.learners.fixed_point import STEP
from dpselect.learners.rows import targets_of, unit_rows
from dpselect.learners.scikit_learn_checks import EXPECTED_FAILED_REGRESSOR_CHECKS
from dpselect.mechanisms.grid import gaussian_steps, grid_at_most
from dpselect.preprocessing import Cosines, OrientedGradients
from dpselect.privacy import Adjacency, compose, gaussian
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.study import parse_study
from dpselect.study.columns.column import Column
from dpselect.study.learners.recipe import recipe_of
from dpselect.study.portfolio import agreement, the_choice
from dpselect.study.target import Target

LEARNERS = [DPSGDClassifier, DPSGDRegressor]


def by_hand(learner, n, mu):
    """Reach, steps, and the bound on gradients, from the formulae."""
    if learner is DPSGDClassifier:
        reach = min(max(30 * math.sqrt(n * mu), 150), 2000)
        return reach, min(max(math.ceil(reach / (15 * 0.3)), 40), 250), 0.3
    reach = min(max(2.5 * math.sqrt(n * mu), 10), 60)
    return reach, min(max(math.ceil(reach / (2 * 0.1)), 40), 300), 0.1


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("n", [1, 90, 1437, 26_049, 10**7])
@pytest.mark.parametrize("mu", [0.03, 0.24, 0.65, 1.5, 9.0])
def test_steps_and_rate_are_those_of_the_formulae(learner, n, mu):
    _, steps, clip = by_hand(learner, n, mu)
    model = learner(noise_multiplier=math.sqrt(steps) / mu, nominal_rows=n)
    found = model._schedule(1.0)
    # an integer of steps more or less changes mu by half its share, and so what the formulae ask for
    assert abs(found.steps - steps) <= 1
    reached = math.sqrt(found.steps) / found.noise_multiplier
    assert found.steps >= by_hand(learner, n, reached)[1]
    assert found.clip_norm == clip
    assert found.learning_rate * clip * found.steps == pytest.approx(by_hand(learner, n, reached)[0])
    assert (found.averaged_share, found.momentum) == (0.5, 0.0)


@pytest.mark.parametrize("learner", LEARNERS)
def test_more_noise_is_never_less_private(learner):
    noises = np.geomspace(0.5, 5000.0, 400)
    for n in (None, 150, 4000):
        found = [learner(noise_multiplier=noise, nominal_rows=n)._schedule(1.0) for noise in noises]
        spent = [math.sqrt(each.steps) / each.noise_multiplier for each in found]
        assert np.all(np.diff(spent) < 0)
        assert min(each.steps for each in found) >= 40


@pytest.mark.parametrize(("learner", "rows"), [(DPSGDClassifier, 1440), (DPSGDRegressor, 300)])
def test_the_price_does_not_leap_where_there_is_a_step_more(learner, rows):
    noises = np.linspace(30.0, 40.0, 501)
    models = [learner(noise_multiplier=noise, nominal_rows=rows) for noise in noises]
    steps = np.array([model._steps() for model in models])
    price = np.array([model.guarantee().gaussian_mu for model in models])
    assert len(set(steps)) > 10
    assert np.max(-np.diff(price) / price[1:]) < 1.5 * (noises[1] / noises[0] - 1.0)
    for model in models[::25]:
        found = model._schedule(1.0)
        assert model.noise_multiplier <= found.noise_multiplier <= model.noise_multiplier * math.sqrt(41 / 40)
        assert model.guarantee().gaussian_mu >= math.sqrt(found.steps) / found.noise_multiplier * (1 - 1e-14)


def spent_by_draws(model, monkeypatch, less=1.0):
    """mu of a fit from what is drawn alone: the root of the sum of (sensitivity / deviation) squared, on the grid."""
    drawn = []

    def steps(deviation, shape, random):
        drawn.append(less * deviation)
        return gaussian_steps(deviation, shape, random)

    monkeypatch.setattr(learners.dp_sgd, "gaussian_steps", steps)
    X, y = np.full((6, 2), 0.5), np.array([0, 1] * 3)
    fitted = model.fit(X, y)
    clip = model._schedule(1.0).clip_norm
    sensitivity = clip / (STEP * grid_at_most(clip) * STEP)
    return math.sqrt(sum((sensitivity / each) ** 2 for each in drawn)), fitted.guarantee_.gaussian_mu


@pytest.mark.parametrize("steps", [None, 45])
@pytest.mark.parametrize("noise", [3.0, 31.7, 77.0])
@pytest.mark.parametrize("public", [{"classes": [0, 1]}, {"label_bounds": (0, 1)}], ids=["classes", "numbers"])
def test_the_price_is_that_of_the_noise_that_is_drawn(public, noise, steps, monkeypatch):
    learner = DPSGDClassifier if "classes" in public else DPSGDRegressor
    model = learner(noise_multiplier=noise, nominal_rows=900, steps=steps, random=keyed_source(3), **public)
    spent, priced = spent_by_draws(model, monkeypatch)
    assert spent <= priced <= spent * (1.0 + 1e-12)
    spent, priced = spent_by_draws(model, monkeypatch, less=0.99)
    assert spent > priced, "the mutation: noise 1 % smaller is not paid for"


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_is_given_stands(learner):
    given = learner(noise_multiplier=7.0, steps=3, clip_norm=0.7, averaged_share=0.1)._schedule(1.0)
    assert (given.noise_multiplier, given.steps, given.clip_norm, given.averaged_share) == (7.0, 3, 0.7, 0.1)
    rate = learner(learning_rate=2.5)._schedule(1.0)
    assert (rate.learning_rate, rate.clip_norm) == (2.5, 1.0)


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_fit_begins_where_it_is_told(learner):
    """A step of 1e-9 times noise of about 10 shows where; zeros are the default, and the price is the same."""
    public = {"classes": [0, 1]} if learner is DPSGDClassifier else {"label_bounds": (0, 1)}
    X, y = np.eye(3), np.array([0, 1, 1])
    model = learner(nominal_rows=3, steps=1, averaged_share=0.0, learning_rate=1e-9, **public)
    begun = (np.arange(4.0 * (1 + (learner is DPSGDClassifier))).reshape(4, -1),)
    assert np.allclose(model.fit(X, y, initial_weights=begun).weights_[0], begun[0], atol=1e-6)
    assert model.guarantee_.gaussian_mu == model.guarantee().gaussian_mu
    assert np.array_equal(begun[0].ravel(), np.arange(begun[0].size))
    model.set_params(random=keyed_source(1))
    plain = model.fit(X, y).weights_[0]
    model.set_params(random=keyed_source(1))
    assert np.array_equal(model.fit(X, y, initial_weights=[np.zeros_like(begun[0])]).weights_[0], plain)
    for wrong in ([], [begun[0][:3]], [np.full_like(begun[0], np.nan)], [None], 3, "weights", [begun[0], begun[0]]):
        with pytest.raises(ArgumentError, match="initial_weights"):
            model.fit(X, y, initial_weights=wrong)


@pytest.mark.parametrize("learner", [DPSGDClassifier, DPSGDRegressor])
def test_full_batches_are_priced_as_the_gaussian_mechanisms_that_they_are(learner):
    model = learner(noise_multiplier=9.0, steps=11)
    exact = compose(*[gaussian(noise_multiplier=9.0)] * 11)
    for epsilon in (0.1, 0.5, 2.0):
        mu = math.sqrt(11) / 9.0
        formula = stats.norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * stats.norm.cdf(-mu / 2 - epsilon / mu)
        assert model.guarantee().delta(epsilon=epsilon) == pytest.approx(formula, rel=1e-9)
        assert model.guarantee().delta(epsilon=epsilon) >= formula * (1 - 1e-12)
        assert exact.delta(epsilon=epsilon) == pytest.approx(formula, rel=1e-6)
    with pytest.raises(AdjacencyError):
        learner(adjacency="replace_one").guarantee()


def test_the_price_before_there_is_data_is_that_of_the_fit():
    for n in (None, 40, 5000):
        model = DPSGDClassifier(classes=[0, 1], nominal_rows=n, noise_multiplier=50.0)
        with warnings.catch_warnings(action="ignore"):
            fitted = model.fit([[0.1, 0.2]] * 3, [0, 1, 1])
        assert fitted.guarantee_.epsilon(delta=1e-5) == model.guarantee().epsilon(delta=1e-5)


@pytest.mark.parametrize("learner", LEARNERS)
@pytest.mark.parametrize("epsilon", [0.001, 0.03, 300.0])
def test_totals_far_from_the_usual_have_their_noise(learner, epsilon):
    """A search that leaps to them must not pass what a learner takes."""
    model = learner(nominal_rows=10**6)
    noise = calibrate(lambda each: model.set_params(noise_multiplier=each).guarantee(), epsilon=epsilon, delta=1e-6)
    found = [model.set_params(noise_multiplier=each).guarantee().epsilon(delta=1e-6) for each in (noise, 0.999 * noise)]
    assert found[0] <= epsilon < found[1]


def test_a_portfolio_of_many_rows_and_a_small_epsilon_has_its_noises():
    def make(noise):
        return DPSGDRegressor(nominal_rows=10**5, noise_multiplier=noise).guarantee()

    choice = the_choice(agreement(Target(bounds=(0.0, 1.0))), 0.01, Adjacency.ADD_OR_REMOVE_ONE)
    price = portfolio_of([make] * 4, choice, epsilon=0.1, delta=1e-6)
    assert 0.0999 <= price.guarantee.epsilon(delta=1e-6) <= 0.1
    assert price.trials[1] > 1000.0


def test_a_search_for_a_total_finds_the_noise_of_the_rule():
    learner = DPSGDClassifier()
    options = {"epsilon": 3.0, "delta": 1e-5, "repetitions": Fixed(count=1), "nominal_rows": 1000, "classes": [0, 1]}
    plan = PrivateSearchCV(learner, {"clip_norm": [0.2, 0.4]}, **options).plan(np.zeros((5, 2)))
    assert 2.9 < plan.guarantee.epsilon(delta=1e-5) <= 3.0
    assert plan.noise > 10.0


# class weights


def test_a_weighted_row_moves_the_sum_by_its_weight_and_never_beyond_the_bound():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [30.0, 40.0]])
    fixed = {"noise_multiplier": 1.0, "steps": 1, "clip_norm": 0.5, "learning_rate": 1.0, "nominal_rows": 1}

    def weights(rows, labels, **changed):
        model = DPSGDClassifier(**fixed, classes=["a", "b"], random=keyed_source(3), **changed)
        return model.fit(rows, labels).weights_[0]

    nothing = weights(X[:0], [])
    for label, weight in (("a", 0.25), ("b", 1.0)):
        for row in X:
            moved = weights([row], [label], class_weights={"a": 1.0, "b": 4.0}) - nothing
            assert moved == pytest.approx(weight * (weights([row], [label]) - nothing), abs=2 * STEP)
            assert np.linalg.norm(moved) <= 0.5 * weight * (1 + 1e-12)


def test_a_rare_class_that_counts_more_is_found_more_often():
    random = np.random.default_rng(5)
    X = random.normal(size=(4000, 2))
    y = np.where(X[:, 0] + 0.5 * random.normal(size=4000) > 2.2, "rare", "common")
    X /= 4
    options = {"classes": ["common", "rare"], "nominal_rows": 4000, "noise_multiplier": 30.0, "random": keyed_source(1)}
    plain = DPSGDClassifier(**options).fit(X, y).predict(X)
    weighted = DPSGDClassifier(class_weights={"common": 0.05}, **options).fit(X, y).predict(X)
    rare = y == "rare"
    assert np.mean(weighted[rare] == "rare") > np.mean(plain[rare] == "rare") + 0.2
    with pytest.raises(ArgumentError, match="class_weights"):
        DPSGDClassifier(class_weights={"other": 2.0}, **options).fit(X, y)


# regression


def test_one_row_moves_a_regression_gradient_by_at_most_the_bound_exactly():
    random = np.random.default_rng(2)
    rows = unit_rows(random.normal(size=(50, 3)) * 10.0 ** random.integers(-2, 3, (50, 1)), 1.0, intercept=0.3)
    targets = targets_of(random.normal(size=50) * 3, 50, (-2, 2))
    model, step = LinearRegression(4), 2.0**-20
    for weights in (np.zeros((4, 1)), random.normal(size=(4, 1)), np.full((4, 1), 1e9)):
        (whole,) = clipped_gradient_sum(model.layers((weights,), rows, targets), 0.1, step)
        single = []
        for k in range(50):
            (part,) = clipped_gradient_sum(model.layers((weights,), rows[k : k + 1], targets[k : k + 1]), 0.1, step)
            assert math.fsum((float(v) * STEP * step) ** 2 for v in part.ravel()) <= 0.01
            single.append(part)
        assert np.array_equal(sum(single), whole)


def test_labels_that_are_no_numbers_leave_their_rows_out():
    fixed = {"label_bounds": (0, 1), "nominal_rows": 3, "steps": 2, "noise_multiplier": 1.0}
    X = [[0.5, 0.1], [0.2, 0.2], [0.9, 0.9], [0.3, 0.1]]
    for odd in (None, math.nan, "x"):
        labels = np.array([0.3, odd, 1.0, 0.5], dtype=object)
        found = DPSGDRegressor(**fixed, random=keyed_source(1)).fit(X, labels).weights_[0]
        kept = DPSGDRegressor(**fixed, random=keyed_source(1)).fit([X[0], *X[2:]], [0.3, 1.0, 0.5]).weights_[0]
        assert np.array_equal(found, kept)


@pytest.mark.full
def test_only_the_listed_conventions_of_scikit_learn_are_broken():
    model = DPSGDRegressor(label_bounds=(-4, 4), row_norm=4, noise_multiplier=0.5)
    with warnings.catch_warnings(action="ignore"):
        found = check_estimator(
            model, expected_failed_checks=EXPECTED_FAILED_REGRESSOR_CHECKS, on_fail=None, on_skip=None
        )
    assert [r["check_name"] for r in found if r["status"] == "failed"] == []


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"label_bounds": None}, "label_bounds"),
        ({"steps": 0}, "steps"),
        ({"intercept_scale": 2}, "intercept_scale"),
        ({"nominal_rows": 0}, "nominal_rows"),
        ({"nominal_rows": -5, "steps": 2, "learning_rate": 1.0}, "nominal_rows"),
        ({"nominal_rows": -5, "steps": 2}, "nominal_rows"),
    ],
)
def test_parameters_are_refused_by_name(options, named):
    with pytest.raises((ArgumentError, TypeError), match=named):
        DPSGDRegressor(**{"label_bounds": (0, 1), **options}).fit(np.zeros((3, 2)), [0, 1, 1])


# what one run reaches that is told nothing


def noise_for(model, epsilon):
    return calibrate(lambda noise: model.set_params(noise_multiplier=noise).guarantee(), epsilon=epsilon, delta=1e-5)


@pytest.mark.full
def test_one_run_on_digits_reaches_what_the_rule_promises():
    X, y = load_digits(return_X_y=True)
    options = {"classes": range(10), "nominal_rows": 1440}
    noise = noise_for(DPSGDClassifier(**options), 3.0)
    found = []
    for seed in (31, 32):
        X1, X2, y1, y2 = train_test_split(X, y, test_size=0.2, random_state=seed)
        learner = DPSGDClassifier(noise_multiplier=noise, random=keyed_source(seed), **options)
        found.append(make_pipeline(OrientedGradients(), learner).fit(X1, y1).score(X2, y2))
    assert np.mean(found) > 0.94


def test_one_regression_reaches_what_the_rule_promises():
    X, y = make_friedman1(1500, noise=1.0, random_state=77)
    options = {"label_bounds": (0, 30), "nominal_rows": 1500}
    noise = noise_for(DPSGDRegressor(**options), 1.0)
    learner = DPSGDRegressor(noise_multiplier=noise, random=keyed_source(4), **options)
    assert make_pipeline(Cosines(bounds=(0, 1)), learner).fit(X, y).score(X, y) > 0.8


# in a study


def study(learner):
    return parse_study(
        {
            "data": {"source": "rows.csv", "label": "y", "classes": [">50K", "<=50K"], "bounds": [0, 1]},
            "privacy": {"nominal_rows": 400, "epsilon": 3.0, "delta": 1e-5},
            "learner": learner,
            "space": {},
            "repetitions": {"law": "fixed", "count": 1},
            "output": {"folder": "out"},
        }
    )


@pytest.mark.parametrize("name", ["dp-sgd", "ridge"])
def test_a_study_names_the_classes_that_count_more(name):
    columns = dict.fromkeys("abc", Column(bounds=(0, 1)))
    recipe = recipe_of(study({"name": name, "class_weights": {">50K": 3.0}}), nominal_rows=320, columns=columns)
    model = recipe.estimator(40.0, {}, None)
    assert model.class_weights == [3.0, 1.0], "in the order of the classes, and so in a file of the model"
    assert recipe.empty_fit(40.0, {}).weights_[0].shape == (4, 2)
    for wrong, named in (({"other": 2.0}, "other"), ([1.0, 2.0], "table")):
        with pytest.raises(StudyError, match=f"class_weights.*{named}"):
            recipe_of(study({"name": name, "class_weights": wrong}), nominal_rows=320)


def test_a_study_that_says_no_more_trains_by_the_rule():
    recipe = recipe_of(study({"name": "dp-sgd"}), nominal_rows=320.0)
    assert recipe.estimator(40.0, {}, None).steps is None
    expected = DPSGDClassifier(noise_multiplier=40.0, nominal_rows=320.0).guarantee()
    assert recipe.guarantee(40.0).epsilon(delta=1e-5) == expected.epsilon(delta=1e-5)
