"""Small private classifiers with a guarantee that is known before they see data."""

from dpselect.learners.dp_sgd import DPSGDClassifier
from dpselect.learners.output_perturbation import OutputPerturbationClassifier
from dpselect.learners.rows import DataDependentClassesWarning, PublicRowCountWarning

__all__ = [
    "DPSGDClassifier",
    "DataDependentClassesWarning",
    "OutputPerturbationClassifier",
    "PublicRowCountWarning",
]
