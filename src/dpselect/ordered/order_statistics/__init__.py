"""Quantiles, medians and ranges of one column."""
