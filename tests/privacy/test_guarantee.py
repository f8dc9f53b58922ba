"""Golden values and extremes of guarantees, what they refuse, and guarantees by output."""

from __future__ import annotations

import json
import pickle
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import (
    Adjacency,
    Guarantee,
    OutputGuarantee,
    approximate_dp,
    compose,
    dp_sgd,
    from_profile,
    gaussian,
    laplace,
    pure_dp,
    renyi_dp,
    worst_of,
    zcdp,
)

INFINITY = float("inf")


# What the two ends of delta and epsilon mean

ZOO = {
    "pure": pure_dp(epsilon=0.7),
    "pure 0": pure_dp(epsilon=0),
    "pure 1e4": pure_dp(epsilon=1e4),
    "approximate": approximate_dp(epsilon=1.0, delta=1e-6),
    "approximate 0": approximate_dp(epsilon=0.0, delta=0.3),
    "zcdp": zcdp(rho=0.1),
    "zcdp tiny": zcdp(rho=1e-8),
    "zcdp huge": zcdp(rho=1e3),
    "renyi": renyi_dp(orders=[2, 8, 64], epsilons=[0.1, 0.4, INFINITY]),
    "laplace": laplace(scale=2),
    "laplace 1e-4": laplace(scale=1e-4),
    "gaussian": gaussian(noise_multiplier=1),
    "gaussian 1e-3": gaussian(noise_multiplier=1e-3),
    "gaussian 1e6": gaussian(noise_multiplier=1e6),
    "profile": from_profile([0.0, 1.0, 2.0], [0.3, 1e-3, 0.0]),
    "dp-sgd": dp_sgd(noise_multiplier=2, sampling_rate=0.1, steps=3),
    "dp-sgd 1e-6": dp_sgd(noise_multiplier=1, sampling_rate=1e-6, steps=10),
    "dp-sgd 1e-3": dp_sgd(noise_multiplier=1e-3, sampling_rate=0.1, steps=10),
    "composed": compose(zcdp(rho=0.01), approximate_dp(epsilon=0.2, delta=1e-7), laplace(scale=5)),
    "worst": worst_of(gaussian(noise_multiplier=3), approximate_dp(epsilon=0.2, delta=1e-7)),
}
PURE = {"pure", "pure 0", "pure 1e4", "laplace", "laplace 1e-4", "profile"}
zoo = pytest.mark.parametrize("name", ZOO)


@zoo
def test_delta_zero_is_finite_for_pure_mechanisms_only(name):
    epsilon = ZOO[name].epsilon(delta=0)
    assert (epsilon < INFINITY) == (name in PURE)
    assert (ZOO[name].delta(1e5) == 0.0) == (name in PURE)
    if name not in PURE:
        assert ZOO[name].delta(INFINITY) > 0.0


@pytest.mark.cases(15)
@zoo
def test_extremes_are_numbers_in_range_without_warnings(name):
    g = ZOO[name]
    assert g.epsilon(delta=1) == 0.0
    assert g.epsilon(delta=1 - 2**-53) >= 0.0
    with np.errstate(all="raise", under="ignore"):
        for delta in (0.0, 5e-324, 1e-300, 1e-100, 1e-12, 1e-6, 0.1, 0.9):
            lower, upper = g.epsilon_bracket(delta=delta)
            assert 0.0 <= lower <= upper
        deltas = g.delta(np.array([0.0, 1e-300, 1e-8, 0.1, 1.0, 10.0, 700.0, 710.0, 1e4, 1e308, INFINITY]))
    assert np.all((deltas >= 0.0) & (deltas <= 1.0))
    for order in (1 + 1e-12, 1.5, 2, 1e6, 1e300, INFINITY):
        assert g.renyi(order) >= 0.0


@zoo
def test_descriptions_are_strict_json(name):
    for delta in (0.0, 1e-6, 1.0):
        text = json.dumps(ZOO[name].describe(delta=delta), allow_nan=False)
        told = json.loads(text)
        epsilon = ZOO[name].epsilon(delta=delta)
        assert told["epsilon"] == (epsilon if epsilon < INFINITY else None)
        assert told["adjacency"] == "add_or_remove_one"
        assert told["delta"] == delta
        assert told["theorem"]
    assert "array" not in repr(ZOO[name])


@pytest.mark.cases(18)
@zoo
def test_pickles_after_use_give_the_same_answers(name):
    g = ZOO[name]
    g.epsilon(delta=1e-6)
    g.delta(0.5)
    again = pickle.loads(pickle.dumps(g))
    for delta in (0.0, 1e-6, 0.1):
        assert again.epsilon(delta=delta) == g.epsilon(delta=delta)
    assert again.delta(0.5) == g.delta(0.5)
    assert again.renyi(3.0) == g.renyi(3.0)
    assert again.adjacency is g.adjacency
    assert len(pickle.dumps(g)) < 10_000  # recipes travel, not distributions


def test_rounding_goes_up_where_decimal_numbers_do_not_fit():
    tenth = pure_dp(epsilon=0.1)
    assert Fraction(compose(*[tenth] * 10).epsilon(delta=0)) >= 10 * Fraction(0.1)
    assert compose(pure_dp(epsilon=0.5), pure_dp(epsilon=0.25)).epsilon(delta=0) == 0.75
    assert compose(*[approximate_dp(epsilon=1.0, delta=1e-15)] * 2).epsilon(delta=2e-15) <= 2.0
    failure = compose(*[approximate_dp(epsilon=1.0, delta=1e-3)] * 3).failure
    assert 1 - (1 - Fraction(1e-3)) ** 3 <= Fraction(failure) <= Fraction(2999e-6)


# Numbers and adjacency at the boundary


@pytest.mark.parametrize("one", [1, 1.0, Fraction(1), np.float64(1), np.int64(1), np.float32(1)])
def test_any_spelling_of_a_number(one):
    same = [
        pure_dp(epsilon=one).epsilon(delta=0),
        laplace(scale=one).epsilon(delta=0),
        from_profile([one], [0]).epsilon(delta=0),
        pure_dp(epsilon=1).epsilon(delta=one) + 1.0,
        approximate_dp(epsilon=one, delta=0).epsilon(delta=0.0),
    ]
    assert same == [1.0] * 5
    assert zcdp(rho=one).epsilon(1e-6) == zcdp(rho=1).epsilon(1e-6)
    assert gaussian(noise_multiplier=one).delta(one) == gaussian(noise_multiplier=1).delta(1.0)
    assert dp_sgd(noise_multiplier=one, sampling_rate=one, steps=one).delta(1) == dp_sgd(
        noise_multiplier=1, sampling_rate=1, steps=1
    ).delta(1)


MAKERS = {
    "epsilon": lambda v: pure_dp(epsilon=v),
    "delta": lambda v: approximate_dp(epsilon=1, delta=v),
    "rho": lambda v: zcdp(rho=v),
    "scale": lambda v: laplace(scale=v),
    "noise_multiplier": lambda v: gaussian(noise_multiplier=v),
    "sampling_rate": lambda v: dp_sgd(noise_multiplier=1, sampling_rate=v, steps=1),
    "steps": lambda v: dp_sgd(noise_multiplier=1, sampling_rate=0.1, steps=v),
    "orders": lambda v: renyi_dp(orders=[v], epsilons=[1]),
    "epsilons": lambda v: from_profile([v], [0.1]),
    "deltas": lambda v: from_profile([1], [v]),
    "order": lambda v: pure_dp(epsilon=1).renyi(v),
}


@pytest.mark.parametrize("name", MAKERS)
def test_bad_numbers_are_refused_by_name(name):
    for wrong in (True, "1", None, [1], np.True_):
        with pytest.raises(TypeError, match=name):
            MAKERS[name](wrong)
    for wrong in (float("nan"), -1, -INFINITY):
        with pytest.raises(ArgumentError, match=name):
            MAKERS[name](wrong)


@pytest.mark.parametrize("name", ["epsilon", "delta", "rho", "scale", "noise_multiplier", "sampling_rate", "steps"])
def test_infinity_is_refused(name):
    with pytest.raises(ArgumentError, match=name):
        MAKERS[name](INFINITY)


def test_zero_noise_zero_rate_zero_steps_and_order_one_are_refused():
    for name in ("scale", "noise_multiplier", "sampling_rate", "steps"):
        with pytest.raises(ArgumentError, match=name):
            MAKERS[name](0)
    for order in (1, 0.5):
        with pytest.raises(ArgumentError, match="order"):
            MAKERS["order"](order)
    with pytest.raises(ArgumentError, match="sampling_rate"):
        MAKERS["sampling_rate"](1.0000001)
    with pytest.raises(ArgumentError, match="steps"):
        MAKERS["steps"](1.5)


def test_questions_are_checked_too():
    g = gaussian(noise_multiplier=1)
    for ask in (g.epsilon, lambda d: g.epsilon_bracket(delta=d), lambda d: g.describe(delta=d)):
        for wrong in (-1e-300, 1.0000001, float("nan")):
            with pytest.raises(ArgumentError, match="delta"):
                ask(wrong)
        for wrong in (True, "0.1", None):
            with pytest.raises(TypeError, match="delta"):
                ask(wrong)
    for wrong in (-1e-300, float("nan"), np.array([0.1, -1.0]), np.array([float("nan")])):
        with pytest.raises(ArgumentError, match="epsilon"):
            g.delta(wrong)
    for wrong in (True, "1", None, [1.0, 2.0]):
        with pytest.raises(TypeError, match="epsilon"):
            g.delta(wrong)
    assert g.delta(np.array([[0.5], [1.0]])).shape == (2, 1)
    assert g.delta(np.array([0.5, 1.0])).tolist() == [g.delta(0.5), g.delta(1.0)]


def test_a_guarantee_without_statements_promises_nothing():
    nothing = Guarantee(adjacency=Adjacency.REPLACE_ONE, theorem="none")
    assert nothing.epsilon(delta=0.5) == INFINITY
    assert nothing.delta(10.0) == 1.0
    with pytest.raises(ArgumentError, match="no statement"):
        nothing.best_profile()


# Output guarantees


def parity(output):
    return output % 2


class TestOutputGuarantee:
    G = OutputGuarantee(cell=parity, epsilons={0: 0.1, 1: 2}, delta=1e-9)

    def test_worst_and_observed(self):
        assert self.G.worst().epsilon(delta=1e-9) == 2.0
        assert self.G.observed(4).epsilon(delta=1e-9) == 0.1
        assert self.G.observed(5).epsilon(delta=1e-9) == 2.0
        assert self.G.observed(4).epsilon(delta=0) == INFINITY  # delta is not refunded

    def test_it_pickles_and_does_not_change_with_the_callers_table(self):
        table = {0: 1.0}
        g = OutputGuarantee(cell=parity, epsilons=table)
        table[0] = 0.0
        assert g.worst().epsilon(delta=0) == 1.0
        with pytest.raises(TypeError):
            g.epsilons[0] = 0.0  # type: ignore[index]
        assert pickle.loads(pickle.dumps(self.G)) == self.G

    def test_adjacency_travels(self):
        g = OutputGuarantee(cell=parity, epsilons={0: 1}, adjacency="replace_one")
        assert g.worst().adjacency is Adjacency.REPLACE_ONE
        assert pickle.loads(pickle.dumps(g)).adjacency is Adjacency.REPLACE_ONE

    def test_an_unpriced_cell_is_refused_without_quoting_the_output(self):
        g = OutputGuarantee(cell=str, epsilons={"a": 1})
        with pytest.raises(ArgumentError, match="cell") as caught:
            g.observed("a secret value")
        assert "secret" not in str(caught.value)

    def test_bad_arguments(self):
        with pytest.raises(ArgumentError, match="epsilons"):
            OutputGuarantee(cell=parity, epsilons={})
        with pytest.raises(ArgumentError, match="epsilons"):
            OutputGuarantee(cell=parity, epsilons={0: -1})
        with pytest.raises(ArgumentError, match="delta"):
            OutputGuarantee(cell=parity, epsilons={0: 1}, delta=1)
        with pytest.raises(TypeError, match="cell"):
            OutputGuarantee(cell=3, epsilons={0: 1})


@pytest.mark.parametrize("name", ["profile", "lower_profile"])
def test_a_profile_of_another_class_is_refused(name):
    class Curves:
        def remove(self, epsilons):
            return np.exp(-np.asarray(epsilons))

        add = remove

    with pytest.raises(ArgumentError, match=f"{name} must be a PrivacyProfile or None"):
        Guarantee(adjacency=Adjacency.ADD_OR_REMOVE_ONE, theorem="", **{name: Curves()})
