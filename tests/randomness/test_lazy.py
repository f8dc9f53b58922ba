"""Lazy real numbers: decisions bit by bit, enclosures against high precision, distributions by chi-square.

Statistical tests are seeded; a correct sampler would fail one of them at rate 1e-6 were the seed free.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from dpselect.mechanisms import noisy_ranking
from dpselect.mechanisms.noisy_ranking import Contender, ranking
from dpselect.randomness import keyed_source
from dpselect.randomness.lazy import LazyGumbel, LazyLaplace, LazyUniform, coin, exponential_enclosure, tail_enclosure

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
