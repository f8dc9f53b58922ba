"""Reorder-Slice-Compute: slice after slice of one data set at a price that hardly grows (Cohen et al. 2022)."""
