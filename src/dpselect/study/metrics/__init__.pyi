from .metric import METRICS as METRICS, Metric as Metric
