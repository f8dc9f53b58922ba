"""Noisy sufficient statistics in a study."""

from dpselect.learners.ridge import RidgeClassification, RidgeRegression
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("ridge")(StudyLearner(RidgeClassification, "noise_multiplier", regressor=RidgeRegression))
