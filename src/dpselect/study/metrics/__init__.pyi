from .metric import METRICS as METRICS, Metric as Metric, ScoreNoise as ScoreNoise
from .row_metric import RowMetric as RowMetric
