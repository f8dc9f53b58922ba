"""Integer noise with exact distributions: one at a time by rational arithmetic, and in bulk.

The bulk sampler of Laplace noise computes in double precision and looks at how close each number came to being another
one. It decides the few that came too close with more random bits and rational arithmetic. As long as NumPy's log is
within a factor 1 +- 2**-44 (it is documented to be within a few units of 2**-53) the law is exact.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import number, rational
from dpselect.numerics.search import first_true
from dpselect.randomness.bulk_gaussian import LARGEST_VARIANCE, discrete_gaussian_numbers
from dpselect.randomness.lazy import LazyUniform, exponential_enclosure
from dpselect.randomness.source import RandomSource, resolve
from dpselect.randomness.stream import parse_shape

__all__ = [
    "discrete_gaussian",
    "discrete_gaussian_array",
    "discrete_laplace",
    "discrete_laplace_array",
    "draw_laplace",
    "exponential_coin",
    "geometric",
]

_BLOCK = 1 << 14
_LARGEST = 2.0**20


def exponential_coin(exponent: Fraction | float, random: RandomSource | None = None) -> bool:
    """A coin that lands true with probability exp(-exponent), exactly, for a rational exponent >= 0.

    Canonne, Kamath, Steinke (2020), Algorithm 1: exp(-1) coins for the integer part. For the rest the number of
    successes before the first failure of coins exponent/k is even.

    >>> exponential_coin(0)
    True
    """
    random = resolve(random)
    number("exponent", exponent, at_least=0.0)
    return _coin(*_ratio("exponent", exponent), random)


def _coin(numerator: int, denominator: int, random: RandomSource) -> bool:
    """A coin of probability exp(-numerator/denominator)."""
    whole, rest = divmod(numerator, denominator)
    return random.unit_coins(whole) == whole and _small_coin(rest, denominator, random)


def _ratio(name: str, value: SupportsFloat) -> tuple[int, int]:
    """The numerator and denominator of a public number that `number` has let pass."""
    exact = value if isinstance(value, (int, float, Fraction)) else rational(name, value)
    return exact.as_integer_ratio()


def _small_coin(numerator: int, denominator: int, random: RandomSource) -> bool:
    """A coin of probability exp(-numerator/denominator), for a ratio from 0 to 1."""
    if not numerator:
        return True
    common = math.gcd(numerator, denominator)  # fewer bits are drawn below a smaller number
    least, step = numerator // common, denominator // common
    bound, below = step, random.below
    while below(bound) < least:
        bound += step
    return bool(bound // step & 1)


def geometric(probability: Fraction | float, random: RandomSource | None = None) -> int:
    """Return the number of trials up to and including the first success, on 1, 2, ..., exactly.

    The draw is a search on the survival (1 - probability)**k of one uniform real. It takes about 2 log2(1/probability)
    comparisons.

    Args:
        probability: the chance of a success, from 1e-100 to 1, taken at its exact rational value.
        random: the source of the draw. None, the default, takes a fresh one from system entropy.

    Raises:
        ArgumentError: if `probability` is out of range.
        TypeError: if `probability` is not a number or `random` is not a `RandomSource`.

    >>> geometric(1)
    1
    """
    number("probability", probability, at_least=1e-100, at_most=1.0)
    failure = 1 - rational("probability", probability)
    uniform = LazyUniform(resolve(random))

    def exceeds(count: int) -> bool:
        """Whether the number of trials is above `count`: the uniform real is below failure**count."""
        if not failure:
            return count < 1
        return uniform.below(lambda bits: _power(failure, count, bits))

    return first_true(lambda count: not exceeds(count), 1, None, start=1)


def _power(base: Fraction, exponent: int, bits: int) -> tuple[Fraction, Fraction]:
    """base**exponent for base in [0, 1] by repeated squaring between fixed-point numbers, rounded outwards."""
    scale = bits + 2 * exponent.bit_length() + 4
    low = high = 1 << scale
    for digit in bin(exponent)[2:]:
        low, high = low * low >> scale, -(-high * high >> scale)
        if digit == "1":
            low = low * base.numerator // base.denominator
            high = -(-high * base.numerator // base.denominator)
    return Fraction(low, 1 << scale), Fraction(high, 1 << scale)


def discrete_laplace(scale: Fraction | float, random: RandomSource | None = None) -> int:
    """An integer X with P(X = x) proportional to exp(-|x| / scale), exactly, for a rational scale > 0.

    Canonne, Kamath, Steinke (2020), Algorithm 2, with scale = t/s. Draw U uniform in {0, ..., t-1} and keep it with
    probability exp(-U/t). Add t for each success of a coin of probability exp(-1), divide by s, and choose a sign.

    >>> from dpselect.randomness import keyed_source
    >>> discrete_laplace(Fraction(1, 1000), keyed_source(1))
    0
    """
    random = resolve(random)
    number("scale", scale, at_least=2.0**-60, at_most=2.0**60)  # so that the rational arithmetic stays short
    return draw_laplace(*_ratio("scale", scale), random)


def draw_laplace(t: int, s: int, random: RandomSource) -> int:
    """`discrete_laplace` with scale t/s, a ratio in lowest terms that was checked."""
    while True:
        low = random.below(t)
        if not _small_coin(low, t, random):
            continue
        magnitude = (low + t * random.unit_coins()) // s
        negative = random.bits(1)
        if negative and not magnitude:
            continue
        return -magnitude if negative else magnitude


def discrete_gaussian(variance: Fraction | float, random: RandomSource | None = None) -> int:
    """An integer X with P(X = x) proportional to exp(-x**2 / (2*variance)), exactly, for a rational parameter > 0.

    Canonne, Kamath, Steinke (2020), Algorithm 3. The variance of X is at most `variance` (their Corollary 9).
    """
    random = resolve(random)
    number("variance", variance, at_least=2.0**-120)
    a, b = _ratio("variance", variance)
    t = math.isqrt(a // b) + 1
    while True:
        proposal = draw_laplace(t, 1, random)
        # (|proposal| - variance/t)**2 / (2 variance), in whole numbers
        if _coin((abs(proposal) * b * t - a) ** 2, 2 * a * b * t * t, random):
            return proposal


def discrete_gaussian_array(
    variance: Fraction | float, size: int | tuple[int, ...], random: RandomSource | None = None
) -> NDArray[np.int64]:
    """Return independent integers with the distribution of `discrete_gaussian`, exactly.

    P(X = x) is proportional to exp(-x**2 / (2*variance)). The draws are exact as long as NumPy's exp is within a factor
    1 +- 2**-44.

    Args:
        variance: the parameter of the distribution, from 2**-60 to 2**116, taken at its exact value.
        size: the number of draws, or the shape of the array.
        random: the source of the draws. None, the default, takes a fresh one from system entropy.

    Raises:
        ArgumentError: if `variance` is out of range.
        TypeError: if `variance` is not a number or `random` is not a `RandomSource`.

    >>> from dpselect.randomness import keyed_source
    >>> int(abs(discrete_gaussian_array(4.0, 1000, keyed_source(1))).max()) < 14
    True
    """
    number("variance", variance, at_least=2.0**-60, at_most=LARGEST_VARIANCE)
    return discrete_gaussian_numbers(rational("variance", variance), size, resolve(random))


def discrete_laplace_array(
    scale: Fraction | float, size: int | tuple[int, ...], random: RandomSource | None = None
) -> NDArray[np.int64]:
    """Independent integers with the law of `discrete_laplace`, exactly, for a scale of at most 2**20.

    One 64-bit word each: a sign and the leading 63 bits of a uniform U. For k >= 1, |X| >= k just if
    U < 2 exp(-k/scale) / (1 + exp(-1/scale)). A U nearer to such a bound than rounding can tell is decided exactly.
    Raises `ArgumentError` for a scale outside [2**-60, 2**20].

    >>> from dpselect.randomness import keyed_source
    >>> int(abs(discrete_laplace_array(2.0, 1000, keyed_source(1))).max()) < 40
    True
    """
    number("scale", scale, at_least=2.0**-60, at_most=_LARGEST)
    exact, random = rational("scale", scale), resolve(random)
    shape = parse_shape(size)
    drawn = np.empty(math.prod(shape), dtype=np.int64)
    for start in range(0, len(drawn), _BLOCK):
        part = drawn[start : start + _BLOCK]
        part[:] = _laplace_block(exact, len(part), random)
    return drawn.reshape(shape)


def _laplace_block(scale: Fraction, size: int, random: RandomSource) -> NDArray[np.int64]:
    words = random.words(size)
    bits = words >> np.uint64(1)
    width = float(scale)
    # |X| = floor(1 + scale * log(c / U)) where that is positive, c = 2 exp(-1/scale) / (1 + exp(-1/scale))
    level = 1.0 + width * (math.log(2.0) - 1.0 / width - math.log1p(math.exp(-1.0 / width)) + 63.0 * math.log(2.0))
    position = bits.astype(np.float64)
    position += 0.5
    np.log(position, out=position)
    position *= -width
    position += level
    magnitude = np.floor(position)
    np.subtract(position, magnitude, out=position)
    np.abs(np.subtract(position, 0.5, out=position), out=position)
    margin = 2.0**-20 + width * 2.0**-36
    for place in np.flatnonzero((position > 0.5 - margin) | (bits < np.uint64(1 << 44))):
        guess = max(int(magnitude[place]), 0)
        magnitude[place] = _settle(scale, LazyUniform(random, int(bits[place]), 63), guess)
    np.maximum(magnitude, 0.0, out=magnitude)
    result = magnitude.astype(np.int64)
    return np.where(words & np.uint64(1), -result, result)


def _settle(scale: Fraction, uniform: LazyUniform, guess: int) -> int:
    """The largest k with k = 0 or U < 2 exp(-k/scale) / (1 + exp(-1/scale)), found from a guess."""

    def reaches(k: int) -> bool:
        return uniform.below(lambda bits: _survival(scale, k, bits))

    while guess and not reaches(guess):
        guess -= 1
    while reaches(guess + 1):
        guess += 1
    return guess


def _survival(scale: Fraction, k: int, bits: int) -> tuple[Fraction, Fraction]:
    low, high = exponential_enclosure(k / scale, bits + 4)
    one_low, one_high = exponential_enclosure(1 / scale, bits + 4)
    return 2 * low / (1 + one_high), 2 * high / (1 + one_low)
