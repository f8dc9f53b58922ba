"""Theorems as functions from guarantees to guarantees: what a private search costs."""

from dpselect.accounting.best_of import best_of
from dpselect.accounting.calibrate import calibrate
from dpselect.accounting.conditional import conditional_sampling
from dpselect.accounting.mixture import mixture
from dpselect.accounting.plan import plan

__all__ = ["best_of", "calibrate", "conditional_sampling", "mixture", "plan"]
