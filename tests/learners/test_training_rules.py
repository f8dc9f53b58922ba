"""Steps and rates from public numbers: the formulas, what is given stays, and what one run by the rule reaches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_friedman1
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from dpselect.accounting import calibrate
from dpselect.accounting.planning.portfolio import portfolio_of
from dpselect.errors import StudyError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import DPSGDClassifier, DPSGDRegressor, PrivateBoostingClassifier
from dpselect.learners.training_rules import BOOSTING
from dpselect.preprocessing import Cosines, OrientedGradients
from dpselect.privacy import Adjacency
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


@pytest.mark.parametrize("learner", LEARNERS)
def test_what_is_given_stands(learner):
    given = learner(noise_multiplier=7.0, steps=3, clip_norm=0.7, averaged_share=0.1)._schedule(1.0)
    assert (given.noise_multiplier, given.steps, given.clip_norm, given.averaged_share) == (7.0, 3, 0.7, 0.1)
    rate = learner(learning_rate=2.5)._schedule(1.0)
    assert (rate.learning_rate, rate.clip_norm) == (2.5, 1.0)


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


# boosting


@pytest.mark.parametrize(
    ("rows", "noise", "trees", "depth", "share"),
    [
        (None, 1000.0 / BOOSTING.few, *(by[1] for by in (BOOSTING.trees, BOOSTING.depth, BOOSTING.linear_share))),
        (None, 1001.0 / BOOSTING.few, *(by[0] for by in (BOOSTING.trees, BOOSTING.depth, BOOSTING.linear_share))),
        (BOOSTING.few * 7, 7.0, *(by[1] for by in (BOOSTING.trees, BOOSTING.depth, BOOSTING.linear_share))),
        (BOOSTING.few * 6.99, 7.0, *(by[0] for by in (BOOSTING.trees, BOOSTING.depth, BOOSTING.linear_share))),
        (BOOSTING.many * 7, 7.0, *(by[2] for by in (BOOSTING.trees, BOOSTING.depth, BOOSTING.linear_share))),
        (BOOSTING.many * 6.99, 7.0, *(by[1] for by in (BOOSTING.trees, BOOSTING.depth, BOOSTING.linear_share))),
    ],
)
def test_trees_depth_and_the_linear_share_follow_from_rows_and_noise(rows, noise, trees, depth, share):
    assert BOOSTING.choose(rows, noise) == (trees, depth, share)
    model = PrivateBoostingClassifier(nominal_rows=rows, noise_multiplier=noise)
    assert model._plan() == (trees, depth, share)
    assert model.set_params(adjacency="replace_one")._plan() == (trees, depth, 0.0)
    given = model.set_params(adjacency="add_or_remove_one", n_estimators=3, max_depth=2, linear_share=0.1)
    assert given._plan() == (3, 2, 0.1), "parameters that are given stay"


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
