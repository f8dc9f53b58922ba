"""Output perturbation in a study."""

from dpselect.learners import OutputPerturbationClassifier
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("output-perturbation")(StudyLearner(OutputPerturbationClassifier, "epsilon", inverse=True))
