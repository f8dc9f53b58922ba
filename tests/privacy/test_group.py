"""`Guarantee.of_rows`: a person with several rows, against closed forms and exact laws on finitely many outputs."""

import json
import math
import pickle
from functools import cache
from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.accounting import best_of
from dpselect.cli.app import app
from dpselect.errors import ArgumentError
from dpselect.privacy import (
    Guarantee,
    approximate_dp,
    compose,
    dp_sgd,
    from_profile,
    gaussian,
    group,
    laplace,
    pure_dp,
    renyi_dp,
    zcdp,
)
from dpselect.privacy.group import ProfileOfRows, RenyiOfRows, failure_of_rows
from dpselect.privacy.profile import epsilon_at
from dpselect.privacy.renyi import LinearRenyi
from dpselect.repetitions import Poisson

ROWS = [1, 2, 3, 5, 10, 20]
ALL_ROWS = range(1, 21)


def gaussian_delta(mu, epsilon):
    """Balle, Wang 2018, Theorem 8, in 60 digits."""
    with mp.workdps(60):
        mu, epsilon = mp.mpf(mu), mp.mpf(epsilon)
        return mp.ncdf(mu / 2 - epsilon / mu) - mp.exp(epsilon) * mp.ncdf(-mu / 2 - epsilon / mu)


def geometric_delta(epsilon0, rows, epsilon):
    """Of two-sided geometric noise, moved by `rows`, summed over its outputs in 40 digits."""
    with mp.workdps(40):
        ratio, factor = mp.exp(-mp.mpf(epsilon0)), mp.exp(mp.mpf(epsilon))
        mass = [(ratio ** abs(x), ratio ** abs(x - rows)) for x in range(-200, 200)]
        return sum(max(here - factor * there, mp.mpf(0)) for here, there in mass) * (1 - ratio) / (1 + ratio)


# Closed forms


@pytest.mark.theorem("Dong, Roth, Su 2022, Theorem 2.14", exact=True, sharp=True)
@pytest.mark.parametrize("k", ALL_ROWS)
def test_gaussian_noise_moves_k_times_as_far(k):
    noise = 1.39066
    g = gaussian(noise_multiplier=noise).of_rows(k)
    for delta in (1e-5, 1e-9):
        epsilon = g.epsilon(delta)
        assert gaussian_delta(k / mp.mpf(noise), epsilon) <= delta
        # a result 1 % smaller is refuted
        assert gaussian_delta(k / mp.mpf(noise), 0.99 * epsilon) > delta
        lower, upper = g.epsilon_bracket(delta)
        assert 0.9999 * upper < lower <= upper
    assert g.delta(30.0) == pytest.approx(float(gaussian_delta(k / mp.mpf(noise), 30)), rel=1e-9, abs=1e-299)
    assert g.renyi(4) == pytest.approx(2.0 * (k / noise) ** 2, rel=1e-12)


def test_what_the_readme_says_of_a_person_with_several_rows():
    g = gaussian(noise_multiplier=1.39066)
    assert [round(g.of_rows(k).epsilon(1e-5), 2) for k in (1, 2, 5, 10)] == [3.0, 6.71, 21.14, 55.74]
    assert g.of_rows(10).delta(30.0) == pytest.approx(0.239, abs=5e-4)


@pytest.mark.parametrize("k", ALL_ROWS)
def test_laplace_noise_has_k_times_the_epsilon(k):
    g = laplace(scale=2.0).of_rows(k)
    assert g.epsilon(0) == k / 2
    for share in (0.0, 0.3, 0.9):
        truth = -math.expm1((share - 1.0) * k / 4)
        assert truth <= g.delta(share * k / 2) <= truth * (1 + 1e-11)
    lower, upper = g.epsilon_bracket(1e-3)
    assert 0.9999 * upper < lower <= upper


@pytest.mark.parametrize("k", ALL_ROWS)
def test_pure_guarantees_have_k_times_the_epsilon_and_geometric_noise_attains_the_curve(k):
    g = pure_dp(epsilon=0.5).of_rows(k)
    assert g.epsilon(0) == k / 2
    for share in (0.0, 0.35, 0.9):
        truth = float(geometric_delta(0.5, k, share * k / 2))
        assert truth <= g.delta(share * k / 2) <= truth * (1 + 1e-9)


def test_a_product_that_is_no_double_is_rounded_up():
    epsilon = pure_dp(epsilon=0.1).of_rows(3).epsilon(0)
    with mp.workdps(40):
        assert mp.mpf(epsilon) >= 3 * mp.mpf(0.1)
    assert epsilon == pytest.approx(0.3, rel=1e-15)


@pytest.mark.theorem("Vadhan 2017, Lemma 2.2", exact=True, sharp=True)
@pytest.mark.parametrize("k", ROWS)
def test_approximate_guarantees(k):
    one = approximate_dp(epsilon=0.5, delta=1e-8)
    failure = 1e-8 * math.expm1(0.5 * k) / math.expm1(0.5)
    g = one.of_rows(k)
    assert g.epsilon(failure * (1 + 1e-11)) <= 0.5 * k
    assert g.delta(0.5 * k) <= failure * (1 + 1e-9)
    # outputs lost from every step of the chain: mass that one data set has and the one before lacks, grown by the rest
    masses = np.array([1e-8 * math.exp(0.5 * step) for step in range(k)])
    assert math.fsum(masses) > 0.99 * failure
    assert g.delta(0.5 * k) > 0.99 * math.fsum(masses)


@pytest.mark.parametrize("k", [1000, 1001, 5000])
def test_the_failure_of_very_many_rows_is_above_the_sum(k):
    with mp.workdps(40):
        exact = 1e-9 * mp.expm1(mp.mpf(0.001) * k) / mp.expm1(mp.mpf(0.001))
        assert exact <= failure_of_rows(0.001, 1e-9, k) <= 6 * exact


@pytest.mark.theorem("Bun, Steinke 2016, Proposition 1.9", exact=True, sharp=True)
@pytest.mark.theorem("Mironov 2017, Proposition 11", exact=True, sharp=True)
@pytest.mark.parametrize("k", ROWS)
def test_concentrated_guarantees_grow_with_the_square(k):
    # N(k, s^2) against N(0, s^2) attains k^2 rho
    by_chain = RenyiOfRows(LinearRenyi(0.1), k)
    for order in (1.01, 1.5, 2.0, 4.0, 16.0, 400.0):
        truth = 0.1 * k * k * order
        for found in (zcdp(rho=0.1).of_rows(k).renyi(order), float(by_chain(np.array([order]))[0])):
            assert truth * (1 - 1e-14) <= found <= truth * (1 + 1e-11)


# The best splits, where there is no closed form


@pytest.mark.parametrize("k", [2, 5, 10])
@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-12])
def test_splits_find_the_closed_form_of_gaussian_noise(k, delta):
    g = gaussian(noise_multiplier=2.0)
    found = epsilon_at(ProfileOfRows(g.profile, k, one_way=True), delta)
    assert g.of_rows(k).epsilon(delta) <= found <= g.of_rows(k).epsilon(delta) * (1 + 1e-4)


def chain(rng, length, outputs):
    """Output laws of neighbours one after another."""
    laws = [rng.dirichlet(np.ones(outputs))]
    for _ in range(length):
        law = laws[-1] * np.exp(rng.uniform(-0.6, 0.6, outputs)) + rng.choice([0.0, 1e-4], outputs)
        laws.append(law / law.sum())
    return np.array(laws)


def stick(p, q, epsilon):
    return float(np.sum(np.maximum(p - math.exp(epsilon) * q, 0.0)))


@cache
def one_row_of(seed):
    laws = chain(np.random.default_rng(seed), 4, 6)
    steps = [pair for p, q in pairwise(laws) for pair in ((p, q), (q, p))]
    epsilons = np.linspace(0.0, 1.5, 40)
    deltas = [max(stick(p, q, e) for p, q in steps) * (1 + 1e-12) for e in epsilons]
    orders = [1.1, 1.5, 2.0, 3.0, 5.0, 9.0, 17.0, 40.0]
    renyi = [
        max(math.log(float(np.sum(p**a * q ** (1 - a)))) / (a - 1) for p, q in steps) * (1 + 1e-12) for a in orders
    ]
    return laws, from_profile(epsilons, deltas), renyi_dp(orders=orders, epsilons=renyi)


@pytest.mark.parametrize("seed", range(6))
def test_no_chain_of_neighbours_exceeds_what_is_promised(seed):
    laws, by_profile, by_renyi = one_row_of(seed)
    for k in (2, 3, 4):
        some, other = by_profile.of_rows(k), by_renyi.of_rows(k)
        epsilons = np.linspace(0.0, 3.0, 7)
        limits = np.minimum(some.delta(epsilons), other.delta(epsilons)) * (1 + 1e-12)
        for first in range(len(laws) - k):
            for p, q in ((laws[first], laws[first + k]), (laws[first + k], laws[first])):
                assert all(stick(p, q, e) <= limit for e, limit in zip(epsilons, limits, strict=True))
                for order in (1.05, 1.5, 2.0, 4.0):
                    exact = math.log(float(np.sum(p**order * q ** (1 - order)))) / (order - 1)
                    assert exact <= other.renyi(order) * (1 + 1e-12)


@pytest.mark.parametrize("base", [gaussian(noise_multiplier=2.0), laplace(scale=3.0)])
def test_k_rows_are_never_cheaper_than_k_mechanisms(base):
    for delta in (1e-6, 1e-3):
        assert base.of_rows(3).epsilon(delta) >= compose(base, base, base).epsilon(delta) * (1 - 1e-6)


def test_two_sided_curves_keep_their_sides():
    g = dp_sgd(noise_multiplier=1.0, sampling_rate=0.05, steps=10)
    two = g.of_rows(2)
    assert g.epsilon(1e-5) * 2 < two.epsilon(1e-5) < math.inf
    assert two.lower_profile is None
    for epsilon in (0.5, 2.0):
        for split in (0.2, 0.5, 0.8):
            first, second = split * epsilon, (1 - split) * epsilon
            assert two.delta(epsilon) <= (g.delta(first) + math.exp(first) * g.delta(second)) * (1 + 1e-3)


def test_nothing_but_a_failure_that_grows_past_one_leaves_no_pure_statement():
    g = approximate_dp(epsilon=3.0, delta=0.1).of_rows(10)
    assert g.epsilon(0.5) == math.inf
    assert g.delta(100.0) == 1.0


def test_it_is_a_guarantee_like_another():
    g = dp_sgd(noise_multiplier=2.0, sampling_rate=0.1, steps=5).of_rows(3)
    assert isinstance(g, Guarantee)
    assert pickle.loads(pickle.dumps(g)).epsilon(1e-5) == g.epsilon(1e-5)
    assert json.loads(json.dumps(g.describe(delta=1e-5)))["terms"]["rows"] == 3
    assert g.of_rows(1) is g
    assert compose(g, g).epsilon(1e-5) > g.epsilon(1e-5)


@pytest.mark.parametrize("k", [0, -1, 1.5, "two", True, 10_001])
def test_wrong_numbers_of_rows(k):
    with pytest.raises((ArgumentError, TypeError), match="k must be"):
        pure_dp(epsilon=1).of_rows(k)


# On the command line


@pytest.mark.parametrize("law", [[], ["--repetitions", "fixed:count=1"]])
def test_account_prices_a_person_with_several_rows(law):
    asked = ["account", "--base", "gaussian:noise_multiplier=1.39066", *law, "--delta", "1e-5", "--rows", "10"]
    found = CliRunner().invoke(app, asked)
    assert found.exit_code == 0, found.output
    assert "a person with 10 rows: epsilon 55.73" in found.stdout
    printed = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert printed["rows"] == 10
    assert printed["rows_epsilon"] == pytest.approx(55.7387, abs=1e-3)


@pytest.mark.full
def test_the_work_of_many_rows_is_bounded_and_their_chain_is_as_tight(monkeypatch):
    """Steps of chains are counted: 10,000 rows took a minute, and some compositions raised."""
    one = compose(laplace(scale=200.0), pure_dp(epsilon=0.003))
    steps = []
    search = np.searchsorted
    monkeypatch.setattr(
        group.np, "searchsorted", lambda a, v, *rest, **more: steps.append(np.size(v)) or search(a, v, *rest, **more)
    )
    many = one.of_rows(10_000).profile
    epsilon = many.epsilon(0.1)
    assert sum(steps) < 2 * 2 * 4_100_000
    assert 76.0 < epsilon <= 80.0 * (1.0 + 1e-9)
    far = compose(*(from_profile(epsilons=[0.0, 0.1 * i, i + 1.0], deltas=[0.1, 0.01, 0.0]) for i in (1, 2)))
    assert 400.0 < far.of_rows(100).epsilon(0.1) <= 500.0 * (1.0 + 1e-9)


@pytest.mark.full
@pytest.mark.parametrize(
    "one",
    [
        compose(approximate_dp(epsilon=0.1, delta=1e-5), gaussian(noise_multiplier=1.0)),
        approximate_dp(epsilon=0.1, delta=0.3),
        gaussian(noise_multiplier=1e7),
    ],
    ids=["small failure", "large failure", "next to nothing"],
)
def test_a_search_whose_profile_ends_above_nothing_or_begins_there(one):
    """Its table had no end, or one point. Two rows of which each may fail fail more often than one."""
    search = best_of(one, Poisson(mean=5.0))
    several = search.of_rows(2)
    assert several.epsilon(0.9) >= search.epsilon(0.9)
    for delta in (1e-9, 1e-3, 0.5):
        assert several.epsilon(delta) >= search.epsilon(delta) * (1 - 1e-9)
