"""Boosted trees in a study."""

from dpselect.learners.boosted_trees import BoostedTreesClassification, BoostedTreesRegression
from dpselect.learners.text_boosting import TextBoostingClassification, TextBoostingRegression
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("boosted-trees")(
    StudyLearner(
        BoostedTreesClassification,
        "noise_multiplier",
        regressor=BoostedTreesRegression,
        of_texts={"classification": TextBoostingClassification, "regression": TextBoostingRegression},
        # all trees and a linear start go with noises of two orders of magnitude, where the rows say (`BOOSTING`)
        noises=(0.05, 0.8, 12.8, 204.8, 3276.8, 52428.8),
    )
)
