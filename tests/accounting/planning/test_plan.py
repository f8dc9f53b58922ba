"""The planner: options that keep their promises, and are the best of those weighed."""

import pytest

from dpselect.accounting import best_of, plan
from dpselect.accounting.planning.plan import Goal, trade_off_curve
from dpselect.errors import ArgumentError, BudgetError
from dpselect.privacy import gaussian, laplace, pure_dp
from dpselect.repetitions import TruncatedNegativeBinomial
from dpselect.repetitions.by_name import families

FEW = tuple(f for f in families() if f.name in ("negative binomial, eta 1", "negative binomial, eta 0"))


def test_cheapest_for_a_quantile():
    found = plan(base=pure_dp(epsilon=1.0), delta=0.0, expected_quantile=0.8)
    assert len(found.options) == len(families()) - 1  # eta -1/2 saturates at quantile 2/3
    for option in found.options:
        assert option.law.expected_quantile() >= 0.8
        assert option.epsilon == best_of(pure_dp(epsilon=1.0), option.law).epsilon(0.0)
        assert option.utility == option.law.expected_quantile()
    assert found.best.epsilon == min(option.epsilon for option in found.options)


def test_the_smallest_law_is_the_smallest():
    """A law of the same family a hundredth smaller misses the goal."""
    found = plan(base=pure_dp(epsilon=1.0), delta=0.0, expected_quantile=0.8, families=FEW)
    law = next(o.law for o in found.options if o.family == "negative binomial, eta 1")
    smaller = TruncatedNegativeBinomial.with_mean(eta=1.0, mean=law.mean * 0.99)
    assert smaller.expected_quantile() < 0.8


def test_success_probability_as_the_goal():
    found = plan(base=pure_dp(epsilon=1.0), delta=0.0, success=(0.1, 0.5), families=FEW)
    assert all(option.law.success_probability(0.1) >= 0.5 for option in found.options)
    assert found.best.utility >= 0.5


@pytest.mark.full
def test_best_utility_within_a_total():
    base = gaussian(noise_multiplier=4.0)
    found = plan(base=base, delta=1e-6, epsilon=1.6, families=FEW)
    assert all(best_of(base, option.law).epsilon(1e-6) <= 1.6 for option in found.options)
    assert found.best.utility == max(option.utility for option in found.options)
    # the budget is used: a twentieth more runs would not fit
    law = next(o.law for o in found.options if o.family == "negative binomial, eta 1")
    larger = TruncatedNegativeBinomial.with_mean(eta=1.0, mean=law.mean * 1.06)
    assert best_of(base, larger).epsilon(1e-6) > 1.6


@pytest.mark.full
def test_limits_are_kept():
    found = plan(base=laplace(scale=1.0), delta=0.0, epsilon=2.5, mean_runs=6, runs_99=20, max_runs=25, families=FEW)
    for option in found.options:
        mean, high, limit = option.runs
        assert mean <= 6 * (1 + 1e-9)
        assert high <= 20
        assert limit is not None
        assert limit <= 25


@pytest.mark.full
def test_the_least_noise_for_a_goal():
    found = plan(
        base=lambda noise: gaussian(noise_multiplier=noise),
        delta=1e-6,
        epsilon=2.0,
        expected_quantile=0.75,
        families=FEW,
    )
    for option in found.options:
        assert option.epsilon <= 2.0
        assert option.law.expected_quantile() >= 0.75
        assert best_of(gaussian(noise_multiplier=option.noise * 0.999), option.law).epsilon(1e-6) > 2.0
    assert found.best.noise == min(option.noise for option in found.options)


@pytest.mark.full
def test_only_limits_leave_out_laws_of_negative_eta():
    found = plan(base=lambda scale: laplace(scale=scale), delta=0.0, epsilon=2.0, mean_runs=5)
    assert not any("eta -" in option.family for option in found.options)


@pytest.mark.cases(8)
@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({}, ArgumentError, "expected_quantile"),
        ({"expected_quantile": 1.0}, ArgumentError, "expected_quantile"),
        ({"expected_quantile": 0.5, "success": (0.1, 0.5)}, ArgumentError, "one of"),
        ({"success": (0.1,)}, ArgumentError, "success"),
        ({"success": (0.0, 0.5)}, ArgumentError, "success"),
        ({"expected_quantile": 0.9, "epsilon": 1.0}, ArgumentError, "leave expected_quantile out"),
        ({"expected_quantile": 0.99, "max_runs": 3}, ArgumentError, "no family"),
        ({"expected_quantile": 0.5, "mean_runs": 0.5}, ArgumentError, "mean_runs"),
        ({"epsilon": 0.5}, BudgetError, "one run costs more"),
        ({"epsilon": 2.0, "families": ()}, ArgumentError, "families"),
    ],
)
def test_goals_that_cannot_be_served(options, error, said):
    with pytest.raises(error, match=said):
        plan(base=pure_dp(epsilon=1.0), delta=0.0, **{"families": FEW, **options})


def test_a_noise_function_needs_a_total():
    with pytest.raises(ArgumentError, match="epsilon"):
        plan(base=lambda noise: laplace(scale=noise), delta=0.0, expected_quantile=0.5)
    with pytest.raises(TypeError, match="base"):
        plan(base=3.0, delta=0.0, epsilon=1.0)
    with pytest.raises(ArgumentError, match="limit on the number of runs"):
        plan(base=lambda noise: laplace(scale=noise), delta=0.0, epsilon=1.0, families=FEW)


def test_the_trade_off_curve_rises():
    points = trade_off_curve(pure_dp(epsilon=1.0), FEW[0], delta=0.0, sizes=(2.0, 4.0, 8.0), goal=Goal())
    epsilons, utilities = zip(*points, strict=True)
    assert list(epsilons) == sorted(epsilons)
    assert list(utilities) == sorted(utilities)
