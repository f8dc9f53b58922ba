"""Least squares by adaptive noisy gradients in a study, for labels that are numbers."""

from dpselect.learners.least_squares import LeastSquares
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("least-squares")(StudyLearner(None, "noise_multiplier", regressor=LeastSquares))
