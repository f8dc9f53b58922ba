"""A price whose slices and computations cost the same epsilon."""

from __future__ import annotations

from dpselect.ordered.slices.price import (
    SlicePrice,
)
from dpselect.privacy import pure_dp


def equal(epsilon, **more):
    return SlicePrice(slice_epsilon=epsilon, insertion=pure_dp(epsilon=epsilon), **more)
