from .metric import METRICS as METRICS, RowMetric as RowMetric
