from .metric import (
    METRICS as METRICS,
    Estimate as Estimate,
    Metric as Metric,
    ScoreNoise as ScoreNoise,
    metrics_for as metrics_for,
)
from .row_metric import RowMetric as RowMetric
