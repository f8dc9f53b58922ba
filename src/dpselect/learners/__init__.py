"""Small private classifiers with a guarantee that is known before they see data."""

from dpselect.learners.dp_sgd import DPSGDClassifier
from dpselect.learners.early_stopping import EarlyStopping, NoGain, PrivateValidation, PublicValidation, Reached
from dpselect.learners.gated import gated_logistic_regression, gated_release
from dpselect.learners.output_perturbation import OutputPerturbationClassifier
from dpselect.learners.rows import DataDependentClassesWarning, PublicRowCountWarning

__all__ = [
    "DPSGDClassifier",
    "DataDependentClassesWarning",
    "EarlyStopping",
    "NoGain",
    "OutputPerturbationClassifier",
    "PrivateValidation",
    "PublicRowCountWarning",
    "PublicValidation",
    "Reached",
    "gated_logistic_regression",
    "gated_release",
]
