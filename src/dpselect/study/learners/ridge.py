"""Noisy sufficient statistics in a study."""

from dpselect.learners import PrivateRidge, PrivateRidgeClassifier
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("ridge")(StudyLearner(PrivateRidgeClassifier, "noise_multiplier", regressor=PrivateRidge))
