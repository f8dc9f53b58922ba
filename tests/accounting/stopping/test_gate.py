"""The gate: its constants, exact audits on finite mechanisms, wrong gates that must be caught, and the run itself.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022), section 6, by hand or by integration.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from dpselect.accounting.stopping.gate import gated, logistic_error_shift, noise_unit, released_or_none
from dpselect.errors import ArgumentError
from dpselect.learners import GatedLogisticRegression, GatedRelease, OutputPerturbationClassifier
from dpselect.learners.gated import _ERROR_STEP, _HeldOut, _score_margin
from dpselect.learners.output_perturbation import _add_spherical_noise
from dpselect.ledger import Ledger
from dpselect.privacy import OutputGuarantee, approximate_dp, pure_dp
from dpselect.privacy.output.oracle import satisfies
from dpselect.randomness import keyed_source

ROUNDING = 1e-12  # sums of a few dozen masses


# ---- constants ------------------------------------------------------------------------------------------------------


def paper_unit(rows):
    return noise_unit(train_shift=logistic_error_shift(2 / (0.7 * rows), bound="paper"), test_shift=2 / (0.3 * rows))


@pytest.mark.parametrize(
    ("rows", "spent", "percentile"),
    [
        (100, 1.0, 0.153506),
        (100, 0.1, 1.53506),
        (1000, 0.1, 0.153506),
        (10**4, 1.0, 1.53506e-3),
        (10**5, 0.1, 1.53506e-3),
    ],
)
def test_the_noise_of_figure_2(rows, spent, percentile):
    """Regularisation 1: the 95th percentile of the noise is a/spent log 10, and the test rows decide from 10 on."""
    assert paper_unit(rows) / spent * math.log(10) == pytest.approx(percentile, rel=1e-5)
    assert paper_unit(9.498) > 2 / (0.3 * 9.498)
    assert paper_unit(9.5) == 2 / (0.3 * 9.5)


@pytest.mark.parametrize(
    ("rows", "regularization", "paper", "tight"),
    [
        (1000, 1.0, 0.00666666667, 0.00666666667),
        (1000, 0.1, 0.0579670141, 0.0142854713),
        (1000, 0.01, 0.661424395, 0.142614683),
        (10000, 0.01, 0.0579670141, 0.0142854713),
    ],
)
def test_the_noise_of_the_test(rows, regularization, paper, tight):
    """Fact 19: 70 % of the rows for training, one row replaced."""
    train, test = round(0.7 * rows), round(0.3 * rows)
    for bound, known in (("paper", paper), ("tight", tight)):
        shift = logistic_error_shift(2 / (train * regularization), bound=bound)
        assert noise_unit(train_shift=shift, test_shift=2 / test) == pytest.approx(known, rel=5e-9)
    assert logistic_error_shift(2 / 700, bound="paper") == pytest.approx(0.00572245676, rel=1e-8)


@given(margin=st.floats(1e-6, 20.0))
def test_the_shift_of_the_logistic_error_is_attained_and_not_exceeded(margin):
    u = np.linspace(-30.0, 30.0, 4001)
    moved = np.abs(np.tanh((u + margin) / 2) - np.tanh(u / 2))
    at_middle = math.tanh(margin / 4) * 2
    tight = logistic_error_shift(margin)
    assert moved.max() <= tight * (1 + 1e-12) + 1e-15
    assert at_middle <= tight <= at_middle * (1 + 1e-12)
    assert tight <= logistic_error_shift(margin, bound="paper") <= 2.0


def test_a_margin_below_zero_moves_nothing_and_is_refused():
    with pytest.raises(ArgumentError, match="margin"):
        logistic_error_shift(-0.5)


def test_the_price_of_the_paper():
    """Facts 21 and 22, Theorem 17 and Corollary 18."""
    prices = gated(pure_dp(epsilon=1.0), test_epsilon=0.1, test_shift=0.01, train_shift=0.003).epsilons
    assert dict(prices) == {"released": 1.0, "none": 0.1}
    for failing, charge in ((0.1, 0.91), (0.5, 0.55), (0.9, 0.19)):
        assert failing * prices["none"] + (1 - failing) * prices["released"] == pytest.approx(charge)
    shift = logistic_error_shift(2 / 7, bound="paper")
    prices = gated(pure_dp(epsilon=0.001), test_epsilon=1.0, test_shift=2 / 300, train_shift=shift).epsilons
    assert prices["released"] == prices["none"] == pytest.approx(0.0100792573, rel=1e-8)


def test_prices_without_coupling_and_on_the_same_rows():
    with_model = {"test_epsilon": 0.2, "test_shift": 0.02}
    assert dict(gated(pure_dp(epsilon=1.0), **with_model).epsilons) == {"released": 1.0, "none": 1.0}
    same = gated(pure_dp(epsilon=1.0), **with_model, train_shift=0.04, disjoint=False)
    assert same.price("released") == pytest.approx(1.1)
    assert same.price("none") == pytest.approx(0.3)
    loose = gated(approximate_dp(epsilon=1.0, delta=1e-6), **with_model, train_shift=0.01, delta=1e-6)
    assert (loose.price("none"), loose.delta) == (0.2, 1e-6)
    with pytest.raises(ArgumentError, match="training"):
        gated(approximate_dp(epsilon=1.0, delta=1e-6), **with_model)


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


# ---- exact audits ---------------------------------------------------------------------------------------------------


def below(limit, scale):
    """P(X <= limit) for the discrete Laplace law of this scale."""
    ratio = math.exp(-1 / scale)
    return 1 - ratio ** (limit + 1) / (1 + ratio) if limit >= 0 else ratio**-limit / (1 + ratio)


def gate_law(models, scores, scale, limit):
    """The law of a gate's outputs: a model where the test passes, None otherwise."""
    law = {model: p * below(limit - scores[model], scale) for model, p in models.items()}
    return {**law, None: 1 - math.fsum(law.values())}


def trained(centre, epsilon, size=9):
    """A number plus discrete Laplace noise, cut off at both ends: epsilon-private for centres that are 1 apart."""
    inside = {m: below(m - centre, 1 / epsilon) - below(m - 1 - centre, 1 / epsilon) for m in range(1, size - 1)}
    return {0: below(-centre, 1 / epsilon), **inside, size - 1: 1 - below(size - 2 - centre, 1 / epsilon)}


SIZE = 9


@pytest.mark.full
@pytest.mark.theorem("Hartmann et al. 2022, Theorem 17", exact=True)
@given(
    epsilon=st.sampled_from([0.2, 0.7, 1.5]),
    spent=st.sampled_from([0.1, 0.5, 2.0]),
    slope=st.integers(0, 3),
    test=st.integers(1, 3),
    limit=st.integers(-4, 12),
    moves=st.lists(st.integers(-3, 3), min_size=SIZE, max_size=SIZE),
    walk=st.lists(st.integers(-3, 3), min_size=SIZE, max_size=SIZE),
    centre=st.integers(0, SIZE - 2),
    disjoint=st.booleans(),
)
@settings(max_examples=200)
def test_no_gate_leaks_more_than_its_cells(epsilon, spent, slope, test, limit, moves, walk, centre, disjoint):
    """The same noise couples two trainings, and the score is Lipschitz: exact laws, both orders.

    Disjoint: a training row moves the centre by one, or a test row every model's score by `test`; else both at once.
    """
    scores = np.cumsum(np.clip(walk, -slope, slope)) + 2
    other = scores + np.clip(moves, -test, test)
    unit = max(slope, test)
    price = gated(pure_dp(epsilon=epsilon), test_epsilon=spent, test_shift=test, train_shift=slope, disjoint=disjoint)
    ours = gate_law(trained(centre, epsilon), scores, unit / spent, limit)
    if disjoint:
        neighbours = [
            gate_law(trained(centre + 1, epsilon), scores, unit / spent, limit),
            gate_law(trained(centre, epsilon), other, unit / spent, limit),
        ]
    else:
        neighbours = [gate_law(trained(centre + 1, epsilon), other, unit / spent, limit)]
    assert satisfies(price, [(ours, theirs) for theirs in neighbours], tolerance=ROUNDING)


def test_free_refunds_are_caught():
    """Giving the price back after looking, or without a coupling: None carries more than it is charged."""
    scores = np.arange(SIZE) * 3
    law = [gate_law(trained(c, 1.0), scores, 3 / 0.5, 9) for c in (3, 4)]
    honest = gated(pure_dp(epsilon=1.0), test_epsilon=0.5, test_shift=1.0, train_shift=3.0)
    assert satisfies(honest, [(law[0], law[1])], tolerance=ROUNDING)
    for wrong in (0.0, 0.05):
        refund = OutputGuarantee(cell=released_or_none, epsilons={"released": 1.0, "none": wrong})
        assert not satisfies(refund, [(law[0], law[1])])
    # a score that jumps with the model, though a test row moves it by 1 only: there is no coupling
    jumping = np.where(np.arange(SIZE) > 3, 50, 0)
    law = [gate_law(trained(c, 1.0), jumping, 1 / 0.1, 25) for c in (3, 4)]
    assert not satisfies(
        gated(pure_dp(epsilon=1.0), test_epsilon=0.1, test_shift=1.0, train_shift=1.0), [(law[0], law[1])]
    )
    assert satisfies(gated(pure_dp(epsilon=1.0), test_epsilon=0.1, test_shift=1.0), [(law[0], law[1])])


# ---- the run --------------------------------------------------------------------------------------------------------

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
    model = OutputPerturbationClassifier(epsilon=1.0, regularization=0.02, adjacency=adjacency, **PUBLIC)
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


@pytest.mark.parametrize("name", ["X", "X_test"])
def test_tables_have_the_columns_that_were_declared(name):
    X, y = rows(1)
    model = OutputPerturbationClassifier(epsilon=1.0, **PUBLIC)
    gate = GatedLogisticRegression(model=model, features=3, nominal_test_rows=60, test_epsilon=0.1, max_error=1.0)
    tables = {"X": X, "X_test": X, name: X[:, :2]}
    with pytest.raises(ValueError, match=f"^{name} must"):
        gate(tables["X"], y, tables["X_test"], y)
