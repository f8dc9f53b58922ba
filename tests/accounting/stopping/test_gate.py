"""The gate: its constants, exact audits on finite mechanisms, and wrong gates that must be caught.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022), section 6, by hand or by integration.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpselect.accounting.stopping.gate import gated, logistic_error_shift, noise_unit, released_or_none
from dpselect.errors import ArgumentError
from dpselect.privacy import OutputGuarantee, approximate_dp, pure_dp
from dpselect.privacy.output.oracle import satisfies

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
