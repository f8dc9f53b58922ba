"""Noise on a grid: the rounding lemma exactly, the samplers' laws by chi-square, the prices against their source."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.mechanisms import discrete_gaussian, discrete_laplace
from dpselect.mechanisms.grid import (
    add_on_grid,
    gaussian_integers,
    gaussian_steps,
    grid_at_most,
    round_to_grid,
    rounding_sensitivity,
)
from dpselect.randomness import keyed_source

FALSE_ALARM = 1e-6
"""The rate at which a chi-square test of a correct sampler would fail, were the seed not fixed."""
exponents = st.integers(min_value=-30, max_value=10)
numbers = st.one_of(
    st.floats(min_value=-1e6, max_value=1e6),
    st.integers(min_value=-64, max_value=64).map(lambda k: k / 8),  # ties on many grids
)


def exact_round(x: Fraction, g: Fraction) -> Fraction:
    return g * math.floor(x / g + Fraction(1, 2))


@given(numbers, numbers, exponents)
def test_grid_lemma_holds_exactly(value: float, noise: float, exponent: int) -> None:
    granularity = 2.0**exponent
    g = Fraction(granularity)
    on_grid = exact_round(Fraction(value), g)
    expected = exact_round(on_grid + Fraction(noise), g)
    assert Fraction(float(add_on_grid(value, noise, granularity))) == expected
    assert Fraction(float(round_to_grid(value, granularity))) == on_grid


def test_rounding_half_to_even_would_break_the_lemma() -> None:
    # rint(1 + 0.5) = 2 but 1 + rint(0.5) = 1: the result would depend on the parity of the data
    assert np.rint(1 + 0.5) != 1 + np.rint(0.5)
    assert add_on_grid(1.0, 0.5, 1.0) == 2.0


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), exponents)
def test_rounding_adds_no_more_than_charged(pairs: list[tuple[float, float]], exponent: int) -> None:
    granularity = 2.0**exponent
    a, b = np.array(pairs).T
    before = sum((Fraction(x) - Fraction(y)) ** 2 for x, y in pairs)
    rounded = zip(round_to_grid(a, granularity), round_to_grid(b, granularity), strict=True)
    after = sum((Fraction(float(x)) - Fraction(float(y))) ** 2 for x, y in rounded)
    # |after| <= |before| + c, squared twice to stay in exact arithmetic
    charged = Fraction(rounding_sensitivity(len(pairs), granularity))
    excess = after - before - charged**2
    assert excess <= 0 or excess**2 <= 4 * before * charged**2


def test_rounding_charge_is_attained() -> None:
    # two nearby vectors land in neighbouring cells in every coordinate
    moved = round_to_grid(np.full(9, 0.5), 1.0) - round_to_grid(np.full(9, 0.499999), 1.0)
    assert np.linalg.norm(moved) == pytest.approx(rounding_sensitivity(9, 1.0), rel=1e-12)


@pytest.mark.parametrize("granularity", [0.0, -1.0, 0.3, math.inf, math.nan])
def test_granularity_must_be_a_power_of_two(granularity: float) -> None:
    with pytest.raises(ArgumentError, match="granularity"):
        add_on_grid(1.0, 1.0, granularity)


def test_non_finite_values_never_fail_and_touch_only_themselves() -> None:
    with np.errstate(invalid="raise", divide="raise"):
        found = add_on_grid([math.nan, math.inf, 1e308, 0.25], np.zeros(4), 2.0**-40)
    assert np.all(np.isfinite(found))
    assert found[[0, 1, 3]].tolist() == [0.0, 0.0, 0.25]


def test_noise_that_the_grid_cannot_carry_is_refused() -> None:
    for noise in (math.nan, math.inf, 2.0**52):
        with pytest.raises(ArgumentError, match="noise"):
            add_on_grid(0.0, noise, 1.0)


@given(st.floats(min_value=1e-300, max_value=1e300))
def test_grid_at_most_is_the_next_power_of_two_below(limit: float) -> None:
    found = grid_at_most(limit)
    assert math.frexp(found)[0] == 0.5
    assert found <= limit < 2 * found


def chi_square_p_value(counts: np.ndarray, probabilities: np.ndarray) -> float:
    expected = probabilities * counts.sum()
    assert expected.min() > 5
    return float(stats.chi2.sf(((counts - expected) ** 2 / expected).sum(), len(counts) - 1))


def normal_cells(draws: np.ndarray, deviation: float) -> float:
    cells = 64
    edges = stats.norm.ppf(np.arange(1, cells) / cells) * deviation
    counts = np.bincount(np.searchsorted(edges, draws), minlength=cells)
    return chi_square_p_value(counts, np.full(cells, 1 / cells))


@pytest.mark.statistical
@pytest.mark.parametrize("deviation", [2.0**24, 1.4 * 2.0**32, 1.42 * 2.0**32, 2.0**56])
def test_gaussian_steps_have_the_normal_law(deviation: float) -> None:
    """False alarm 1e-6; a deviation off by 2 % is detected (asserted on the same draws, power above 0.999)."""
    draws = gaussian_steps(deviation, 200_000, keyed_source("gaussian steps")).astype(float)
    assert normal_cells(draws, deviation) > FALSE_ALARM
    assert normal_cells(draws, 1.02 * deviation) < FALSE_ALARM


@pytest.mark.statistical
def test_gaussian_steps_fill_the_low_bits_evenly() -> None:
    """False alarm 1e-6. Inverting a 64-bit word at this deviation leaves the last bits of large draws empty."""
    draws = gaussian_steps(2.0**55, 64_000, keyed_source("low bits"))
    large = draws[np.abs(draws) > 2**56]  # beyond two deviations
    counts = np.bincount((large & 7).astype(int), minlength=8)
    assert chi_square_p_value(counts, np.full(8, 1 / 8)) > FALSE_ALARM
    inverted = np.rint(stats.norm.ppf(keyed_source("low bits").uniform(64_000)) * 2.0**55).astype(np.int64)
    large = inverted[np.abs(inverted) > 2**56]
    assert chi_square_p_value(np.bincount((large & 7).astype(int), minlength=8), np.full(8, 1 / 8)) < FALSE_ALARM


@pytest.mark.parametrize("deviation", [1.0, 2.0**23, 2.0**57, math.nan])
def test_gaussian_steps_refuse_a_coarse_or_overflowing_grid(deviation: float) -> None:
    with pytest.raises(ArgumentError, match="deviation"):
        gaussian_steps(deviation, 3)


def whole_number_p_value(draws: list[int], weight: object) -> float:
    """Chi-square over the values -r..r that expect at least 20 draws, and one cell for the rest."""
    support = np.arange(-400, 401)
    probabilities = np.array([weight(int(x)) for x in support])  # type: ignore[operator]
    probabilities /= probabilities.sum()
    kept = probabilities * len(draws) >= 20
    counts = np.array([draws.count(int(x)) for x in support[kept]] + [0])
    counts[-1] = len(draws) - counts.sum()
    cells = np.append(probabilities[kept], 1 - probabilities[kept].sum())
    if cells[-1] * len(draws) <= 5:
        counts, cells = np.append(counts[:-2], counts[-2:].sum()), np.append(cells[:-2], cells[-2:].sum())
    return chi_square_p_value(counts, cells)


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("scale", [Fraction(1, 2), Fraction(7, 3), Fraction(10)])
def test_discrete_laplace_law(scale: Fraction) -> None:
    """False alarm 1e-6; a scale off by 15 % is detected (asserted on the same draws)."""
    source = keyed_source("discrete laplace")
    draws = [discrete_laplace(scale, source) for _ in range(12_000)]
    assert whole_number_p_value(draws, lambda x: math.exp(-abs(x) / scale)) > FALSE_ALARM
    assert whole_number_p_value(draws, lambda x: math.exp(-abs(x) / (1.15 * scale))) < FALSE_ALARM


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(5, 2), Fraction(49)])
def test_discrete_gaussian_law(variance: Fraction) -> None:
    """False alarm 1e-6; a variance off by 20 % is detected (asserted on the same draws)."""
    source = keyed_source("discrete gaussian")
    draws = [discrete_gaussian(variance, source) for _ in range(12_000)]
    assert whole_number_p_value(draws, lambda x: math.exp(-x * x / (2 * variance))) > FALSE_ALARM
    assert whole_number_p_value(draws, lambda x: math.exp(-x * x / (2.4 * variance))) < FALSE_ALARM


@pytest.mark.parametrize("deviation", [0.3, 1.0, 40.0])
def test_gaussian_integers_have_the_law_of_a_rounded_gaussian(deviation: float) -> None:
    drawn = gaussian_integers(deviation, 20_000, keyed_source(2))
    most = math.ceil(2.5 * deviation)
    counts = np.bincount(np.clip(drawn, -most, most) + most, minlength=2 * most + 1)
    ends = np.concatenate([[-np.inf], np.arange(-most, most) + 0.5, [np.inf]])
    expected = 20_000 * np.diff(stats.norm.cdf(ends / deviation))
    assert stats.chisquare(counts, expected).pvalue > FALSE_ALARM
    with pytest.raises(ArgumentError, match="deviation"):
        gaussian_integers(2.0**-21, 3)
