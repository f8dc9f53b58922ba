"""Conditional sampling with a stop coin: the optimal bound against every acceptable set, exact forms, other bounds."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpselect.accounting.candidates.conditional import conditional_sampling, corollary_16, proposition_15
from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.privacy import approximate_dp, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.losses.discretise import DominatingPair
from dpselect.privacy.renyi import LinearRenyi, epsilon_from_renyi
from dpselect.repetitions import Geometric
from dpselect.testing.exact import FinitePair, renyi_divergence


def brute_force(p: np.ndarray, q: np.ndarray, floor: float, epsilon: float) -> float:
    """The largest divergence over acceptable sets, from the law of "acceptable or stopped" (Appendix C)."""
    accepted = np.array(list(itertools.product((0.0, 1.0), repeat=p.size)))
    sides = []
    for masses in (p, q):
        kept = (1.0 - floor) * masses * accepted
        stopped = np.full((accepted.shape[0], 1), floor)
        sides.append(np.hstack((kept, stopped)) / (floor + np.sum(kept, axis=1, keepdims=True)))
    return float(np.max(np.sum(np.maximum(sides[0] - math.exp(epsilon) * sides[1], 0.0), axis=1)))


def curve_of(p: np.ndarray, q: np.ndarray, floor: float) -> Cuts:
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    order = np.argsort(losses, kind="stable")
    pair = DominatingPair(losses=losses[order], upper=p[order], lower=q[order])
    return Cuts(Atoms.of(pair), Geometric(gamma=floor), 1.0 - floor)


def check_sets(seed: int, trials: int, most: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(trials):
        n = int(random.integers(2, most + 1))
        p, q = (np.maximum(random.dirichlet(np.full(n, random.choice([0.3, 1.0]))), 1e-9) for _ in range(2))
        if random.random() < 0.3:
            q[0] = 0.0
        if random.random() < 0.3:
            p[-1] = 0.0
        p, q = p / p.sum(), q / q.sum()
        floor, epsilon = float(10.0 ** random.uniform(-3.0, -0.1)), float(random.uniform(0.0, 3.0))
        curve = curve_of(p, q, floor)
        assert brute_force(p, q, floor, epsilon) <= curve.upper(epsilon) + 1e-15
        assert curve.lower(epsilon) <= curve.upper(epsilon) <= curve.lower(epsilon) * (1.0 + 3e-4) + 1e-12


@pytest.mark.full
@pytest.mark.theorem("docs/theory/optimal-selection.md, Theorem 2", exact=True)
def test_no_acceptable_set_beats_the_bound() -> None:
    """Every acceptable set of 100 random pairs of up to eight outcomes, by the law of the release itself."""
    check_sets(5, 100, 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 12))
def test_no_acceptable_set_beats_the_bound_in_many_tries(seed: int) -> None:
    check_sets(seed, 400, 10)


@pytest.mark.theorem("docs/theory/optimal-selection.md, Theorem 2", exact=True, sharp=True)
def test_a_bound_one_per_cent_lower_is_caught() -> None:
    """Randomised response at 1, floor 0.1, epsilon 1.5: 0.10257 of the better and all of the worse accepted."""
    better = math.e / (1.0 + math.e)
    shares = np.array([1.0 - 0.10256719, 0.10256719])
    p = np.append(1.0 - better, better * shares)
    q = np.append(better, (1.0 - better) * shares)
    attained = brute_force(p, q, 0.1, 1.5)
    bound = conditional_sampling(pure_dp(epsilon=1.0), floor=0.1).delta(1.5)
    assert attained <= bound
    assert attained > 0.99 * bound


@pytest.mark.parametrize("floor", [0.5, 0.1, 0.01, 0.001])
def test_pure_bases_have_the_exact_form(floor: float) -> None:
    """epsilon + log((e^epsilon + floor) / (1 + floor e^epsilon)), below the 2 epsilon of Corollary 16 (1)."""
    for epsilon in (0.1, 1.0, 3.0):
        exact = epsilon + math.log((math.exp(epsilon) + floor) / (1.0 + floor * math.exp(epsilon)))
        for bound in (None, "optimal", "published"):
            total = conditional_sampling(pure_dp(epsilon=epsilon), floor=floor, bound=bound).epsilon(delta=0.0)
            assert exact * (1.0 - 1e-15) <= total <= exact * (1.0 + 1e-11)
        assert exact < 2.0 * epsilon


@pytest.mark.cases(1)
@pytest.mark.parametrize(("floor", "value"), [(0.1, 2.5342), (0.01, 3.0678), (0.001, 3.5499)])
def test_gaussian_values(floor: float, value: float) -> None:
    """0.1-zCDP Gaussian at delta 1e-6: the numeric hockey-stick bound, to its digits, is nearly the optimum here."""
    base = gaussian(noise_multiplier=0.2**-0.5)
    lower, upper = conditional_sampling(base, floor=floor).epsilon_bracket(delta=1e-6)
    assert lower <= value + 1e-4
    assert upper <= 1.0005 * value
    assert upper <= 1.001 * lower


@pytest.mark.full
@pytest.mark.parametrize("floor", [0.1, 0.001])
@pytest.mark.parametrize("name", ["gaussian", "laplace", "pure", "approximate"])
def test_the_optimum_is_never_above_the_published_bounds(name: str, floor: float) -> None:
    """To the accuracy of the enclosure, half a per mille; well below at a large delta."""
    base = {
        "gaussian": gaussian(noise_multiplier=2.0),
        "laplace": laplace(scale=1.0),
        "pure": pure_dp(epsilon=0.5),
        "approximate": approximate_dp(epsilon=0.5, delta=1e-8),
    }[name]
    for delta in (1e-2, 1e-4, 1e-6 if name != "approximate" else 1e-4):
        published = conditional_sampling(base, floor=floor, bound="published").epsilon(delta=delta)
        total = conditional_sampling(base, floor=floor, bound="optimal")
        lower, upper = total.epsilon_bracket(delta=delta)
        assert lower <= published
        assert upper <= published * (1.0 + 5e-4)
        assert upper <= 1.002 * lower
        if delta == 1e-2:
            assert upper < 0.985 * published


@pytest.mark.full
def test_the_default_says_which_bound_it_takes() -> None:
    """The optimal profile and the Renyi curve, whichever is smaller at the delta asked."""
    total = conditional_sampling(zcdp(rho=0.1), floor=0.1)
    names = {delta: total.statement(delta=delta).theorem for delta in (1e-2, 1e-6)}
    assert "optimal" in names[1e-2]
    assert "Corollary 16" in names[1e-6]
    for delta in names:
        parts = [
            conditional_sampling(zcdp(rho=0.1), floor=0.1, bound=bound).epsilon(delta=delta)
            for bound in ("optimal", "published")
        ]
        assert total.epsilon(delta=delta) <= min(parts)
    assert "optimal" in total.describe(delta=1e-2)["theorem"]


def test_a_failure_mass_costs_its_own() -> None:
    """Outside mass d (1 - p) / (p + d - p d), p the floor, the cost is that of a pure base."""
    floor, d = 0.1, 1e-6
    total = conditional_sampling(approximate_dp(epsilon=1.0, delta=d), floor=floor)
    failure = (1.0 - floor) * d / (floor + d - floor * d)
    assert total.failure == pytest.approx(failure, rel=1e-9)
    exact = 1.0 + math.log((math.e + floor) / (1.0 + floor * math.e))
    assert total.epsilon(delta=failure * (1.0 + 1e-9)) <= exact
    assert total.epsilon(delta=0.9 * failure) == math.inf


@pytest.mark.full
def test_pickles_and_refuses() -> None:
    total = conditional_sampling(laplace(scale=1.0), floor=0.1)
    assert pickle.loads(pickle.dumps(total)).epsilon(delta=1e-4) == total.epsilon(delta=1e-4)
    with pytest.raises(BoundUnavailableError, match="published"):
        conditional_sampling(laplace(scale=1.0), floor=0.1, bound="paper")


class TestConditionalSampling:
    """Papernot, Steinke 2022, Appendix C."""

    CURVE = LinearRenyi(0.1)

    def test_corollary_16_example(self):
        """s = t = 3, a = .2, order 8: exact 5.210307479, inequality 2 gives 5.801957995."""
        s = t = 3.0
        a = 0.2
        q = np.array([a * math.exp(-s), a * math.exp(-s), 1 - 2 * a * math.exp(-s)])
        q2 = np.array([a * math.exp(-s - t), a, 1 - a - a * math.exp(-s - t)])
        assert_allclose(renyi_divergence(q, q2, 8.0), 2.341508914, rtol=1e-9)
        assert_allclose(renyi_divergence(q2, q, 8.0), 2.770080298, rtol=1e-9)
        assert_allclose(renyi_divergence(q2, q, 7.0), 2.731760351, rtol=1e-9)
        exact = renyi_divergence(q[:2] / q[:2].sum(), q2[:2] / q2[:2].sum(), 8.0)
        assert_allclose(exact, 5.210307479, rtol=1e-9)
        bound = corollary_16(
            inequality=2,
            order=8.0,
            divergence=lambda o: np.where(o == 8.0, renyi_divergence(q, q2, 8.0), renyi_divergence(q2, q, 7.0)),
            acceptance=float(q[:2].sum()),
        )
        assert_allclose(bound, 5.801957995, rtol=1e-9)

    def test_orders_below_two_are_refused(self):
        """At order 1.5 with everything accepted the printed bound .1633881 is below the truth .2587995."""
        q, q2 = (0.7, 0.3), (0.4, 0.6)
        assert_allclose(renyi_divergence(q, q2, 1.5), 0.258799476, rtol=1e-8)
        for inequality in (2, 3, 5):
            with pytest.raises(ArgumentError, match="order must be at least 2"):
                corollary_16(
                    inequality=inequality, order=1.5, divergence=FinitePair(q, q2), pure_epsilon=1.0, acceptance=1.0
                )
        fourth = corollary_16(
            inequality=4, order=1.5, divergence=FinitePair(q, q2), pure_epsilon=math.log(2), acceptance=1.0
        )
        assert fourth > 0.258799476

    def test_tenth_zcdp(self):
        """Inequality 2 with floor .1 at orders 2, 5, 10, 20; and its (epsilon, 1e-6) for three floors."""
        found = [
            corollary_16(inequality=2, order=o, divergence=self.CURVE, acceptance=0.1) for o in (2.0, 5.0, 10.0, 20.0)
        ]
        assert_allclose(found, (4.805170, 1.951293, 2.311686, 4.042377), rtol=1e-6)
        for floor, expected in ((0.1, 3.485531), (0.01, 3.967015), (0.001, 4.398200)):

            def printed(orders, floor=floor):
                values = [
                    corollary_16(inequality=2, order=o, divergence=self.CURVE, acceptance=floor) if o >= 2 else math.inf
                    for o in orders
                ]
                return np.array(values)

            assert_allclose(epsilon_from_renyi(printed, 1e-6), expected, rtol=1e-5)

    def test_inequality_5_at_r_one_is_inequality_2(self):
        for order in (2.0, 3.5, 20.0):
            values = [
                corollary_16(inequality=i, order=order, divergence=self.CURVE, acceptance=0.1, r=1.0) for i in (2, 5)
            ]
            assert_allclose(values[0], values[1], rtol=1e-12)
        direct = proposition_15(order=3.5, p_inverse=0.0, q_inverse=0.0, divergence=self.CURVE, acceptance=0.1)
        assert_allclose(direct, values[1] if order == 3.5 else direct, rtol=1e-12)

    @pytest.mark.cases(2)
    @pytest.mark.parametrize(
        ("floor", "renyi", "hockey_stick"),
        [(0.1, 2.68697, 2.5342), (0.01, 3.20770, 3.0678), (0.001, 3.68495, 3.5499)],
    )
    def test_numeric_forms(self, floor, renyi, hockey_stick):
        """With the Gaussian curve and the floor coin; the coin's averaging of the moment may gain up to 1 %."""
        total = conditional_sampling(gaussian(noise_multiplier=0.2**-0.5), floor=floor)
        assert renyi * 0.99 <= epsilon_from_renyi(total.renyi_curve, 1e-6) <= renyi * 1.001
        assert hockey_stick * (1 - 1e-4) <= total.epsilon(1e-6) <= hockey_stick * 1.001

    def test_pure(self):
        total = conditional_sampling(pure_dp(epsilon=1.0), floor=0.1)
        expected = 1.0 + math.log((math.e + 0.1) / (1 + 0.1 * math.e))
        assert_allclose(total.epsilon(delta=0), expected, rtol=1e-9)
        assert expected < corollary_16(inequality=1, order=2.0, divergence=self.CURVE, pure_epsilon=1.0, acceptance=0.1)

    @pytest.mark.full
    def test_truth_is_covered(self):
        """Exact output laws of random finite mechanisms, all acceptance sets of three outputs out of four."""
        rng = np.random.default_rng(11)
        for _ in range(75):
            p, q = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
            pure = float(np.max(np.abs(np.log(p / q))))
            floor = float(rng.choice([0.01, 0.1, 0.5]))
            total = conditional_sampling(pure_dp(epsilon=pure), floor=floor)
            for left_out in range(4):
                kept = np.arange(4) != left_out
                a, b = (np.append(floor, (1 - floor) * m[kept]) / (floor + (1 - floor) * m[kept].sum()) for m in (p, q))
                assert np.max(np.abs(np.log(a / b))) <= total.pure_epsilon * (1 + 1e-9)
                assert renyi_divergence(a, b, 3.0) <= total.renyi(3.0) * (1 + 1e-9)
                epsilons = np.array([0.0, 0.3, 1.0])
                assert np.all(FinitePair(tuple(a), tuple(b)).remove(epsilons) <= total.profile.remove(epsilons) + 1e-12)

    def test_failure_mass_goes_through_the_profile(self):
        total = conditional_sampling(approximate_dp(epsilon=0.5, delta=1e-6), floor=0.1)
        assert total.renyi_curve is None
        assert total.delta(20.0) >= 1e-6
        assert 0.5 < total.epsilon(1e-4) < 2.0

    def test_pickles(self):
        total = conditional_sampling(gaussian(noise_multiplier=2), floor=0.1)
        assert pickle.loads(pickle.dumps(total)).epsilon(1e-6) == total.epsilon(1e-6)

    @pytest.mark.parametrize("floor", [0.0, 1.0, -0.1, math.nan])
    def test_bad_floor(self, floor):
        with pytest.raises(ArgumentError, match="floor"):
            conditional_sampling(zcdp(rho=0.1), floor=floor)
