"""Two cuts are the best acceptable set: against brute force, and on boxes of cuts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpselect.accounting.optimal.atoms import Atoms
from dpselect.accounting.optimal.cuts import Cuts
from dpselect.privacy import gaussian
from dpselect.privacy.losses.discretise import DominatingPair, pieces
from dpselect.repetitions import (
    Fixed,
    Geometric,
    Poisson,
    Repetitions,
    Uniform,
    capped,
)
from tests.accounting.candidates.threshold_cases import brute_force
from tests.accounting.optimal.peaks_cases import near_pair, some_law as any_law


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


@pytest.mark.full
def test_the_bound_on_a_box_of_cuts_holds_everywhere_in_it() -> None:
    """Random cuts in random boxes, losses from 1e-5 to 1; and over a small box little is given away."""
    random = np.random.default_rng(4)
    loose = []
    for _ in range(300):
        scale = float(10.0 ** random.uniform(-5, 0))
        curve = Cuts(Atoms.of(near_pair(random, 12, scale)), any_law(random))
        x_0, x_1, y_0, y_1 = np.sort(random.uniform(0.0, 12.0, 4))
        if random.random() < 0.5:
            x_1, y_0 = x_0 + 1e-3 * (x_1 - x_0), y_1 - 1e-3 * (y_1 - y_0)
        epsilon, none = scale * float(random.uniform(0.0, 2.0)), bool(random.integers(2))
        bound = curve._bounds(epsilon, none, np.array([[x_0], [x_1], [y_0], [y_1]]))
        places = random.uniform(size=(2, 400))
        masses = curve._at_cut(none, x_0 + places[0] * (x_1 - x_0), y_0 + places[1] * (y_1 - y_0))
        values = masses[0] - math.exp(epsilon) * masses[1]
        assert np.all(values <= bound.top[0] + bound.rounding[0])
        if x_1 - x_0 < 0.02 and y_1 - y_0 < 0.02:
            loose.append((bound.top[0] - np.max(values)) / (scale * np.max(masses[0])))
    # of the order of a loss times the width of the box, where differences of near terms would leave the width alone
    assert len(loose) > 50
    assert np.quantile(loose, 0.9) < 2e-2
