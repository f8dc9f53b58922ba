"""The size of a distribution in its family: as large as a total allows, seen to be within it, in few evaluations."""

from __future__ import annotations

import pytest

from dpselect.accounting import best_of
from dpselect.accounting.planning import sizes
from dpselect.accounting.planning.calibrate import GuaranteePrice
from dpselect.accounting.planning.sizes import largest_law, largest_within, law_at, smallest_law
from dpselect.errors import ArgumentError
from dpselect.privacy import gaussian, laplace, pure_dp
from dpselect.repetitions import Geometric, Harmonic, Poisson
from dpselect.repetitions.distribution import Family

LIMITS = Family("harmonic", lambda size: Harmonic(limit=int(size)), whole=True)
MEANS = Family("geometric", lambda size: Geometric.with_mean(mean=size))
BASE = gaussian(noise_multiplier=4.0)


def anything(_):
    return True


@pytest.mark.full
@pytest.mark.parametrize("family", [LIMITS, MEANS])
@pytest.mark.parametrize(
    ("base", "total", "delta"),
    [(BASE, 1.6, 1e-6), (BASE, 1.2, 1e-3), (laplace(scale=2.0), 0.8, 1e-4), (pure_dp(epsilon=0.4), 0.65, 1e-6)],
)
def test_the_largest_within_a_total_is_within_it_and_close(base, family, total, delta):
    law = largest_within(base, family, anything, total, delta)
    assert best_of(base, law).epsilon(delta) <= total
    larger = family.at(law.limit + max(1, law.limit // 60) if family.whole else law.mean * 1.02)
    assert best_of(base, larger).epsilon(delta) > total


def test_pure_totals_and_limits():
    base = pure_dp(epsilon=0.5)
    law = largest_within(base, LIMITS, anything, 0.9, 0.0)
    assert best_of(base, law).epsilon(0.0) <= 0.9 < best_of(base, Harmonic(limit=law.limit + 1)).epsilon(0.0)
    assert largest_within(base, LIMITS, lambda law: law.limit <= 3, 100.0, 0.0).limit == 3
    assert largest_within(base, LIMITS, anything, 0.49, 0.0) is None
    assert largest_within(base, LIMITS, lambda _: False, 1.0, 0.0) is None


def test_one_run_that_is_affordable_is_found():
    assert largest_within(pure_dp(epsilon=0.5), LIMITS, anything, 0.5, 0.0).limit == 1


@pytest.mark.full
def test_an_approximation_that_is_too_small_is_not_trusted(monkeypatch):
    monkeypatch.setattr(GuaranteePrice, "approximate_delta", lambda *_: 1e-7)
    monkeypatch.setattr(sizes, "_LARGEST_LIMIT", 64)
    law = largest_within(BASE, LIMITS, anything, 1.5, 1e-6)
    assert best_of(BASE, law).epsilon(1e-6) <= 1.5


def test_few_prices_are_computed(monkeypatch):
    """A step of a twentieth at a time took 20 of them for each family."""
    asked, epsilon = [], GuaranteePrice.approximate_delta
    monkeypatch.setattr(GuaranteePrice, "approximate_delta", lambda self, e: asked.append(1) or epsilon(self, e))
    largest_within(BASE, MEANS, anything, 1.8, 1e-6)
    assert len(asked) <= 12


def test_the_smallest_and_the_largest_of_a_family():
    assert smallest_law(LIMITS, lambda law: law.limit >= 7).limit == 7
    assert largest_law(LIMITS, lambda law: law.limit <= 9).limit == 9
    assert largest_law(LIMITS, lambda _: False) is None
    assert smallest_law(LIMITS, lambda _: False) is None
    assert 9.9 <= largest_law(MEANS, lambda law: law.mean <= 10.0).mean <= 10.0
    never = Family("never", lambda size: Poisson(mean=-size))
    assert law_at(never, 2.0) is None
    assert isinstance(law_at(MEANS, 2.0), Geometric)
    with pytest.raises(ArgumentError):
        never.at(2.0)
