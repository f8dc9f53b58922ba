"""Conditional sampling with a stop coin: the optimal bound against every acceptable set, exact forms, other bounds."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from dpselect.accounting import conditional_sampling
from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.errors import BoundUnavailableError
from dpselect.privacy import approximate_dp, gaussian, laplace, pure_dp, zcdp
from dpselect.privacy.losses.discretise import DominatingPair
from dpselect.repetitions import Geometric


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
