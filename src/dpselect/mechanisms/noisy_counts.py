"""A noisy count, exact to the last bit: integer noise by rational arithmetic (Canonne, Kamath, Steinke 2020)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import SupportsIndex

from dpselect.caching import CopiedByFields
from dpselect.capabilities import field_values
from dpselect.errors import ArgumentError, integer, number, rational
from dpselect.mechanisms.mechanism import Mechanism, configured, released_value
from dpselect.numerics.logs import fraction_up
from dpselect.privacy import Adjacency, Guarantee, Spender, pure_dp, zcdp
from dpselect.privacy.output.amounts import epsilon_used
from dpselect.randomness import RandomSource
from dpselect.randomness.integers import discrete_gaussian, discrete_laplace, draw_laplace

__all__ = ["NoisyCount", "discrete_gaussian", "discrete_laplace", "noisy_count"]


@dataclass(frozen=True, kw_only=True)
class NoisyCount(CopiedByFields, Mechanism):
    """A count of rows with some property (correct predictions, say), plus integer noise.

    One row changes the count by at most one, whether it is added, removed or replaced. The result may be negative or
    above the number of rows. You may clip it at no cost.

    Args:
        epsilon: for discrete Laplace noise of scale 1/epsilon, with pure differential privacy, in [2**-60, 2**60].
        noise_multiplier: for discrete Gaussian noise of that parameter, in rows, with concentrated differential
            privacy, in [2**-60, 2**60]. Give this or `epsilon`.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.

    Raises:
        ArgumentError: unless exactly one of the two is given and in range. A call raises it, without the value, for a
            count with a fraction.
        AdjacencyError: if `adjacency` is neither of the two.
        TypeError: if a parameter is not a number. A call raises it, without the value, for a count that is not a
            number.

    >>> NoisyCount(epsilon=0.5).guarantee.pure_epsilon, isinstance(NoisyCount(epsilon=0.5)(90).value, int)
    (0.5, True)
    """

    epsilon: float | Fraction | None = None
    noise_multiplier: float | Fraction | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        if (self.epsilon is None) == (self.noise_multiplier is None):
            raise ArgumentError("give exactly one of epsilon and noise_multiplier. Write epsilon=1.0")
        _ = self._parameter
        super().__post_init__()

    @cached_property
    def _parameter(self) -> Fraction:
        """The exact value, between 2**-60 and 2**60, so that the rational arithmetic stays short."""
        name = "epsilon" if self.noise_multiplier is None else "noise_multiplier"
        given = field_values(self)[name]
        number(name, given, at_least=2.0**-60, at_most=2.0**60)
        return rational(name, given)

    @property
    def guarantee(self) -> Guarantee:
        """Discrete Laplace: pure. Discrete Gaussian: concentrated, rho = 1/(2*noise_multiplier**2).

        P(count + X = y) is proportional to exp(-epsilon*|y - count|), so neighbouring counts, which differ by at most
        one, give a ratio of at most exp(epsilon). The profile of a continuous Gaussian of the same parameter is not
        implied by the discrete one, so `gaussian` is not used. Source: Canonne, Kamath, Steinke 2020, Theorem 4.
        """
        if self.noise_multiplier is None:
            return pure_dp(epsilon=fraction_up(self._parameter), adjacency=self.adjacency)
        return zcdp(rho=fraction_up(1 / (2 * self._parameter**2)), adjacency=self.adjacency)

    def prepared(self, count: SupportsIndex) -> Callable[[RandomSource], int]:
        """The count with noise."""
        try:
            whole = integer("count", count)
        except (TypeError, ValueError) as error:
            # without the value, which is the true count
            raise type(error)("count must be an integer. Write noisy_count(len(...), epsilon=1.0) for rows") from None
        if self.noise_multiplier is None:
            scale = _laplace_scale(self._parameter)
            return lambda random: whole + draw_laplace(*scale, random)
        variance = self._parameter**2
        return lambda random: whole + discrete_gaussian(variance, random)


@lru_cache(maxsize=256)
def _laplace_scale(epsilon: Fraction) -> tuple[int, int]:
    return (1 / epsilon_used(epsilon)).as_integer_ratio()


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
    """Return `count` plus integer noise, as `NoisyCount` with the same parameters draws it.

    Args:
        count: private: an integer that one row changes by at most one. You must ensure this.
        epsilon: for discrete Laplace noise of scale 1/epsilon, in [2**-60, 2**60].
        noise_multiplier: for discrete Gaussian noise of that parameter, in rows, in [2**-60, 2**60]. Give this or
            `epsilon`.
        adjacency: which data sets are neighbours, as `Adjacency` or its text. The default is add_or_remove_one.
        spender: the budget that pays before the noise is drawn. None, the default, charges nothing.
        label: its public name in the spender's record.
        random: the source of randomness. None, the default, is a fresh one from system entropy. Only tests should fix
            it.

    Raises:
        ArgumentError: unless exactly one of `epsilon` and `noise_multiplier` is given and in range. Also, without the
            value, for a count with a fraction.
        AdjacencyError: if `adjacency` is neither of the two.
        TypeError: if a parameter is not a number. Also, without the value, for a count that is not a number.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> isinstance(noisy_count(90, epsilon=1.0, random=keyed_source(1)), int)
    True
    """
    mechanism = configured(NoisyCount, epsilon=epsilon, noise_multiplier=noise_multiplier, adjacency=adjacency)
    return int(released_value(mechanism, count, spender=spender, label=label, random=random))
