"""Output perturbation in a study."""

from dpselect.learners.output_perturbation import OutputPerturbation
from dpselect.study.learners.kind import LEARNERS, StudyLearner

LEARNERS.register("output-perturbation")(StudyLearner(OutputPerturbation, "epsilon", inverse=True))
