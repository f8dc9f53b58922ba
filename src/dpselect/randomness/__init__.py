"""The only place that draws."""

from dpselect.randomness.bulk_gaussian import discrete_gaussian_array
from dpselect.randomness.source import RandomSource, keyed_source, resolve, system_source
from dpselect.randomness.whole_numbers import (
    discrete_gaussian,
    discrete_laplace,
    discrete_laplace_array,
    exponential_coin,
    geometric,
)

__all__ = [
    "RandomSource",
    "discrete_gaussian",
    "discrete_gaussian_array",
    "discrete_laplace",
    "discrete_laplace_array",
    "exponential_coin",
    "geometric",
    "keyed_source",
    "resolve",
    "system_source",
]
