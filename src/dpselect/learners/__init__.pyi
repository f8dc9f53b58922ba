from .dp_sgd import DPSGDClassifier as DPSGDClassifier
from .dp_sgd_regressor import DPSGDRegressor as DPSGDRegressor
from .early_stopping import (
    EarlyStopping as EarlyStopping,
    NoGain as NoGain,
    PrivateValidation as PrivateValidation,
    PublicValidation as PublicValidation,
    Reached as Reached,
)
from .gated import GatedLogisticRegression as GatedLogisticRegression, GatedRelease as GatedRelease
from .output_perturbation import OutputPerturbationClassifier as OutputPerturbationClassifier
from .rectangle_classifier import PrivateRectangleClassifier as PrivateRectangleClassifier
from .ridge import PrivateRidge as PrivateRidge, PrivateRidgeClassifier as PrivateRidgeClassifier
from .rows import (
    DataDependentClassesWarning as DataDependentClassesWarning,
    PublicRowCountWarning as PublicRowCountWarning,
)
from .threshold_classifier import PrivateThresholdClassifier as PrivateThresholdClassifier
