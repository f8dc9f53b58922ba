"""Finite pairs around mechanisms: pessimistic ones above the profile, optimistic ones below; splitting is neutral."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from dpselect.privacy import Guarantee, approximate_dp, dp_sgd, from_profile, gaussian, laplace, pure_dp
from dpselect.privacy.losses import pairs
from dpselect.privacy.losses.discretise import coarsen, loss_grid, pieces, splice
from dpselect.privacy.losses.pairs import GaussianPairs, ProfilePairs
from dpselect.privacy.profile import GaussianProfile
from dpselect.testing.exact import finite_guarantee

EPSILONS = np.linspace(-4.0, 6.0, 61)

BASES: list[Guarantee] = [
    gaussian(noise_multiplier=0.3),
    gaussian(noise_multiplier=1.0),
    gaussian(noise_multiplier=20.0),
    laplace(scale=0.5),
    pure_dp(epsilon=1.0),
    approximate_dp(epsilon=0.5, delta=1e-5),
    dp_sgd(noise_multiplier=1.0, sampling_rate=0.02, steps=50),
]


@pytest.mark.parametrize("base", BASES, ids=lambda base: str(base.terms))
@pytest.mark.parametrize("atoms", [20, 400])
def test_pairs_enclose_the_profile(base: Guarantee, atoms: int) -> None:
    assert base.profile is not None
    enclosures = base.pair_source()(atoms)
    for enclosure, curve in zip(enclosures, (base.profile.remove, base.profile.add), strict=True):
        exact = curve(EPSILONS)
        upper = enclosure.pessimistic
        assert np.all(upper.hockey_stick(EPSILONS) >= exact * (1 - 1e-10) - 1e-15)
        assert np.sum(upper.upper) == pytest.approx(1.0, abs=1e-12)
        assert np.sum(upper.lower) == pytest.approx(1.0, abs=1e-12)

    source = base.attained_pairs()
    assert source is not None
    for enclosure, curve in zip(source(atoms), (base.profile.remove, base.profile.add), strict=True):
        assert enclosure.optimistic is not None
        assert np.all(enclosure.optimistic.hockey_stick(EPSILONS) <= curve(EPSILONS) * (1 + 1e-10) + 1e-15)


def test_a_table_is_its_own_pair() -> None:
    """Chords between (0.5, 0.1), (1, 0.01), (2, 1e-6), and the chord across loss 0 that convexity adds."""
    base = from_profile([0.5, 1.0, 2.0], [0.1, 0.01, 1e-6])
    pair = base.pair_source()(100)[0].pessimistic
    assert pair.hockey_stick(np.array([0.5, 1.0, 2.0, 3.0])) == pytest.approx([0.1, 0.01, 1e-6, 1e-6], rel=1e-9)
    assert np.all(pair.hockey_stick(EPSILONS[EPSILONS >= 0]) <= base.delta(EPSILONS[EPSILONS >= 0]) * (1 + 1e-9))


def test_a_pair_from_a_profile_is_close_to_it() -> None:
    profile = GaussianProfile(1.0)
    pair = ProfilePairs(profile)(2000)[0].pessimistic
    exact = profile.remove(EPSILONS)
    ratio = pair.hockey_stick(EPSILONS) / exact
    assert np.all(ratio >= 1 - 1e-9)
    assert np.all(ratio[EPSILONS < 5] <= 1.001)


def test_coarsening_and_splitting() -> None:
    fine = GaussianPairs(1.0)(3000)[0].pessimistic
    both = coarsen(fine, loss_grid(fine, 300))
    curve = fine.hockey_stick(EPSILONS)
    assert both.optimistic is not None
    assert np.all(both.pessimistic.hockey_stick(EPSILONS) >= curve * (1 - 1e-12))
    assert np.all(both.optimistic.hockey_stick(EPSILONS) <= curve * (1 + 1e-12))
    assert np.max(both.pessimistic.hockey_stick(EPSILONS) - curve) < 5e-4
    few = coarsen(fine, loss_grid(fine, 12)).pessimistic
    cut = pieces(few, np.geomspace(1e-12, 0.5, 80))
    assert cut.losses.size > 2 * few.losses.size
    assert cut.hockey_stick(EPSILONS) == pytest.approx(few.hockey_stick(EPSILONS), rel=1e-12, abs=1e-15)
    # pieces near either end are small beside the mass beyond them
    assert np.min(cut.upper[cut.upper > 0.0]) < 1e-9


def test_splicing_keeps_each_side() -> None:
    """Positive losses of one pair, negative ones of another; sums stay 1; halves that disagree are joined by a hull."""
    rough, fine = GaussianPairs(1.0)(300)[0].pessimistic, GaussianPairs(1.0)(1000)[0].pessimistic
    joined = splice(rough, fine)
    exact = GaussianProfile(1.0).remove(EPSILONS)
    assert np.all(joined.hockey_stick(EPSILONS) >= exact * (1 - 1e-10))
    assert joined.hockey_stick(EPSILONS[EPSILONS > 0]) == pytest.approx(rough.hockey_stick(EPSILONS[EPSILONS > 0]))
    assert np.sum(joined.upper) == pytest.approx(1.0, abs=1e-12)
    assert np.sum(joined.lower) == pytest.approx(1.0, abs=1e-12)
    unlike = splice(GaussianPairs(1.0)(12)[0].pessimistic, fine)
    assert np.all(unlike.hockey_stick(EPSILONS) >= exact * (1 - 1e-10))
    assert np.sum(unlike.upper) == pytest.approx(1.0, abs=1e-12)


def test_pairs_from_a_profile_dominate_at_negative_epsilons_too() -> None:
    """Nearly equal laws of few outputs, none of loss 0: rounding leaves less than no mass there (seed 0: 1 in 20)."""
    random = np.random.default_rng(0)
    for _ in range(100):
        size, most = int(random.integers(2, 6)), int(random.choice([100, 1000, 10_000]))
        upper = random.integers(1, most, size).astype(np.float64)
        lower = np.maximum(1.0, np.floor(upper * np.exp(random.uniform(-0.1, 0.1, size))))
        upper, lower = upper / upper.sum(), lower / lower.sum()
        profile = finite_guarantee(upper, lower).profile
        assert profile is not None
        for enclosure, (p, q) in zip(ProfilePairs(profile)(400), ((upper, lower), (lower, upper)), strict=True):
            for epsilon in np.linspace(-0.3, 0.3, 31):
                exact = float(np.sum(np.maximum(p - np.exp(epsilon) * q, 0.0)))
                # values and chords of the profile carry relative rounding errors of about 1e-13
                assert float(enclosure.pessimistic.hockey_stick(np.array([epsilon]))[0]) >= exact * (1 - 1e-12) - 1e-13


def test_a_table_of_many_points_has_pairs_of_bounded_size_around_its_own(monkeypatch) -> None:
    """Searches take time by the atoms, so that their number must not grow with a caller's table."""
    epsilons = np.linspace(0.0, 5.0, 9000)
    base = from_profile(epsilons, GaussianProfile(1.0).remove(epsilons))
    (found, other), (below, _) = base.pair_source()(16), base.attained_pairs()(16)
    monkeypatch.setattr(pairs, "_MOST_KNOTS", 10_000)
    exact = base.pair_source()(16)[0].pessimistic
    assert exact.losses.size > 10_000
    curves = [pair.hockey_stick(EPSILONS) for pair in (below.optimistic, exact, found.pessimistic, other.pessimistic)]
    assert max(pair.losses.size for pair in (below.optimistic, found.pessimistic, other.pessimistic)) < 4200
    for lower, upper in pairwise(curves[:3]):
        assert np.all(lower <= upper * (1.0 + 1e-12) + 1e-15)
    assert np.max(curves[2] - curves[0]) < 1e-5
    assert curves[3] == pytest.approx(curves[2], abs=1e-12)
