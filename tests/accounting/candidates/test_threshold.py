"""Threshold stopping: the two-cut theorem against brute force, exact forms, the paper's theorem, truncations."""

from __future__ import annotations

import itertools
import math
import pickle

import numpy as np
import pytest

from dpselect.accounting.candidates.threshold import liu_talwar_theorem_3_1, threshold_stopping
from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.accounting.optimal.first_acceptable import first_acceptable
from dpselect.accounting.optimal.first_pure import pure_first
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.privacy import Guarantee, approximate_dp, compose, dp_sgd, gaussian, laplace, pure_dp
from dpselect.privacy.losses.discretise import DominatingPair, pieces
from dpselect.repetitions import Fixed, Geometric, Poisson, Repetitions, Uniform, capped


def release(masses: np.ndarray, accepted: np.ndarray, law: Repetitions, chance: float = 1.0) -> np.ndarray:
    """The law of the release by its definition: outcomes in the order given, then "none"; rows are acceptable sets."""
    kept = masses * accepted
    u = np.minimum(np.sum(kept, axis=-1), 1.0)
    factor = np.where(u > 0.0, law.success_probability(u) / np.maximum(u, 1e-300), law.mean)
    none = 1.0 - chance + chance * law.pgf(1.0 - u)
    return np.concatenate((chance * kept * factor[..., None], none[..., None]), axis=-1)


def brute_force(p: np.ndarray, q: np.ndarray, law: Repetitions, epsilon: float, chance: float = 1.0) -> float:
    """The largest divergence over all ways to call pieces rejected or accepted."""
    accepted = np.array(list(itertools.product((0.0, 1.0), repeat=p.size)))
    first, second = (release(masses, accepted, law, chance) for masses in (p, q))
    return float(np.max(np.sum(np.maximum(first - math.exp(epsilon) * second, 0.0), axis=1)))


def pair_of(p: np.ndarray, q: np.ndarray) -> DominatingPair:
    with np.errstate(divide="ignore"):
        losses = np.log(p) - np.log(q)
    order = np.argsort(losses, kind="stable")
    return DominatingPair(losses=losses[order], upper=p[order], lower=q[order])


def some_law(random: np.random.Generator) -> Repetitions:
    gamma = float(10.0 ** random.uniform(-2.5, -0.05))
    return [
        Geometric(gamma=gamma),
        Geometric(gamma=gamma).at_most(6),
        capped(Geometric(gamma=gamma), 6),
        Poisson(mean=4),
        Uniform(limit=9),
        Fixed(count=5),
    ][int(random.integers(6))]


def some_pair(random: np.random.Generator, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Masses of two laws on at least two outcomes: zeros on either side, ties and near ties among them."""
    n = int(random.integers(2, most + 1))
    shape = float(random.choice([0.3, 0.7, 3.0]))
    p, q = (np.maximum(random.dirichlet(np.full(n, shape)), 1e-12) for _ in range(2))
    if random.random() < 0.3:
        q[1:] = p[1:] * np.exp(random.normal(0.0, 0.3, n - 1))
    if random.random() < 0.3 and n > 3:
        q[1] = p[1] * q[2] / p[2]
    if random.random() < 0.3:
        q[0] = 0.0
    if random.random() < 0.3:
        p[-1] = 0.0
    return p / p.sum(), q / q.sum()


def check_sets(seed: int, trials: int, most: int) -> None:
    random = np.random.default_rng(seed)
    for _ in range(trials):
        p, q = some_pair(random, most)
        law, chance = some_law(random), float(random.choice([1.0, 0.6]))
        epsilon = float(random.choice([0.0, random.uniform(0.0, 3.0)]))
        curve = Cuts(Atoms.of(pair_of(p, q)), law, chance)
        upper, lower = curve.upper(epsilon), curve.lower(epsilon)
        attained = brute_force(p, q, law, epsilon, chance)
        assert 0.0 <= lower <= upper <= 1.0
        assert attained <= upper + 1e-15, (p, q, law, epsilon)
        assert upper <= lower * (1.0 + 3e-4) + 1e-12, "the search ends by itself, not by its limits"


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_no_set_beats_the_two_cuts(seed: int) -> None:
    """Every set of up to eight unequal pieces of 160 pairs, for six kinds of T, infinite losses and ties among them."""
    check_sets(seed, 40, 8)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 14))
def test_no_set_beats_the_two_cuts_in_many_tries(seed: int) -> None:
    """The same for 4,000 pairs of up to ten pieces."""
    check_sets(seed, 400, 10)


def on_fine_pieces(atoms: Atoms, law: Repetitions, epsilon: float) -> float:
    """The largest J over all pairs of nodes, as it is written down."""
    x, y = np.triu_indices(atoms.size + 1)
    values = []
    for low, high in ((atoms.below_p, atoms.above_p), (atoms.below_q, atoms.above_q)):
        u = np.minimum(low[x] + high[y], 1.0)
        h = np.where(u > 0.0, law.success_probability(u) / np.maximum(u, 1e-300), law.mean)
        values.append((high[y] * h, high[y] * h + law.pgf(1.0 - u)))
    return max(float(np.max(values[0][k] - math.exp(epsilon) * values[1][k])) for k in (0, 1))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_the_lower_value_is_attained(seed: int) -> None:
    """Atoms cut into 20 equal and 10 tiny pieces: some set of whole pieces comes within a per cent of the lower value.

    So the upper value, at most 0.03 % above, could nowhere be taken a per cent lower.
    """
    random = np.random.default_rng(seed)
    for _ in range(8):
        p, q = some_pair(random, 5)
        law, epsilon = some_law(random), float(random.uniform(0.0, 1.5))
        pair = pair_of(p, q)
        curve = Cuts(Atoms.of(pair), law)
        shares = np.diff(np.concatenate(([0.0], np.geomspace(1e-4, 0.02, 12), np.linspace(0.05, 0.95, 36))))
        shares = np.concatenate((shares, [0.03], np.diff(1.0 - np.geomspace(1e-4, 0.02, 12)[::-1]), [1e-4]))
        finite = np.isfinite(pair.losses)
        cut = Atoms.of(
            DominatingPair(
                losses=np.concatenate((np.repeat(pair.losses[finite], shares.size), [np.inf, np.inf])),
                upper=np.concatenate((np.outer(pair.upper[finite], shares / shares.sum()).ravel(), [0.0, 0.0])),
                lower=np.concatenate((np.outer(pair.lower[finite], shares / shares.sum()).ravel(), [0.0, 0.0])),
            )
        )
        ends = Atoms.of(pair)
        cut = Atoms(cut.losses, cut.p, cut.q, ends.infinite, ends.zero)
        best = on_fine_pieces(cut, law, epsilon)
        assert best <= curve.upper(epsilon) + 1e-15
        assert curve.lower(epsilon) <= 1.01 * best + 1e-6


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


@pytest.mark.full
def test_gaussian_pieces_attain_the_lower_value() -> None:
    """The same on 400 bins of the Gaussian, whole bins against cuts anywhere."""
    atoms = Atoms.of(gaussian(noise_multiplier=2.0).pair_source()(400)[0].pessimistic)
    for law in (Geometric(gamma=0.05), capped(Geometric(gamma=0.01), 30)):
        best = on_fine_pieces(atoms, law, 1.5)
        curve = Cuts(atoms, law)
        assert best <= curve.upper(1.5)
        assert curve.lower(1.5) <= 1.002 * best


def test_pairs_without_finite_losses() -> None:
    """Disjoint laws: everything is told. Equal laws: nothing is."""
    for law in (Geometric(gamma=0.2), Fixed(count=3)):
        told = Cuts(Atoms.of(pair_of(np.array([1.0, 0.0]), np.array([0.0, 1.0]))), law)
        assert 1.0 - 2e-11 < told.lower(3.0) <= 1.0  # rounded down
        assert told.upper(3.0) <= 1.0
        assert told.smallest_safe(0.5) == math.inf
        same = Cuts(Atoms.of(pair_of(np.array([0.4, 0.6]), np.array([0.4, 0.6]))), law)
        assert same.lower(0.0) <= same.upper(0.0) <= 1e-11
        assert same.smallest_safe(1e-9) == 0.0


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


def test_pure_values() -> None:
    """No limit at stop probability 0.5, 0.1, 0.01; attained by "none" on randomised response."""
    for stop, value in ((0.5, 1.31055009), (0.1, 1.79567204), (0.01, 1.97685212)):
        assert pure_first(Geometric(gamma=stop), 1.0) == pytest.approx(value, rel=5e-9)
    assert pure_first(Geometric(gamma=0.1), 0.1) == pytest.approx(0.181795642, rel=5e-9)
    law, worse = Geometric(gamma=0.1), 1.0 / (1.0 + math.e)
    assert math.log(law.pgf(1.0 - worse) / law.pgf(worse)) == pytest.approx(1.79567204, rel=5e-9)


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


@pytest.mark.full
def test_caps_beyond_two_epsilon() -> None:
    """At stop probability 0.1 exactly the caps 3 to 6 cost more than 2 epsilon."""
    over = [k for k in range(1, 40) if pure_first(capped(Geometric(gamma=0.1), k), 1.0) > 2.0]
    assert over == [3, 4, 5, 6]


def test_other_laws_of_tries() -> None:
    """k tries cost k epsilon: all of them fail. One try costs epsilon."""
    assert pure_first(Fixed(count=50), 1.0) == pytest.approx(50.0, rel=1e-9)
    assert pure_first(Fixed(count=1), 0.7) == pytest.approx(0.7, rel=1e-9)
    assert pure_first(Geometric(gamma=0.1), 0.0) == 0.0
    assert pure_first(Geometric(gamma=0.1), math.inf) == math.inf


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


@pytest.mark.full
def test_splitting_atoms_changes_nothing() -> None:
    """Cuts may be inside atoms: the same pair in pieces has the same value, to the accuracy of the search."""
    pair = pair_of(np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.4, 0.1]))
    split = pieces(pair, np.linspace(0.01, 0.99, 60))
    for law in (Geometric(gamma=0.05), capped(Geometric(gamma=0.05), 8)):
        whole, parts = Cuts(Atoms.of(pair), law), Cuts(Atoms.of(split), law)
        for epsilon in (0.0, 0.8, 1.6):
            assert whole.lower(epsilon) <= parts.upper(epsilon)
            assert parts.lower(epsilon) <= whole.upper(epsilon)


def test_first_acceptable_checks_its_arguments() -> None:
    with pytest.raises(ArgumentError, match="chance"):
        first_acceptable(laplace(scale=1.0), Geometric(gamma=0.1), chance=0.0)
    with pytest.raises(ArgumentError, match="atoms"):
        first_acceptable(laplace(scale=1.0), Geometric(gamma=0.1), atoms=1)


def test_bad_arguments() -> None:
    for wrong in ({"stop_probability": 0.0}, {"stop_probability": 1.0}, {"stop_probability": 0.1, "max_runs": 0}):
        with pytest.raises(ArgumentError):
            threshold_stopping(laplace(scale=1.0), **wrong)
    with pytest.raises(ArgumentError, match="truncation"):
        threshold_stopping(laplace(scale=1.0), stop_probability=0.1, truncation="hard")
    with pytest.raises(BoundUnavailableError, match="optimal"):
        threshold_stopping(laplace(scale=1.0), stop_probability=0.1, bound="exact")
