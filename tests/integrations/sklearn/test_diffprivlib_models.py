"""diffprivlib models in PrivateSearchCV: through their epsilon where it was checked, and what is refused.

diffprivlib 0.6 needs scikit-learn below 1.8; elsewhere all of this is skipped.
"""

import pickle
import sys
import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.pipeline import make_pipeline

from dpselect.accounting import best_of
from dpselect.errors import AdjacencyError, ArgumentError, MissingExtraError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.integrations.sklearn.diffprivlib_models import KnownClasses, fresh_accountant, stated_epsilon
from dpselect.privacy import compose, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "diffprivlib", None)
    with pytest.raises(MissingExtraError, match=r'pip install "dpselect\[diffprivlib\]"'):
        fresh_accountant()


try:
    from diffprivlib import BudgetAccountant, models
    from diffprivlib.mechanisms import Vector
except ImportError:
    models = None

needs_diffprivlib = pytest.mark.skipif(models is None, reason="diffprivlib does not work with this scikit-learn")
LAW = Harmonic(limit=4)
X = keyed_source("rows").uniform((400, 3)) / 2.0
Y = (X[:, 0] > 0.25).astype(int)


def search(estimator, space, **options):
    defaults = {"repetitions": LAW, "score_epsilon": 0.5, "classes": [0, 1], "random": keyed_source(1)}
    return PrivateSearchCV(estimator, space, **{**defaults, **options})


def logistic(**options):
    return models.LogisticRegression(**{"epsilon": 2.0, "data_norm": 1.0, "fit_intercept": False, **options})


@needs_diffprivlib
def test_a_logistic_regression_is_searched_and_priced_by_its_epsilon():
    found = search(logistic(), {"C": stats.loguniform(1e-2, 1e2)}).fit(X, Y)
    assert found.guarantee_.adjacency.value == "replace_one"
    assert found.guarantee_.epsilon(0) == best_of(pure_dp(epsilon=2.0, adjacency="replace_one"), LAW).epsilon(0)
    assert found.best_estimator_.coef_.shape == (1, 3)
    again = search(logistic(), {"C": stats.loguniform(1e-2, 1e2)}).fit(X, Y)
    assert np.array_equal(found.best_estimator_.coef_, again.best_estimator_.coef_)


@needs_diffprivlib
def test_its_epsilon_is_chosen_for_a_total():
    found = search(logistic(), {"C": [0.1, 1.0]}, epsilon=3.0, score_epsilon=None).fit(X, Y)
    assert 2.9 < found.guarantee_.epsilon(0) <= 3.0
    assert found.best_estimator_.epsilon == 1.0 / found.noise_


@needs_diffprivlib
def test_nothing_of_the_runs_is_left_in_accountants_or_generators():
    """diffprivlib's default accountant would hold one entry for every run of the process."""
    BudgetAccountant.pop_default()
    default = BudgetAccountant().set_default()
    found = search(logistic(), {"C": [0.1, 1.0]}).fit(X, Y)
    assert len(default) == 0
    BudgetAccountant.pop_default()
    assert len(found.best_estimator_.accountant) == 0
    assert found.best_estimator_.random_state is None
    assert b"Philox" not in pickle.dumps(found.best_estimator_)


@needs_diffprivlib
def test_a_private_scaler_before_it_is_composed():
    scaler = models.StandardScaler(epsilon=0.5, bounds=(0.0, 1.0))
    found = search(make_pipeline(scaler, logistic()), {"logisticregression__C": [0.1, 1.0]}).fit(X, Y)
    one = compose(*[pure_dp(epsilon=e, adjacency="replace_one") for e in (0.5, 2.0)])
    assert found.plan().parts[0].epsilon(0) == one.epsilon(0)


@needs_diffprivlib
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: logistic(data_norm=None), "no data_norm"),
        (lambda: logistic(fit_intercept=True), "fit_intercept=False"),
        (lambda: logistic(data_norm=2.0), "at most 1"),
        (lambda: models.GaussianNB(), "no bounds"),
        (lambda: models.GaussianNB(bounds=(0, 1)), "not checked"),
        (lambda: make_pipeline(models.StandardScaler(), logistic()), "no bounds"),
        (lambda: make_pipeline(models.PCA(1, data_norm=1.0, centered=True), logistic()), "PCA was not checked"),
        (lambda: logistic(random_state=1), "must stay None"),
    ],
)
def test_what_is_refused(make, told):
    with pytest.raises(ArgumentError, match=told):
        search(make(), {}).fit(X, Y)


@needs_diffprivlib
def test_bounds_that_would_come_from_the_data_are_refused_whatever_is_declared():
    with pytest.raises(ArgumentError, match="no bounds"):
        search(models.GaussianNB(), {}, base=stated_epsilon).fit(X, Y)
    with pytest.raises(ArgumentError, match="no data_norm"):
        search(logistic(), {"data_norm": [1.0, None]}, base=stated_epsilon).fit(X, Y)


@needs_diffprivlib
def test_a_model_is_taken_at_its_word_when_the_caller_says_so():
    naive = models.GaussianNB(epsilon=3.0, bounds=(0.0, 1.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = search(naive, {"var_smoothing": stats.loguniform(1e-9, 1e-3)}, base=stated_epsilon).fit(X, Y)
    assert found.guarantee_.epsilon(0) == best_of(pure_dp(epsilon=3.0, adjacency="replace_one"), LAW).epsilon(0)
    with pytest.raises(AdjacencyError):
        search(naive, {}, base=stated_epsilon, adjacency="add_or_remove_one").fit(X, Y)


@needs_diffprivlib
def test_a_version_that_was_not_read_is_not_trusted(monkeypatch):
    monkeypatch.setattr("dpselect.integrations.sklearn.diffprivlib_models.version", lambda name: "0.7.0")
    with pytest.raises(ArgumentError, match=r"found 0\.7\.0"):
        search(logistic(), {}).fit(X, Y)


@needs_diffprivlib
def test_its_classes_are_the_public_ones_whatever_the_rows_hold():
    """By itself it takes them from the rows: the only row of a class decides the shape of the weights."""
    only = np.where(np.arange(len(Y)) == 7, "c", "a")
    for labels in (only, np.full(len(Y), "a"), np.where(np.arange(len(Y)) == 7, "other", only)):
        found = search(logistic(), {}, classes=["a", "b", "c"]).fit(X, labels).best_estimator_
        assert found.classes_.tolist() == ["a", "b", "c"]
        assert found.coef_.shape == (3, 3)
        assert not hasattr(found, "n_iter_")  # no function of the weights


@needs_diffprivlib
def test_the_rows_added_for_classes_move_no_minimum_and_an_unknown_label_adds_nothing():
    exact = {"epsilon": 1e9, "random_state": 1, "tol": 1e-10}
    plain = logistic(**exact).fit(X[:200], Y[:200]).coef_
    assert np.linalg.norm(plain) > 1.0
    for count in (200, 210):
        labels = np.append(Y[:200], [9] * 10)[:count]
        found = KnownClasses(logistic(**exact), [0, 1]).fit(X[:count], labels)
        assert np.allclose(found.model.coef_, plain, rtol=1e-5)


@needs_diffprivlib
def test_several_processes_do_not_draw_the_same_noise_for_each_class():
    """By itself, with n_jobs=2, each class's process gets a copy of the generator."""
    three = np.arange(len(Y)) % 3
    found = search(logistic(n_jobs=2), {}, classes=[0, 1, 2]).fit(X, three)
    assert found.best_estimator_.n_jobs == 1
    one = search(logistic(), {}, classes=[0, 1, 2]).fit(X, three)
    assert np.array_equal(found.best_estimator_.coef_, one.best_estimator_.coef_)


class _Spy(np.random.RandomState):
    def gamma(self, shape, scale, size):
        self.scale = scale
        return super().gamma(shape, scale, size)


@needs_diffprivlib
def test_a_row_that_a_private_scaler_makes_infinite_counts_as_zeros_and_fails_no_run():
    """In single precision 1e19 passes for a number that can be squared, and divided by a small deviation it is none."""
    scaler = models.StandardScaler(epsilon=1e12, bounds=(0.0, 1e-20))
    found = search(make_pipeline(scaler, logistic()), {}, repetitions=Fixed(count=1))
    table = np.float32(X * 1e-21)
    table[[5, 9, 11, 13]] = 1e19
    for row in (5, 9, 11, 13):  # in one part or the other
        table[row, 0] = 1e19 / (1 + row)
    assert found.fit(table, Y).best_estimator_ is not None


@needs_diffprivlib
def test_a_row_that_is_no_number_does_not_fail_every_run_by_its_conversion():
    rows = X.tolist()
    rows[3][1] = "SECRET"
    assert search(logistic(), {}).fit(rows, Y).best_estimator_ is not None


@needs_diffprivlib
def test_infinite_rows_are_rows_of_zeros():
    table = X.copy()
    table[3], zeroed = np.inf, X.copy()
    zeroed[3] = 0.0
    weights = [
        KnownClasses(logistic(random_state=1), [0, 1]).fit(each, Y).model.coef_.tolist() for each in (table, zeroed)
    ]
    assert weights[0] == weights[1]


@needs_diffprivlib
def test_why_long_rows_are_refused():
    """The exact privacy loss of diffprivlib's logistic regression on one row of length 10: above its epsilon.

    One weight, one row, C = 1, no intercept. The weight w solves b = -((1/C + delta) w + l'(w)), and b has the density
    exp(-|b|/scale)/(2 scale), so w has that density times the slope of b; replacing (10, 1) by the row 0 changes both.
    """
    spy, length, epsilon = _Spy(1), 10.0, 1.0
    mechanism = Vector(
        epsilon=epsilon,
        dimension=1,
        alpha=1.0,
        function_sensitivity=0.25,
        data_sensitivity=length,
        n=1,
        random_state=spy,
    )
    gradient = mechanism.randomise(lambda w: (0.0, np.zeros(1)))
    delta = (gradient(np.ones(1))[1] - gradient(np.zeros(1))[1])[0]
    w = np.linspace(-1.0, 1.0, 2001)
    p = expit(length * w)
    weight, slope = (1.0 + delta) * w, 1.0 + delta
    with_row = -np.abs(weight + (p - 1.0) * length) / spy.scale + np.log(slope + p * (1.0 - p) * length**2)
    without = -np.abs(weight) / spy.scale + np.log(slope)
    assert np.max(with_row - without) > 1.2 * epsilon
