"""Ordered data: medians, quantiles, interior points, thresholds, boxes."""

from __future__ import annotations

from dpselect.ordered.columns import Progress
from dpselect.ordered.files import open_column
from dpselect.ordered.private_range import private_range, quantile_interval, range_guarantee
from dpselect.ordered.quantile import QuantileRelease, median, quantile, quantile_guarantee
from dpselect.ordered.quantiles import QuantilesRelease, quantiles, quantiles_guarantee, quantiles_plan
from dpselect.ordered.sources import ColumnSource, SqlTable

__all__ = [
    "ColumnSource",
    "Progress",
    "QuantileRelease",
    "QuantilesRelease",
    "SqlTable",
    "median",
    "open_column",
    "private_range",
    "quantile",
    "quantile_guarantee",
    "quantile_interval",
    "quantiles",
    "quantiles_guarantee",
    "quantiles_plan",
    "range_guarantee",
]
