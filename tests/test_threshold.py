"""Threshold stopping: the two-cut theorem against brute force, exact forms, the paper's theorem, truncations."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.accounting.threshold import first_acceptable, liu_talwar_theorem_3_1, threshold_stopping
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.privacy import DominatingPair, approximate_dp, compose, gaussian, laplace, pure_dp
from dpselect.repetitions import Fixed, Geometric, Poisson, Repetitions, Uniform, capped


def brute_force(p: np.ndarray, q: np.ndarray, law: Repetitions, epsilon: float) -> float:
    """The largest divergence over all ways to call pieces rejected or accepted, from the definition of the release."""
    best = 0.0
    n = p.size
    for accepted in itertools.product((False, True), repeat=n):
        kept = np.array(accepted)
        sides = []
        for masses in (p, q):
            u = min(float(masses[kept].sum()), 1.0)
            release = masses[kept] * (law.success_probability(u) / u if u > 0.0 else law.mean)
            sides.append(np.append(release, law.pgf(1.0 - u)))
        best = max(best, float(np.sum(np.maximum(sides[0] - math.exp(epsilon) * sides[1], 0.0))))
    return best


def pair_of(p: np.ndarray, q: np.ndarray) -> DominatingPair:
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    order = np.argsort(losses, kind="stable")
    return DominatingPair(losses=losses[order], upper=p[order], lower=q[order])


def laws(random: np.random.Generator) -> Repetitions:
    gamma = float(random.uniform(0.02, 0.9))
    return [
        Geometric(gamma=gamma),
        Geometric(gamma=gamma).at_most(6),
        capped(Geometric(gamma=gamma), 6),
        Poisson(mean=4),
        Uniform(limit=9),
        Fixed(count=5),
    ][int(random.integers(6))]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_set_beats_the_two_cuts(seed: int) -> None:
    """Every set of up to seven unequal pieces of a pair, infinite and minus infinite losses among them."""
    random = np.random.default_rng(seed)
    for _ in range(25):
        n = int(random.integers(2, 8))
        p, q = random.dirichlet(np.full(n, 0.7)), random.dirichlet(np.full(n, 0.7))
        if random.random() < 0.3:
            q[0] = 0.0
        if random.random() < 0.3:
            p[-1] = 0.0
        p, q, law, epsilon = p / p.sum(), q / q.sum(), laws(random), float(random.uniform(0.0, 3.0))
        if random.random() < 0.3 and n > 3:
            q[1] = p[1] * q[2] / max(p[2], 1e-9)
            q /= q.sum()
        curve = Cuts(Atoms.of(pair_of(p, q)), law)
        upper, lower = curve.upper(epsilon), curve.lower(epsilon)
        attained = brute_force(p, q, law, epsilon)
        assert attained <= upper + 1e-11
        assert lower <= upper <= lower * (1 + 2e-4) + 1e-6


@pytest.mark.slow
def test_the_lower_value_is_attained_by_pieces() -> None:
    """On atoms fine enough the best cut is a set of whole atoms: brute force over all pairs of cuts finds it."""
    atoms = Atoms.of(gaussian(noise_multiplier=2.0).pair_source()(200)[0].pessimistic)
    law = Geometric(gamma=0.05)
    best = 0.0
    below, above = (atoms.below_p, atoms.below_q), (atoms.above_p, atoms.above_q)
    x, y = np.triu_indices(atoms.size + 1)
    sides = []
    for low, high in zip(below, above, strict=True):
        u = np.minimum(low[x] + high[y], 1.0)
        with np.errstate(invalid="ignore", divide="ignore"):
            h = np.where(u > 0.0, law.success_probability(u) / u, law.mean)
        sides.append((high[y] * h, high[y] * h + law.pgf(np.maximum(1.0 - u, 0.0))))
    for k in (0, 1):
        best = max(best, float(np.max(sides[0][k] - math.exp(1.5) * sides[1][k])))
    assert best <= Cuts(atoms, law).upper(1.5) <= 1.01 * best


@pytest.mark.slow
@pytest.mark.parametrize("stop", [0.3, 0.05, 0.001])
def test_pure_bases_have_the_exact_form(stop: float) -> None:
    """epsilon + log((e^epsilon + g) / (1 + g e^epsilon)), below 2 epsilon: the best constant for this search."""
    for epsilon in (0.2, 1.0, 3.0):
        exact = epsilon + math.log((math.exp(epsilon) + stop) / (1.0 + stop * math.exp(epsilon)))
        total = threshold_stopping(pure_dp(epsilon=epsilon), stop_probability=stop)
        assert exact - 1e-9 <= total.epsilon(delta=0.0) <= exact + 1e-4
        lower, upper = total.epsilon_bracket(delta=1e-9)
        assert lower <= upper <= min(exact + 1e-4, 1.002 * lower)
        assert lower >= 0.99 * exact - 1e-3


@pytest.mark.slow
def test_conditioned_truncation_is_free_and_capped_is_not() -> None:
    """Conditioned: at most the pure cost of the unlimited search. Capped at 10 tries: more than 2 epsilon."""
    base = pure_dp(epsilon=0.5)
    free = threshold_stopping(base, stop_probability=0.01)
    for limit in (2, 20):
        conditioned = threshold_stopping(base, stop_probability=0.01, max_runs=limit)
        assert conditioned.epsilon(delta=0.0) <= free.epsilon(delta=0.0) + 1e-4
        assert conditioned.epsilon(delta=1e-5) <= conditioned.epsilon(delta=0.0)
    hard = threshold_stopping(base, stop_probability=0.01, max_runs=10, truncation="capped")
    assert hard.epsilon_bracket(delta=1e-5)[0] > 1.0, "ten failures in a row cost more than 2 epsilon"


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
    for other in (base, approximate_dp(epsilon=0.5, delta=1e-6)):
        optimal = threshold_stopping(other, stop_probability=0.1)
        assert optimal.epsilon(delta=1e-4) <= liu_talwar_theorem_3_1(other, stop_probability=0.1).epsilon(delta=1e-4)


@pytest.mark.slow
def test_conditional_sampling_with_a_floor_coin_is_the_same_search() -> None:
    """The coin before each round: T is geometric on 0, 1, ...; the pure cost is that of the coin after each failure."""
    from dpselect.accounting import conditional_sampling
    from dpselect.repetitions import Tabulated

    floor = 0.1
    masses = floor * (1.0 - floor) ** np.arange(400)
    law = Tabulated(probabilities=(masses / masses.sum()).tolist())
    for base in (gaussian(noise_multiplier=0.2**-0.5), pure_dp(epsilon=1.0)):
        optimal = first_acceptable(base, law, atoms=600)
        bound = conditional_sampling(base, floor=floor)
        assert optimal.epsilon_bracket(delta=1e-6)[0] <= bound.epsilon(delta=1e-6)
    assert optimal.epsilon(delta=0.0) == pytest.approx(
        1.0 + math.log((math.e + floor) / (1 + floor * math.e)), abs=0.02
    )


@pytest.mark.slow
def test_gaussian_brackets_are_narrow_and_results_compose() -> None:
    total = threshold_stopping(gaussian(noise_multiplier=4.0), stop_probability=0.05)
    lower, upper = total.epsilon_bracket(delta=1e-6)
    assert 1.06 < lower <= upper <= 1.002 * lower
    again = compose(pickle.loads(pickle.dumps(total)), gaussian(noise_multiplier=4.0))
    assert again.epsilon(delta=1e-6) > upper


def test_bad_arguments() -> None:
    for wrong in ({"stop_probability": 0.0}, {"stop_probability": 1.0}, {"stop_probability": 0.1, "max_runs": 0}):
        with pytest.raises(ArgumentError):
            threshold_stopping(laplace(scale=1.0), **wrong)
    with pytest.raises(ArgumentError, match="truncation"):
        threshold_stopping(laplace(scale=1.0), stop_probability=0.1, truncation="hard")
    with pytest.raises(BoundUnavailableError, match="optimal"):
        threshold_stopping(laplace(scale=1.0), stop_probability=0.1, bound="exact")
