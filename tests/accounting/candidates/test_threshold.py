"""Threshold stopping: the two-cut theorem against brute force, exact forms, the paper's theorem, truncations."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest

from dpselect.accounting.candidates.threshold import liu_talwar_theorem_3_1, threshold_stopping
from dpselect.accounting.optimal.first_pure import pure_first
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.privacy import Guarantee, approximate_dp, compose, dp_sgd, gaussian, laplace, pure_dp
from dpselect.repetitions import Geometric
from tests.accounting.candidates.threshold_cases import brute_force


@pytest.mark.theorem("docs/theory/optimal-selection.md, Theorem 2", exact=True, sharp=True)
def test_a_bound_one_per_cent_lower_is_caught() -> None:
    """Randomised response at 1, stop probability 0.1, epsilon 1.5: an explicit set attains 0.0565873.

    Three outputs: all of the worse answer is acceptable, so is 0.0294 of the better one, the rest is rejected.
    """
    better = math.e / (1.0 + math.e)
    p = np.array([1.0 - better, 0.97059655 * better, 0.02940345 * better])
    q = np.array([better, 0.97059655 * (1.0 - better), 0.02940345 * (1.0 - better)])
    attained = brute_force(p, q, Geometric(gamma=0.1), 1.5)
    bound = threshold_stopping(pure_dp(epsilon=1.0), stop_probability=0.1).delta(1.5)
    assert attained == pytest.approx(0.056587359957, rel=1e-7)
    assert 0.99 * bound < attained <= bound


# ---- pure bases: Liu, Talwar 2019, and the exact laws ----


def exact_pure(epsilon: float, stop: float) -> float:
    return epsilon + math.log((math.exp(epsilon) + stop) / (1.0 + stop * math.exp(epsilon)))


@pytest.mark.parametrize("stop", [0.5, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 20.0])
def test_pure_bases_have_the_exact_form(epsilon: float, stop: float) -> None:
    """epsilon + log((e^epsilon + g) / (1 + g e^epsilon)), below 2 epsilon: the best constant for this search."""
    exact = exact_pure(epsilon, stop)
    total = threshold_stopping(pure_dp(epsilon=epsilon), stop_probability=stop).epsilon(delta=0.0)
    assert exact * (1.0 - 1e-15) <= total <= exact * (1.0 + 1e-11)


@pytest.mark.parametrize(
    ("stop", "limit", "value"),
    [
        (0.1, 2, 1.79567204),
        (0.1, 4, 2.23085435),
        (0.1, 5, 2.14738704),
        (0.1, 7, 1.97363920),
        (0.1, 10, 1.85007610),
        (0.1, 20, 1.79652203),
        (0.1, 30, 1.79568497),
        (0.01, 5, 3.78354355),
        (0.001, 7, 5.48709576),
    ],
)
def test_a_cap_costs_more_than_the_theorem(stop: float, limit: int, value: float) -> None:
    """The search stopped at a limit below the one that Theorem 3.1 asks for can cost more than 2 epsilon."""
    base = pure_dp(epsilon=1.0)
    total = threshold_stopping(base, stop_probability=stop, max_runs=limit, truncation="capped")
    assert total.epsilon(delta=0.0) == pytest.approx(value, rel=5e-9)


@pytest.mark.parametrize(("limit", "value"), [(2, 1.28882249), (5, 1.66490942), (10, 1.78035235), (30, 1.79566852)])
def test_a_conditioned_limit_is_free(limit: int, value: float) -> None:
    """The largest of the log ratios of an output and of "none", never above the search without a limit."""
    total = threshold_stopping(pure_dp(epsilon=1.0), stop_probability=0.1, max_runs=limit)
    assert total.epsilon(delta=0.0) == pytest.approx(value, rel=5e-9)
    assert value < exact_pure(1.0, 0.1)


def test_approximate_bases_need_no_root_of_delta() -> None:
    """An (epsilon, d)-private base gives the pure cost outside mass d / (g + d - g d)."""
    stop, d = 0.1, 1e-6
    total = threshold_stopping(approximate_dp(epsilon=1.0, delta=d), stop_probability=stop)
    failure = d / (stop + d - stop * d)
    assert total.failure == pytest.approx(failure, rel=1e-9)
    assert total.epsilon(delta=failure * (1.0 + 1e-9)) <= exact_pure(1.0, stop)
    assert total.epsilon(delta=0.9 * failure) == math.inf
    lower, upper = total.epsilon_bracket(delta=1e-4)
    assert 1.0 < lower <= upper <= min(1.001 * lower, exact_pure(1.0, stop))


# ---- the published theorem ----


def test_the_papers_theorem() -> None:
    """Liu, Talwar 2019, Theorem 3.1: 2 epsilon, plus epsilon_0 under a cap that is long enough."""
    base = pure_dp(epsilon=0.5)
    assert threshold_stopping(base, stop_probability=0.1, bound="paper").epsilon(delta=0.0) == 1.0
    total = threshold_stopping(base, stop_probability=0.1, max_runs=60, truncation="capped", bound="paper")
    assert total.epsilon(delta=0.0) == pytest.approx(1.0 + 2.0 * math.exp(-6.0))
    with pytest.raises(BoundUnavailableError, match="max_runs"):
        threshold_stopping(base, stop_probability=0.1, max_runs=5, truncation="capped", bound="paper")
    with pytest.raises(BoundUnavailableError, match="pure"):
        threshold_stopping(gaussian(noise_multiplier=1.0), stop_probability=0.1, bound="paper")
    rough = liu_talwar_theorem_3_1(approximate_dp(epsilon=0.5, delta=1e-6), stop_probability=0.1)
    assert rough.failure == pytest.approx(3.0 * math.e * 1e-6 / 0.1)


@pytest.mark.cases(1)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.0])
@pytest.mark.parametrize("stop", [0.3, 0.1, 0.01])
def test_the_paper_is_never_below_the_optimum(epsilon: float, stop: float) -> None:
    """Without a cap, and with the shortest caps that the theorem allows for epsilon_0 = 1, 0.5 and 0.1."""
    base = pure_dp(epsilon=epsilon)
    assert pure_first(Geometric(gamma=stop), epsilon) < 2.0 * epsilon
    for slack in (1.0, 0.5, 0.1):
        cap = math.ceil(max(math.log(2.0 / slack) / stop, 1.0 + 1.0 / (math.e * stop)))
        arguments = {"stop_probability": stop, "max_runs": cap, "truncation": "capped"}
        paper = threshold_stopping(base, bound="paper", **arguments).epsilon(delta=0.0)
        assert threshold_stopping(base, **arguments).epsilon(delta=0.0) <= paper
    for other in (base, approximate_dp(epsilon=epsilon, delta=1e-9)):
        paper = threshold_stopping(other, stop_probability=stop, bound="paper").epsilon(delta=1e-3)
        assert threshold_stopping(other, stop_probability=stop).epsilon(delta=1e-3) <= paper


# ---- delta above zero ----

BASES = {
    "gaussian": gaussian(noise_multiplier=4.0),
    "laplace": laplace(scale=1.0),
    "pure": pure_dp(epsilon=1.0),
    "approximate": approximate_dp(epsilon=0.5, delta=1e-10),
    "dp-sgd": dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=10_000),
}
LIMITS = [(None, "conditioned"), (20, "conditioned"), (20, "capped")]


def check_bracket(base: Guarantee, stop: float, limit: int | None, truncation: str, delta: float) -> None:
    total = threshold_stopping(base, stop_probability=stop, max_runs=limit, truncation=truncation)
    lower, upper = total.epsilon_bracket(delta=delta)
    assert 0.0 < lower <= upper <= 1.002 * lower
    assert upper <= total.pure_epsilon
    assert lower > 0.9 * base.epsilon_bracket(delta=delta)[0], "a single try can be had by accepting everything"


@pytest.mark.cases(1)
@pytest.mark.parametrize("name", ["gaussian", "laplace", "pure", "approximate"])
@pytest.mark.parametrize(("limit", "truncation"), LIMITS)
def test_brackets_are_narrow(name: str, limit: int | None, truncation: str) -> None:
    """Two per mille of epsilon, at most."""
    check_bracket(BASES[name], 0.01, limit, truncation, 1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BASES))
@pytest.mark.parametrize("stop", [0.1, 0.01, 0.001])
@pytest.mark.parametrize(("limit", "truncation"), LIMITS)
def test_brackets_are_narrow_everywhere(name: str, stop: float, limit: int | None, truncation: str) -> None:
    for delta in (1e-2, 1e-6):
        check_bracket(BASES[name], stop, limit, truncation, delta)


@pytest.mark.full
def test_capped_and_conditioned_differ_at_delta_above_zero() -> None:
    """Ten failures in a row tell more than 2 epsilon under a cap; conditioned, the limit makes the search cheaper."""
    base = pure_dp(epsilon=0.5)
    arguments = {"stop_probability": 0.01, "max_runs": 10}
    free = threshold_stopping(base, stop_probability=0.01)
    hard = threshold_stopping(base, truncation="capped", **arguments)
    conditioned = threshold_stopping(base, **arguments)
    assert hard.epsilon_bracket(delta=1e-5)[0] > 1.0
    assert conditioned.epsilon(delta=1e-5) < free.epsilon_bracket(delta=1e-5)[0] < 1.0


@pytest.mark.full
def test_the_profile_falls_and_results_compose() -> None:
    total = threshold_stopping(gaussian(noise_multiplier=4.0), stop_probability=0.05)
    deltas = total.delta(np.linspace(0.0, 2.0, 9))
    assert np.all(np.diff(deltas) <= 0.0)
    assert np.all((deltas >= 0.0) & (deltas <= 1.0))
    copy = pickle.loads(pickle.dumps(total))
    assert copy.epsilon(delta=1e-6) == total.epsilon(delta=1e-6)


@pytest.mark.slow
def test_results_compose() -> None:
    total = threshold_stopping(gaussian(noise_multiplier=4.0), stop_probability=0.05)
    again = compose(pickle.loads(pickle.dumps(total)), gaussian(noise_multiplier=4.0))
    alone, once = total.epsilon(delta=1e-6), gaussian(noise_multiplier=4.0).epsilon(delta=1e-6)
    assert alone < again.epsilon(delta=1e-6) < alone + once


def test_bad_arguments() -> None:
    for wrong in ({"stop_probability": 0.0}, {"stop_probability": 1.0}, {"stop_probability": 0.1, "max_runs": 0}):
        with pytest.raises(ArgumentError):
            threshold_stopping(laplace(scale=1.0), **wrong)
    with pytest.raises(ArgumentError, match="truncation"):
        threshold_stopping(laplace(scale=1.0), stop_probability=0.1, truncation="hard")
    with pytest.raises(BoundUnavailableError, match="optimal"):
        threshold_stopping(laplace(scale=1.0), stop_probability=0.1, bound="exact")
