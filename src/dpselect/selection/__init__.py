"""Choosing among private candidates: the best of a random number of runs, and the first above a threshold."""

from dpselect.selection.above import select_above
from dpselect.selection.best import select_best
from dpselect.selection.candidates import Candidate, uniform_mixture

__all__ = ["Candidate", "select_above", "select_best", "uniform_mixture"]
