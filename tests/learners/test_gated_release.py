"""The gated release: how often it withholds, what each outcome costs, and the error that one row can move.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022), section 6, by hand or by integration.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpselect.accounting.stopping.gate import logistic_error_shift
from dpselect.learners import GatedLogisticRegression, GatedRelease, OutputPerturbationClassifier
from dpselect.learners.gated_release import _ERROR_STEP, _HeldOut, _score_margin
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source

GATE = {"training": pure_dp(epsilon=1.0), "test_epsilon": 0.5, "test_shift": 0.01, "train_shift": 0.004}


@pytest.mark.full
@pytest.mark.parametrize(("train_shift", "unit"), [(0.004, 0.01), (0.02, 0.02)])
@pytest.mark.parametrize(("scales", "withheld"), [(0.0, 0.5), (math.log(10), 0.95)])
def test_how_often_a_gate_withholds(scales, withheld, train_shift, unit):
    """Fact 20, and `t` itself: a binomial test of 1200 runs at 1e-6, which detects a probability off by 0.08."""
    source = keyed_source(5)
    gate = GatedRelease(**{**GATE, "train_shift": train_shift, "max_error": 0.3})
    found = [gate(lambda _: "model", lambda _: 0.3 + scales * unit / 0.5, random=source).value for _ in range(1200)]
    assert stats.binomtest(found.count(None), 1200, withheld).pvalue > 1e-6


def test_limits_of_a_gate():
    """Fact 27: with a threshold far above every error the model always leaves; what is not a number never passes."""
    for error, value in ((2.0, "model"), (math.nan, None), (math.inf, None), (1e300, None)):
        release = GatedRelease(max_error=10.0, **GATE)(lambda _: "model", lambda _, e=error: e)
        assert release.value == value
        assert release.realised.epsilon(0) == pytest.approx(1.0 if value else 0.5, rel=2e-6)
        assert release.guarantee.epsilon(0) == pytest.approx(1.0, rel=2e-6)


def test_the_ledger_is_charged_what_outcome(tmp_path):
    """Retries until one is good: each failure costs the test only, and the supremum must fit each time."""
    budget = Ledger.open(tmp_path / "budget.db").create_budget("rows", epsilon=2, delta=0)
    errors = iter([5.0, 5.0, -5.0])
    values = []
    for _ in range(3):
        release = GatedRelease(max_error=0.3, **GATE)(lambda _: "model", lambda _: next(errors), spender=budget)
        values.append(release.value)
    assert values == [None, None, "model"]
    assert float(budget.spent().epsilon) == pytest.approx(2.0, rel=1e-5)
    assert release.receipt.charged["epsilon"] == 1.0


@pytest.mark.parametrize("where", ["train", "error"])
def test_a_run_that_fails_releases_nothing_at_the_price_of_a_model(tmp_path, where):
    """A neighbour need not fail, so the small price of what the test withholds does not cover it."""
    budget = Ledger.open(tmp_path / "budget.db").create_budget("rows", epsilon=2, delta=0)

    def fail(_):
        raise RuntimeError("lost")

    parts = {"train": lambda _: "model", "error": lambda _: 0.0, where: fail}
    release = GatedRelease(max_error=1.0, **GATE)(parts["train"], parts["error"], spender=budget)
    assert release.value is None
    assert release.receipt.charged["epsilon"] == 1.0
    assert budget.spent().epsilon == 1
    refused = Ledger.open(tmp_path / "other.db").create_budget("rows", epsilon="0.9", delta=0)
    with pytest.raises(RuntimeError, match="nothing was charged"):
        GatedRelease(max_error=1.0, **GATE)(fail, fail, spender=refused)


def rows(seed, count=60):
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 3))
    return X, (X[:, 0] + 0.3 * random.normal(size=count) > 0).astype(int)


PUBLIC = {"classes": [0, 1], "nominal_rows": 60}


@pytest.mark.parametrize("adjacency", ["add_or_remove_one", "replace_one"])
def test_neighbours_move_the_error_by_no_more_than_is_charged(adjacency):
    """The coupling, on real fits: the same noise, one training row more, fewer or changed; and one test row."""
    X, y = rows(1)
    model = OutputPerturbationClassifier(
        epsilon=1.0, regularization=0.02, intercept_share=0.0, adjacency=adjacency, **PUBLIC
    )
    shift = logistic_error_shift(_score_margin(model, 4)) + _ERROR_STEP
    held_out = _HeldOut(*rows(2), np.array([0, 1]), 60, 1.0, True)
    extreme = np.array([[-9.0, 9.0, 9.0]])
    neighbours = {
        "add_or_remove_one": [(X[1:], y[1:]), (X[:-1], y[:-1]), (np.vstack([X, extreme]), np.append(y, 1))],
        "replace_one": [(np.vstack([X[1:], s * extreme]), np.append(y[1:], c)) for s in (1, -1) for c in (0, 1)],
    }[adjacency]
    largest = 0.0
    for key, (X2, y2) in itertools.product(range(4), neighbours):
        errors = []
        for table in ((X, y), (X2, y2)):
            model.random = keyed_source(key)
            errors.append(held_out(model.fit(*table)))
        largest = max(largest, abs(errors[0] - errors[1]))
    assert 0.0 < largest <= shift

    T, t = rows(2)
    model.random = keyed_source(1)
    model.fit(X, y)
    one = held_out(model)
    for kept in (slice(1, None), slice(0, -1), slice(0, 59)):
        other = _HeldOut(T[kept], t[kept], np.array([0, 1]), 60, 1.0, True)(model)
        assert abs(one - other) <= 2 / 60
    flipped = _HeldOut(T, np.append(1 - t[:1], t[1:]), np.array([0, 1]), 60, 1.0, True)(model)
    assert 0.0 < abs(one - flipped) <= 2 / 60


def test_the_error_counts_what_is_missing_as_wrong():
    X, y = rows(3)
    model = OutputPerturbationClassifier(epsilon=1e6, **PUBLIC, random=keyed_source(1)).fit(X, y)

    def error(X, y, places):
        return _HeldOut(X, np.asarray(y, dtype=object), np.array([0, 1]), places, 1.0, True)(model)

    known = error(X, y, 60)
    wrong = 2 * np.mean(model.predict_proba(X)[np.arange(60), 1 - y])
    assert known == pytest.approx(wrong, abs=1e-6)  # weights are rounded before they meet the rows
    assert error(X, y, 120) == pytest.approx((known + 2) / 2, abs=1e-8)
    assert error(X, [*y[:-1], "?"], 60) >= known * 59 / 60
    assert error(X[:0], y[:0], 60) == 2.0
    assert error(np.vstack([X, X]), np.append(y, 1 - y), 60) == known


def test_a_gated_logistic_regression(tmp_path):
    X, y = rows(4, 4000)
    budget = Ledger.open(tmp_path / "budget.db").create_budget("rows", epsilon=3, delta=0)
    model = OutputPerturbationClassifier(epsilon=1.0, classes=[0, 1], nominal_rows=3000)
    gate = {"model": model, "features": 3, "nominal_test_rows": 1000, "test_epsilon": 0.25}
    tables = (X[:3000], y[:3000], X[3000:], y[3000:])
    source = keyed_source(6)
    bad = GatedLogisticRegression(max_error=0.2, **gate)(*tables, spender=budget, random=source)
    assert bad.value is None
    good = GatedLogisticRegression(max_error=1.5, **gate)(*tables, spender=budget, random=source)
    assert good.value.score(X, y) > 0.9
    assert good.replayable
    assert good.guarantee.epsilon(0) == 1.0
    assert float(budget.spent().epsilon) == pytest.approx(1.25, rel=1e-5)


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"classes": [0, 1, 2]}, "classes"),
        ({"epsilon": 0}, "epsilon"),
        ({"test_epsilon": 0}, "test_epsilon"),
        ({"nominal_test_rows": 0}, "nominal_test_rows"),
        ({"max_error": math.nan}, "max_error"),
        ({"regularization": 0}, "regularization"),
        ({"nominal_rows": None}, "nominal_rows"),
        ({"classes": None}, "classes"),
        ({"features": 0}, "features"),
        ({"intercept_share": 0.2}, "intercept_share"),
    ],
)
def test_wrong_arguments_are_named(changed, named):
    """Before there is data."""
    gate = {"features": 3, "nominal_test_rows": 60, "test_epsilon": 0.1, "max_error": 1.0}
    of_model = {name: value for name, value in changed.items() if name not in gate}
    model = OutputPerturbationClassifier(**{**PUBLIC, "epsilon": 1.0, **of_model})
    of_gate = {name: value for name, value in changed.items() if name in gate}
    with pytest.raises(ValueError, match=named):
        GatedLogisticRegression(model=model, **{**gate, **of_gate})


def test_its_model_has_no_chosen_intercept():
    """A choice breaks the coupling by which the error is charged: equal noise, and the minimisers near each other."""
    model = OutputPerturbationClassifier(epsilon=9.0, regularization=0.02, **PUBLIC)
    gate = GatedLogisticRegression(model=model, features=3, nominal_test_rows=60, test_epsilon=9.0, max_error=2.0)
    trained = gate._trained(*rows(1), keyed_source(5))
    model.set_params(intercept_share=0.0, random=keyed_source(5)).fit(*rows(1))
    assert np.array_equal(trained.weights_[0], model.weights_[0])


@pytest.mark.parametrize("name", ["X", "X_test"])
def test_tables_have_the_columns_that_were_declared(name):
    X, y = rows(1)
    model = OutputPerturbationClassifier(epsilon=1.0, **PUBLIC)
    gate = GatedLogisticRegression(model=model, features=3, nominal_test_rows=60, test_epsilon=0.1, max_error=1.0)
    tables = {"X": X, "X_test": X, name: X[:, :2]}
    with pytest.raises(ValueError, match=f"^{name} must"):
        gate(tables["X"], y, tables["X_test"], y)
