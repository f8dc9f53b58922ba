from .dp_sgd import DPSGDClassifier as DPSGDClassifier
from .early_stopping import (
    EarlyStopping as EarlyStopping,
    NoGain as NoGain,
    PrivateValidation as PrivateValidation,
    PublicValidation as PublicValidation,
    Reached as Reached,
)
from .gated import gated_logistic_regression as gated_logistic_regression, gated_release as gated_release
from .output_perturbation import OutputPerturbationClassifier as OutputPerturbationClassifier
from .rectangle_classifier import PrivateRectangleClassifier as PrivateRectangleClassifier
from .ridge import PrivateRidge as PrivateRidge, PrivateRidgeClassifier as PrivateRidgeClassifier
from .rows import (
    DataDependentClassesWarning as DataDependentClassesWarning,
    PublicRowCountWarning as PublicRowCountWarning,
)
from .threshold_classifier import PrivateThresholdClassifier as PrivateThresholdClassifier
