"""Theorems as functions from guarantees to guarantees: what a private search costs."""

from dpselect.accounting.best_of_k.adaptive_proposals import adaptive_best_of
from dpselect.accounting.best_of_k.best_of import best_of
from dpselect.accounting.best_of_k.mixture import mixture
from dpselect.accounting.best_of_k.subset_tuning import tune_on_subset
from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.accounting.planning.calibrate import calibrate
from dpselect.accounting.planning.plan import plan
from dpselect.accounting.planning.plan_subset import plan_subset
from dpselect.accounting.stopping.gated import gated
from dpselect.accounting.stopping.iterative import iterative

__all__ = [
    "adaptive_best_of",
    "best_of",
    "calibrate",
    "conditional_sampling",
    "gated",
    "iterative",
    "mixture",
    "plan",
    "plan_subset",
    "threshold_stopping",
    "tune_on_subset",
]
