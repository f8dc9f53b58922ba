"""Log-space arithmetic, searches that return the safe endpoint, outward rounding."""

from dpselect.numerics.logs import fraction_up, log1mexp, log_weighted_sum, sum_up
from dpselect.numerics.search import largest_unsafe, minimise, smallest_safe

__all__ = [
    "ROUND_UP",
    "fraction_up",
    "largest_unsafe",
    "log1mexp",
    "log_weighted_sum",
    "minimise",
    "smallest_safe",
    "sum_up",
]

ROUND_UP = 1.0 + 1e-12
"""Factor by which closed forms in double precision are inflated: their relative error is below 1e-13."""
