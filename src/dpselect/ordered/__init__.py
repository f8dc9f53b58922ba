"""Ordered data: medians, quantiles, interior points, thresholds, boxes."""

from __future__ import annotations

from dpselect.ordered.interior_points.interior_point import (
    choose_method,
    cumulative_interior_point,
    interior_point,
    interior_point_guarantee,
)
from dpselect.ordered.interior_points.optimisation_reduction import maximize_by_interior_point, reduction_error
from dpselect.ordered.interior_points.quasi_concave import (
    RisingAndFalling,
    maximize_over_runs,
    maximize_quasi_concave,
    quasi_concave_guarantee,
    quasi_concave_hull,
)
from dpselect.ordered.interior_points.rows import interior_point_rows
from dpselect.ordered.labelled_rows.rectangle_plan import RectanglePlan, rectangle_plan, rectangle_rows
from dpselect.ordered.labelled_rows.rectangles import Rectangle, learn_rectangle
from dpselect.ordered.labelled_rows.threshold_plan import threshold_guarantee, threshold_rows
from dpselect.ordered.labelled_rows.thresholds import Threshold, learn_threshold
from dpselect.ordered.order_statistics.one import QuantileRelease, median, quantile, quantile_guarantee
from dpselect.ordered.order_statistics.private_range import private_range, quantile_interval, range_guarantee
from dpselect.ordered.order_statistics.several import QuantilesRelease, quantiles, quantiles_guarantee, quantiles_plan
from dpselect.ordered.slices.price import reorder_slice_compute_guarantee
from dpselect.ordered.slices.price_comparison import SlicePrices, noise_pays_from, slice_prices
from dpselect.ordered.slices.reorder_slice_compute import EachRow, Kept, Ordered, ReorderSliceCompute, RowMap, Steps
from dpselect.ordered.sources.adapters import ColumnSource, SqlTable
from dpselect.ordered.sources.columns import Progress
from dpselect.ordered.sources.files import open_column

__all__ = [
    "ColumnSource",
    "EachRow",
    "Kept",
    "Ordered",
    "Progress",
    "QuantileRelease",
    "QuantilesRelease",
    "Rectangle",
    "RectanglePlan",
    "ReorderSliceCompute",
    "RisingAndFalling",
    "RowMap",
    "SlicePrices",
    "SqlTable",
    "Steps",
    "Threshold",
    "choose_method",
    "cumulative_interior_point",
    "interior_point",
    "interior_point_guarantee",
    "interior_point_rows",
    "learn_rectangle",
    "learn_threshold",
    "maximize_by_interior_point",
    "maximize_over_runs",
    "maximize_quasi_concave",
    "median",
    "noise_pays_from",
    "open_column",
    "private_range",
    "quantile",
    "quantile_guarantee",
    "quantile_interval",
    "quantiles",
    "quantiles_guarantee",
    "quantiles_plan",
    "quasi_concave_guarantee",
    "quasi_concave_hull",
    "range_guarantee",
    "rectangle_plan",
    "rectangle_rows",
    "reduction_error",
    "reorder_slice_compute_guarantee",
    "slice_prices",
    "threshold_guarantee",
    "threshold_rows",
]
