"""Real numbers known bit by bit: decisions about them are exact and read no more digits than they need.

A uniform real is a growing string of random bits. It is compared with another real number through
enclosures as narrow as needed. The comparison is decided as soon as the two intervals part, which takes 64 bits in all
but 2**-60 of the cases.
The decision then has exactly the probability that real arithmetic gives it, without any floating-point rounding.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from fractions import Fraction

from dpselect.randomness.stream import BitStream

__all__ = ["Enclosure", "LazyGumbel", "LazyLaplace", "LazyUniform", "coin", "exponential_enclosure", "tail_enclosure"]

Enclosure = Callable[[int], tuple[Fraction, Fraction]]
"""bits -> (low, high): a real number is in between, and the width is at most 2**-bits (up to a small factor)."""

_STEP = 64


def _digits(bits: int) -> int:
    return int(bits * 0.30103) + 8


def _context(digits: int, rounding: str) -> decimal.Context:
    return decimal.Context(
        prec=digits, rounding=rounding, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX, traps=[decimal.InvalidOperation]
    )


def _divide(value: Fraction, digits: int, rounding: str) -> decimal.Decimal:
    """The fraction as a decimal of `digits` digits, rounded as told."""
    return _context(digits, rounding).divide(decimal.Decimal(value.numerator), decimal.Decimal(value.denominator))


def exponential_enclosure(exponent: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """exp(-exponent) for exponent >= 0 between two rationals at most 2**-bits apart.

    Python's decimal exponential is correctly rounded, so one step outwards encloses it.

    >>> low, high = exponential_enclosure(Fraction(1), 80)
    >>> float(low), 0 < high - low < Fraction(1, 2**80)
    (0.36787944117144233, True)
    """
    if exponent == 0:
        return Fraction(1), Fraction(1)
    if exponent >= bits:
        return Fraction(0), Fraction(1, 1 << bits)
    digits = _digits(bits) + len(str(int(exponent)))
    near = _context(digits, decimal.ROUND_HALF_EVEN)
    # copy_negate and not a minus sign, which would round to the thread's default precision
    longest, shortest = (_divide(exponent, digits, way) for way in (decimal.ROUND_CEILING, decimal.ROUND_FLOOR))
    smallest = near.exp(longest.copy_negate())
    largest = smallest if longest == shortest else near.exp(shortest.copy_negate())
    return Fraction(near.next_minus(smallest)), min(Fraction(near.next_plus(largest)), Fraction(1))


def _minus_log(value: Fraction, digits: int, *, upwards: bool) -> Fraction:
    """-log(value) for 0 < value <= 1, rounded up or down, never below zero."""
    if upwards:
        return -_log(value, digits, upwards=False)
    return max(-_log(value, digits, upwards=True), Fraction(0))


class LazyUniform:
    """A uniform real in (0, 1). Its bits are drawn when a decision needs them and stay what they were.

    `known` and `known_bits` are leading bits that were drawn before.
    """

    __slots__ = ("_bits", "_random", "_value")

    def __init__(self, random: BitStream, known: int = 0, known_bits: int = 0) -> None:
        self._random, self._value, self._bits = random, known, known_bits

    def extend(self, bits: int) -> tuple[int, int]:
        """(m, b) with b >= bits: the number is between m/2**b and (m+1)/2**b."""
        while self._bits < bits:
            self._value = (self._value << _STEP) | self._random.bits(_STEP)
            self._bits += _STEP
        return self._value, self._bits

    def below(self, enclosure: Enclosure) -> bool:
        """Whether the number is below the enclosed one, exactly."""
        value, bits = self.extend(_STEP)
        while True:
            low, high = enclosure(bits + 2)
            if (value + 1) * low.denominator <= low.numerator << bits:
                return True
            if value * high.denominator >= high.numerator << bits:
                return False
            value, bits = self.extend(bits + 1)


def coin(enclosure: Enclosure, random: BitStream) -> bool:
    """A coin that lands true with exactly the enclosed probability.

    >>> from dpselect.randomness.source import keyed_source
    >>> coin(lambda bits: (Fraction(1), Fraction(1)), keyed_source(1))
    True
    """
    return LazyUniform(random).below(enclosure)


class LazyLaplace:
    """A Laplace real of scale one: a random sign and minus the logarithm of a `LazyUniform`. Secret: no repr."""

    __slots__ = ("_magnitude", "_negative")

    def __init__(self, random: BitStream, known: int = 0, known_bits: int = 0, negative: bool | None = None) -> None:
        self._negative = bool(random.bits(1)) if negative is None else negative
        self._magnitude = LazyUniform(random, known, known_bits)

    def enclosure(self, bits: int) -> tuple[Fraction, Fraction]:
        """(low, high) around the number, at most about 2**-bits apart. More bits of it are drawn as needed."""
        value, known = self._magnitude.extend(bits + 8)
        while value.bit_length() < bits + 8:  # leading zeros: the logarithm feels the relative width
            value, known = self._magnitude.extend(known + 1)
        digits = _digits(bits) + len(str(known))
        low = _minus_log(Fraction(value + 1, 1 << known), digits, upwards=False)
        high = _minus_log(Fraction(value, 1 << known), digits, upwards=True)
        return (-high, -low) if self._negative else (low, high)

    def __repr__(self) -> str:
        return "<LazyLaplace>"


class LazyGumbel:
    """A Gumbel real: minus the logarithm of E = -log(1 - V), V a `LazyUniform`. Secret: no repr."""

    __slots__ = ("_uniform",)

    def __init__(self, random: BitStream, known: int = 0, known_bits: int = 0) -> None:
        self._uniform = LazyUniform(random, known, known_bits)

    def enclosure(self, bits: int) -> tuple[Fraction, Fraction]:
        """(low, high) around the number, at most 2**-bits apart. More bits of it are drawn as needed."""
        precision = bits
        while True:
            value, known = self._uniform.extend(precision + 8)
            if 0 < value < (1 << known) - 1:
                digits = _digits(known) + len(str(known))
                low = _minus_log(Fraction((1 << known) - value, 1 << known), digits, upwards=False)
                high = _minus_log(Fraction((1 << known) - value - 1, 1 << known), digits, upwards=True)
                if low > 0 and (high - low) * (2 << bits) < low:
                    return _log(1 / high, digits, upwards=False), _log(1 / low, digits, upwards=True)
            precision = known + 1

    def __repr__(self) -> str:
        return "<LazyGumbel>"


def _log(value: Fraction, digits: int, *, upwards: bool) -> Fraction:
    """log(value) for value > 0, rounded up or down."""
    near = _context(digits, decimal.ROUND_HALF_EVEN)
    if upwards:
        return Fraction(near.next_plus(near.ln(_divide(value, digits, decimal.ROUND_CEILING))))
    return Fraction(near.next_minus(near.ln(_divide(value, digits, decimal.ROUND_FLOOR))))


def tail_enclosure(low: Fraction, high: Fraction, bits: int) -> tuple[Fraction, Fraction]:
    """P(L >= y) for a standard Laplace L and a real y between `low` and `high`.

    exp(-y)/2 for y >= 0 and 1 - exp(y)/2 below. It falls with y.
    """

    def tail(y: Fraction) -> tuple[Fraction, Fraction]:
        below, above = exponential_enclosure(abs(y), bits)
        return (below / 2, above / 2) if y >= 0 else (1 - above / 2, 1 - below / 2)

    return tail(high)[0], tail(low)[1]
