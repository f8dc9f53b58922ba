from .interior_points.interior_point import InteriorPoint as InteriorPoint, interior_point as interior_point
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
from .sources.declared import Column as Column
from .sources.opening import column_source as column_source, open_column as open_column
