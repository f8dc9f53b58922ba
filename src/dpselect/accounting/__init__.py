"""Theorems as functions from guarantees to guarantees: what a private search costs."""

from dpselect.accounting.best_of import best_of
from dpselect.accounting.calibrate import calibrate
from dpselect.accounting.conditional import conditional_sampling
from dpselect.accounting.gated import gated
from dpselect.accounting.iterative import iterative
from dpselect.accounting.mixture import mixture
from dpselect.accounting.plan import plan
from dpselect.accounting.threshold import threshold_stopping

__all__ = [
    "best_of",
    "calibrate",
    "conditional_sampling",
    "gated",
    "iterative",
    "mixture",
    "plan",
    "threshold_stopping",
]
