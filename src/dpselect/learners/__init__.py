"""Small private classifiers with a guarantee that is known before they see data."""

from dpselect.learners.dp_sgd import DPSGDClassifier
from dpselect.learners.early_stopping import EarlyStopping, NoGain, PrivateValidation, PublicValidation, Reached
from dpselect.learners.gated import gated_logistic_regression, gated_release
from dpselect.learners.output_perturbation import OutputPerturbationClassifier
from dpselect.learners.rectangle_classifier import PrivateRectangleClassifier
from dpselect.learners.rows import DataDependentClassesWarning, PublicRowCountWarning
from dpselect.learners.threshold_classifier import PrivateThresholdClassifier

__all__ = [
    "DPSGDClassifier",
    "DataDependentClassesWarning",
    "EarlyStopping",
    "NoGain",
    "OutputPerturbationClassifier",
    "PrivateRectangleClassifier",
    "PrivateThresholdClassifier",
    "PrivateValidation",
    "PublicRowCountWarning",
    "PublicValidation",
    "Reached",
    "gated_logistic_regression",
    "gated_release",
]
