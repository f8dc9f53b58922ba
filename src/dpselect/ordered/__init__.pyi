from .interior_points.interior_point import InteriorPoint as InteriorPoint, interior_point as interior_point
from .interior_points.quasi_concave import (
    RisingAndFalling as RisingAndFalling,
    ScoreRuns as ScoreRuns,
    maximize_quasi_concave as maximize_quasi_concave,
    quasi_concave_hull as quasi_concave_hull,
)
from .labelled_rows.rectangles import RectangleLearner as RectangleLearner, learn_rectangle as learn_rectangle
from .labelled_rows.thresholds import ThresholdLearner as ThresholdLearner, learn_threshold as learn_threshold
from .order_statistics.by_group import (
    GroupedQuantiles as GroupedQuantiles,
    quantiles_by_group as quantiles_by_group,
)
from .order_statistics.cell_counts import count_cells as count_cells
from .order_statistics.one import Quantile as Quantile, median as median, quantile as quantile
from .order_statistics.private_range import private_range as private_range, quantile_interval as quantile_interval
from .order_statistics.several import Quantiles as Quantiles, quantiles as quantiles
from .slices.price import SlicePrice as SlicePrice
from .slices.price_comparison import noise_pays_from as noise_pays_from
from .slices.reorder_slice_compute import (
    EachRow as EachRow,
    Kept as Kept,
    Ordered as Ordered,
    ReorderSliceCompute as ReorderSliceCompute,
    Steps as Steps,
)
from .sources.declared import Column as Column
from .sources.opening import column_source as column_source, open_column as open_column
