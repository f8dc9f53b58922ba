"""Boosted trees on texts and other columns, in a study."""

from dpselect.learners.text_boosting import TextBoostingClassification, TextBoostingRegression
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("text-boosting")(
    StudyLearner(
        TextBoostingClassification,
        "noise_multiplier",
        regressor=TextBoostingRegression,
        noises=(0.05, 0.8, 12.8, 204.8, 3276.8, 26214.4),
    )
)
