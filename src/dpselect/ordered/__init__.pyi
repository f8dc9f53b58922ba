from .interior_points.interior_point import (
    choose_method as choose_method,
    cumulative_interior_point as cumulative_interior_point,
    interior_point as interior_point,
    interior_point_guarantee as interior_point_guarantee,
)
from .interior_points.optimisation_reduction import (
    maximize_by_interior_point as maximize_by_interior_point,
    reduction_error as reduction_error,
)
from .interior_points.quasi_concave import (
    RisingAndFalling as RisingAndFalling,
    maximize_over_runs as maximize_over_runs,
    maximize_quasi_concave as maximize_quasi_concave,
    quasi_concave_guarantee as quasi_concave_guarantee,
    quasi_concave_hull as quasi_concave_hull,
)
from .interior_points.rows import interior_point_rows as interior_point_rows
from .labelled_rows.rectangle_plan import (
    RectanglePlan as RectanglePlan,
    rectangle_plan as rectangle_plan,
    rectangle_rows as rectangle_rows,
)
from .labelled_rows.rectangles import Rectangle as Rectangle, learn_rectangle as learn_rectangle
from .labelled_rows.threshold_plan import threshold_guarantee as threshold_guarantee, threshold_rows as threshold_rows
from .labelled_rows.thresholds import Threshold as Threshold, learn_threshold as learn_threshold
from .order_statistics.one import (
    QuantileRelease as QuantileRelease,
    median as median,
    quantile as quantile,
    quantile_guarantee as quantile_guarantee,
)
from .order_statistics.private_range import (
    private_range as private_range,
    quantile_interval as quantile_interval,
    range_guarantee as range_guarantee,
)
from .order_statistics.several import (
    QuantilesRelease as QuantilesRelease,
    quantiles as quantiles,
    quantiles_guarantee as quantiles_guarantee,
    quantiles_plan as quantiles_plan,
)
from .slices.price import reorder_slice_compute_guarantee as reorder_slice_compute_guarantee
from .slices.price_comparison import (
    SlicePrices as SlicePrices,
    noise_pays_from as noise_pays_from,
    slice_prices as slice_prices,
)
from .slices.reorder_slice_compute import (
    EachRow as EachRow,
    Kept as Kept,
    Ordered as Ordered,
    ReorderSliceCompute as ReorderSliceCompute,
    RowMap as RowMap,
    Steps as Steps,
)
from .sources.adapters import ColumnSource as ColumnSource, SqlTable as SqlTable
from .sources.columns import Progress as Progress
from .sources.files import open_column as open_column
