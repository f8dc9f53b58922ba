"""Exact samplers: decisions bit by bit, enclosures against high precision, laws by chi-square.

Statistical tests are seeded; a correct sampler would fail one of them at rate 1e-6 were the seed free.
"""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.mechanisms import noisy_ranking
from dpselect.mechanisms.noisy_ranking import Contender, ranking
from dpselect.randomness import bulk_gaussian, discrete_gaussian_array, keyed_source, whole_numbers
from dpselect.randomness.lazy import LazyGumbel, LazyLaplace, LazyUniform, coin, exponential_enclosure, tail_enclosure
from dpselect.randomness.whole_numbers import (
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_array,
    exponential_coin,
    geometric,
)

FALSE_ALARM = 1e-6


class Script:
    """A source whose 64-bit words are written down."""

    def __init__(self, *words: int) -> None:
        self.words = list(words)

    def bits(self, count: int) -> int:
        assert count == 64
        return self.words.pop(0)


# ---- decisions ------------------------------------------------------------------------------------------------------


def test_a_uniform_is_compared_with_exactly_as_many_bits_as_it_takes() -> None:
    third = Fraction(1, 3)
    word = (1 << 64) // 3  # the first 64 bits of a third: 0101...
    for second, below in ((0, True), (word - 1, True), (word + 1, False), ((1 << 64) - 1, False)):
        script: Any = Script(word, second)
        assert LazyUniform(script).below(lambda _: (third, third)) is below
        assert not script.words
    script = Script(word - 1)
    assert LazyUniform(script).below(lambda _: (third, third))


def test_wide_enclosures_ask_for_more() -> None:
    """The number one half, enclosed no better than asked; a word at the border needs the second one."""
    asked = []

    def half(bits: int) -> tuple[Fraction, Fraction]:
        asked.append(bits)
        return Fraction(1, 2) - Fraction(1, 2**bits), Fraction(1, 2) + Fraction(1, 2**bits)

    script: Any = Script(1 << 63, 5)
    assert not LazyUniform(script).below(half)
    assert len(asked) == 2
    assert asked[1] > asked[0] >= 64


def test_known_bits_stay_what_they_were() -> None:
    script: Any = Script(7)
    uniform = LazyUniform(script, known=0b101, known_bits=3)
    value, bits = uniform.extend(10)
    assert bits == 67
    assert value >> 64 == 0b101
    assert value & (2**64 - 1) == 7
    assert uniform.extend(20) == (value, bits)


def test_coins_of_certain_outcome() -> None:
    random = keyed_source(1)
    assert all(coin(lambda _: (Fraction(1), Fraction(1)), random) for _ in range(50))
    assert not any(coin(lambda _: (Fraction(0), Fraction(0)), random) for _ in range(50))


# ---- enclosures -----------------------------------------------------------------------------------------------------


@given(
    numerator=st.integers(0, 10**40),
    denominator=st.integers(1, 10**40),
    bits=st.integers(8, 300),
)
def test_exponential_enclosures_hold(numerator: int, denominator: int, bits: int) -> None:
    exponent = Fraction(numerator, denominator)
    low, high = exponential_enclosure(exponent, bits)
    assert 0 <= low <= high <= 1
    assert high - low <= Fraction(1, 1 << bits)
    if exponent < 10_000:
        mpmath.mp.prec = 500
        true = mpmath.exp(-mpmath.mpf(exponent.numerator) / exponent.denominator)
        assert mpmath.mpf(low.numerator) / low.denominator <= true <= mpmath.mpf(high.numerator) / high.denominator


def test_exponential_enclosures_of_extreme_exponents() -> None:
    assert exponential_enclosure(Fraction(0), 64) == (Fraction(1), Fraction(1))
    assert exponential_enclosure(Fraction(10) ** 500, 64) == (Fraction(0), Fraction(1, 2**64))
    low, high = exponential_enclosure(Fraction(1, 10**400), 64)
    assert low < 1
    assert high == 1


@given(y=st.fractions(-50, 50), bits=st.integers(16, 200))
def test_tail_enclosures_hold(y: Fraction, bits: int) -> None:
    low, high = tail_enclosure(y, y, bits)
    mpmath.mp.prec = 400
    z = mpmath.mpf(y.numerator) / y.denominator
    true = mpmath.exp(-z) / 2 if z >= 0 else 1 - mpmath.exp(z) / 2
    assert mpmath.mpf(low.numerator) / low.denominator <= true <= mpmath.mpf(high.numerator) / high.denominator
    assert high - low <= Fraction(1, 1 << bits)


@pytest.mark.parametrize("make", [LazyLaplace, LazyGumbel])
def test_lazy_reals_only_become_narrower(make: Any) -> None:
    for seed in range(40):
        noise = make(keyed_source(seed))
        before = noise.enclosure(16)
        for bits in (40, 64, 200, 500):
            low, high = noise.enclosure(bits)
            assert before[0] <= low <= high <= before[1]
            assert high - low <= Fraction(8, 1 << bits)
            before = low, high
        assert str(float(before[0]))[:5] not in repr(noise)


def test_lazy_reals_with_leading_zeros() -> None:
    """A word that is zero says nothing about the logarithm: more are drawn."""
    script: Any = Script(0, 0, 1 << 63, 3, 4, 5)
    low, high = LazyLaplace(script, negative=False).enclosure(32)
    assert float(low) == pytest.approx(129 * math.log(2), rel=1e-9)
    assert high - low < Fraction(1, 2**31)
    script = Script(0, 1 << 63, 1, 2, 3, 4)
    low, _ = LazyGumbel(script).enclosure(32)
    assert float(low) == pytest.approx(65 * math.log(2), rel=1e-9)


@pytest.mark.full
def test_lazy_reals_have_their_laws() -> None:
    """Kolmogorov-Smirnov on 2,000 each."""
    for make, law in ((LazyLaplace, "laplace"), (LazyGumbel, "gumbel_r")):
        random = keyed_source(law)
        drawn = [float(make(random).enclosure(60)[0]) for _ in range(2000)]
        assert stats.kstest(drawn, law).pvalue > FALSE_ALARM


def test_ranking_refines_until_it_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting from a single bit each, the order is that of the numbers themselves."""
    monkeypatch.setattr(noisy_ranking, "_BITS", 1)
    random = keyed_source("rank")
    for _ in range(50):
        contenders = [Contender(i, Fraction(i, 1000), LazyLaplace(random)) for i in range(6)]
        ranked = ranking(contenders, 4)
        values = [float(c.enclosure(100)[0]) for c in contenders]
        assert ranked == sorted(range(6), key=lambda i: -values[i])[:4]
    assert ranking([], 3) == []


# ---- integers --------------------------------------------------------------------------------------------------


def chi_square(drawn: np.ndarray, law: dict[int, float]) -> float:
    big = {k: p for k, p in law.items() if p * len(drawn) >= 10}
    observed = np.array([np.count_nonzero(drawn == k) for k in big], dtype=float)
    expected = np.array(list(big.values())) * len(drawn)
    observed, expected = (
        np.append(observed, len(drawn) - observed.sum()),
        np.append(expected, len(drawn) - expected.sum()),
    )
    if expected[-1] < 10:
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def laplace_law(scale: float, reach: int) -> dict[int, float]:
    return {k: math.tanh(0.5 / scale) * math.exp(-abs(k) / scale) for k in range(-reach, reach + 1)}


def gaussian_law(variance: float, reach: int) -> dict[int, float]:
    weights = {k: math.exp(-k * k / (2 * variance)) for k in range(-reach, reach + 1)}
    total = math.fsum(weights.values())
    return {k: w / total for k, w in weights.items()}


@pytest.mark.parametrize("exponent", [Fraction(1, 7), Fraction(1), Fraction(5, 2)])
def test_exponential_coin(exponent: Fraction) -> None:
    random, draws = keyed_source(str(exponent)), 5000
    heads = sum(exponential_coin(exponent, random) for _ in range(draws))
    assert stats.binomtest(heads, draws, math.exp(-exponent)).pvalue > FALSE_ALARM


@pytest.mark.cases(2)
@pytest.mark.parametrize("probability", [Fraction(1, 3), 0.9, Fraction(1, 50)])
def test_geometric(probability: Fraction | float) -> None:
    random, p = keyed_source(str(probability)), float(probability)
    drawn = np.array([geometric(probability, random) for _ in range(4000)])
    assert drawn.min() == 1
    assert chi_square(drawn, {k: p * (1 - p) ** (k - 1) for k in range(1, 400)}) > FALSE_ALARM


@pytest.mark.full
def test_geometric_of_a_tiny_probability() -> None:
    """No loop over trials: a success in 2**60 trials on average is found at once."""
    random = keyed_source("tiny")
    drawn = [geometric(Fraction(1, 2**60), random) / 2**60 for _ in range(500)]
    assert stats.kstest(drawn, "expon").pvalue > FALSE_ALARM


@pytest.mark.parametrize("scale", [0.2, 1.0, 7.3])
def test_discrete_laplace(scale: float) -> None:
    one = np.array([discrete_laplace(scale, keyed_source(f"{scale} {i}")) for i in range(1500)])
    many = discrete_laplace_array(scale, (500, 400), keyed_source(str(scale)))
    assert many.shape == (500, 400)
    for drawn in (one, many.ravel()):
        assert chi_square(drawn, laplace_law(scale, 200)) > FALSE_ALARM


@pytest.mark.cases(2)
@pytest.mark.parametrize("variance", [0.12, 1.0, 30.0])
def test_discrete_gaussian(variance: float) -> None:
    one = np.array([discrete_gaussian(variance, keyed_source(f"{variance} {i}")) for i in range(1500)])
    many = discrete_gaussian_array(variance, (500, 400), keyed_source(str(variance)))
    assert many.shape == (500, 400)
    for drawn in (one, many.ravel()):
        assert chi_square(drawn, gaussian_law(variance, 200)) > FALSE_ALARM


def test_bulk_samplers_at_large_scales() -> None:
    drawn = discrete_laplace_array(2.0**20, 20_000, keyed_source("large"))
    assert stats.kstest(drawn / 2.0**20, "laplace").pvalue > FALSE_ALARM
    for exponent in (19, 58):
        drawn = discrete_gaussian_array(4.0**exponent, 20_000, keyed_source("large"))
        assert stats.kstest(drawn / 2.0**exponent, "norm").pvalue > FALSE_ALARM


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


@pytest.mark.full
def test_close_calls_are_settled_exactly() -> None:
    """Every place of a block goes through the exact path and comes out as double precision had it."""
    random = keyed_source("settle")
    for scale in (Fraction(1, 3), Fraction(5), Fraction(1000)):
        for word in random.words(25):
            bits = int(word) >> 1
            u = (bits + 0.5) / 2.0**63
            c = 2 * math.exp(-1 / scale) / (1 + math.exp(-1 / scale))
            position = 1 + float(scale) * (math.log(c) - math.log(u))
            for guess in (0, max(int(position), 0), max(int(position), 0) + 2):
                got = whole_numbers._settle(scale, LazyUniform(random, bits, 63), guess)
                assert got == max(math.floor(position), 0)


def test_parameters_out_of_range() -> None:
    for scale in (0.0, -1.0, math.nan, 2.0**21):
        with pytest.raises(ArgumentError, match="scale"):
            discrete_laplace_array(scale, 3)
    with pytest.raises(ArgumentError, match="variance"):
        discrete_gaussian_array(0.0, 3)
    with pytest.raises(ArgumentError, match="probability"):
        geometric(0.0)
    with pytest.raises(ArgumentError, match="exponent"):
        exponential_coin(-1)
