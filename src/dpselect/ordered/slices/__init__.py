"""Reorder-Slice-Compute: slice after slice of one data set at a price that hardly grows (Cohen et al. 2022)."""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
