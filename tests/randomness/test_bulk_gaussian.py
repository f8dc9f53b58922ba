"""Discrete Gaussian draws in bulk: the exact distribution, its tail and close decisions."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpselect.randomness import bulk_gaussian, discrete_gaussian_array, keyed_source
from tests.randomness.lazy_cases import chi_square

FALSE_ALARM = 1e-6
VARIANCES = [2.0**-60, 0.12, 1.0, 30.0, 1e6, 2.0**38 / 3, 2.0**116]


@pytest.mark.parametrize("variance", VARIANCES)
def test_the_gaussian_table_allows_the_exact_law(variance: float) -> None:
    """What exactness rests on, with 60 digits: no acceptance above one, and no sure coin above an acceptance."""
    table = bulk_gaussian._table(Fraction(variance))
    np.testing.assert_array_equal(np.bincount(table.block), table.entries)
    assert int(table.entries.sum()) == 1 << 16
    mpmath.mp.dps = 60
    kept = mpmath.mpf(0)
    for block, (entries, sure) in enumerate(zip(table.entries[:-1].tolist(), table.sure.tolist(), strict=False)):
        ends = [block * table.width - table.edge + place for place in (0, table.width - 1)]
        densities = [mpmath.exp(-(mpmath.mpf(x) ** 2) / (2 * mpmath.mpf(variance))) for x in ends]
        weight = mpmath.mpf(table.scale) * table.width
        assert weight * max(densities) <= entries
        assert sure <= weight / entries * min(densities) * 2**32
        kept += weight * sum(densities) / 2
    assert kept > 0.95 * 2**16 or variance < 0.02  # few rejections: 0 is one block of three
    # beyond the edge: a coin of one or more is too high, and stays so from step to step
    step = bulk_gaussian._tail_step(Fraction(variance), table.edge)
    at_edge = mpmath.exp(-(mpmath.mpf(table.edge) ** 2) / (2 * mpmath.mpf(variance)))
    assert table.scale * 4 * step * at_edge * 2**32 <= 1
    assert mpmath.exp(-mpmath.mpf(table.edge) * step / mpmath.mpf(variance)) <= 0.5


@pytest.mark.cases(3)
@pytest.mark.parametrize("variance", [0.12, 30.0, 1e6, 2.0**116])
def test_sure_fast_and_exact_decisions_agree(variance: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same words through the table's shortcut, through double precision and through rational arithmetic."""
    table = bulk_gaussian._table(Fraction(variance))
    never_sure = replace(table, sure=np.zeros_like(table.sure))
    drawn = [np.empty(3000, dtype=np.int64) for _ in range(3)]
    rejected = [t.propose(out, keyed_source("agree")) for t, out in zip((table, never_sure), drawn, strict=False)]
    monkeypatch.setattr(bulk_gaussian, "_MARGIN", 2.0**33)
    rejected.append(never_sure.propose(drawn[2], keyed_source("agree")))
    for other, places in zip(drawn[1:], rejected[1:], strict=True):
        np.testing.assert_array_equal(rejected[0], places)
        kept = np.delete(np.arange(3000), places)
        np.testing.assert_array_equal(drawn[0][kept], other[kept])


def test_proposals_beyond_the_edge_have_their_law() -> None:
    """P(number) times the factor of its density is the scale of the table, for every number beyond the edge."""
    table, random = bulk_gaussian._table(Fraction(3000)), keyed_source("beyond")
    step = bulk_gaussian._tail_step(Fraction(3000), table.edge)
    found = [table._beyond(random) for _ in range(4000)]
    law = {}
    for rounds in range(40):
        for place in range(step):
            for x in (table.edge + rounds * step + place, -1 - table.edge - rounds * step - place):
                law[x] = 2.0 ** -(rounds + 2) / step
    assert all(weight * Fraction(law[x]) == Fraction(table.scale) for x, weight in found)
    assert chi_square(np.array([x for x, _ in found]), law) > FALSE_ALARM


def test_a_tail_proposal_that_is_accepted_gets_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """All entries on the tails and every coin at zero: with an acceptance of one each gets a number beyond the edge."""
    table = bulk_gaussian._table(Fraction(4))
    tails = replace(table, block=np.full_like(table.block, len(table.entries) - 1))
    monkeypatch.setattr(type(tails), "_exactly", lambda self, x, weight, bits: (Fraction(1), Fraction(1)))
    monkeypatch.setattr(bulk_gaussian, "_MARGIN", 2.0**33)
    out = np.zeros(50, dtype=np.int64)
    assert len(tails.propose(out, keyed_source("tails"))) == 0
    assert np.all((out >= table.edge) | (out < -table.edge))


def test_normal_doubles_are_the_discrete_gaussian_on_a_fine_grid() -> None:
    whole = discrete_gaussian_array(2.0**116, (3, 1000), keyed_source("fine"))
    np.testing.assert_array_equal(keyed_source("fine").normal((3, 1000)), whole * 2.0**-58)
    # low bits of the integers are fair: 3000 draws, six standard errors
    for bit in (0, 7, 20, 45):
        assert abs(np.mean((whole >> bit) & 1) - 0.5) < 6 * 0.5 / 3000**0.5
