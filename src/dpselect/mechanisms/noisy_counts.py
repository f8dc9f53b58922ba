"""A noisy count, exact to the last bit: whole-number noise by rational arithmetic (Canonne, Kamath, Steinke 2020)."""

from __future__ import annotations

from fractions import Fraction
from typing import SupportsIndex

from dpselect.errors import ArgumentError, integer, number, rational
from dpselect.numerics import fraction_up
from dpselect.privacy import Adjacency, Guarantee, Spender, paid, pure_dp, zcdp
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource, discrete_gaussian, discrete_laplace, resolve

__all__ = ["discrete_gaussian", "discrete_laplace", "noisy_count", "noisy_count_guarantee"]


def noisy_count(
    count: SupportsIndex,
    *,
    epsilon: float | Fraction | None = None,
    noise_multiplier: float | Fraction | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    spender: Spender | None = None,
    label: str = "noisy count",
    random: RandomSource | None = None,
) -> int:
    """A count of rows with some property (correct predictions, say), plus whole-number noise.

    Give one of `epsilon` (discrete Laplace noise of scale 1/epsilon, pure differential privacy) and
    `noise_multiplier` (discrete Gaussian noise of that parameter, concentrated differential privacy);
    `noisy_count_guarantee` with the same argument is the price. One row changes the count by at most one, whether it
    is added, removed or replaced. The result may be negative or above the number of rows; cutting it off is free.

    With a `spender` that price is reserved, under `label` and for this `adjacency`, before the noise is drawn.

    Raises `ArgumentError` unless exactly one parameter is given and it is positive, `TypeError` for a count that is
    not a whole number.

    >>> from dpselect.randomness import keyed_source
    >>> isinstance(noisy_count(90, epsilon=1.0, random=keyed_source(1)), int)
    True
    """
    random = resolve(random)
    _one_parameter(epsilon, noise_multiplier)
    try:
        whole = integer("count", count)
    except (TypeError, ValueError) as error:
        # without the value, which is the true count
        raise type(error)("count must be a whole number") from None

    def run() -> int:
        if epsilon is not None:
            return whole + discrete_laplace(1 / epsilon_used(_rational("epsilon", epsilon)), random)
        assert noise_multiplier is not None
        return whole + discrete_gaussian(_rational("noise_multiplier", noise_multiplier) ** 2, random)

    if spender is None:  # many are drawn inside of what is priced as a whole
        return run()
    price = noisy_count_guarantee(epsilon=epsilon, noise_multiplier=noise_multiplier, adjacency=adjacency)
    return int(paid(run, price, spender=spender, label=label).value)


def noisy_count_guarantee(
    *,
    epsilon: float | Fraction | None = None,
    noise_multiplier: float | Fraction | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
) -> Guarantee:
    """What `noisy_count` with the same argument promises, from public parameters alone.

    Discrete Laplace: P(count + X = y) is proportional to exp(-epsilon*|y - count|), so neighbouring counts, which
    differ by at most one, give a ratio of at most exp(epsilon): pure. Discrete Gaussian: concentrated differential
    privacy with rho = 1/(2*noise_multiplier**2) is what is charged. The profile of a continuous Gaussian of the same
    parameter is not implied, so `gaussian` is not used. Source: Canonne, Kamath, Steinke 2020, Theorem 4.

    >>> noisy_count_guarantee(epsilon=0.5).pure_epsilon
    0.5
    """
    _one_parameter(epsilon, noise_multiplier)
    if epsilon is not None:
        return pure_dp(epsilon=fraction_up(_rational("epsilon", epsilon)), adjacency=adjacency)
    assert noise_multiplier is not None
    rho = 1 / (2 * _rational("noise_multiplier", noise_multiplier) ** 2)
    return zcdp(rho=fraction_up(rho), adjacency=adjacency)


def _one_parameter(epsilon: float | Fraction | None, noise_multiplier: float | Fraction | None) -> None:
    if (epsilon is None) == (noise_multiplier is None):
        raise ArgumentError("give exactly one of epsilon and noise_multiplier")


def _rational(name: str, value: float | Fraction) -> Fraction:
    """The exact value, between 2**-60 and 2**60, so that the rational arithmetic stays short."""
    number(name, value, at_least=2.0**-60, at_most=2.0**60)
    return rational(name, value)
