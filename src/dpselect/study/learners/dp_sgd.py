"""DP-SGD in a study."""

from dpselect.learners import DPSGDClassifier, DPSGDRegressor
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("dp-sgd")(
    StudyLearner(
        DPSGDClassifier, "noise_multiplier", priced=frozenset({"sampling_rate", "steps"}), regressor=DPSGDRegressor
    )
)
