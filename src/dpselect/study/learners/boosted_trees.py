"""Boosted trees in a study."""

from dpselect.learners.boosted_trees import BoostedTreesClassification, BoostedTreesRegression
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("boosted-trees")(
    StudyLearner(BoostedTreesClassification, "noise_multiplier", regressor=BoostedTreesRegression)
)
