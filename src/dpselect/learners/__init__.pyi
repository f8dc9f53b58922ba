from .early_stopping import (
    EarlyStopping as EarlyStopping,
    NoGain as NoGain,
    PrivateValidation as PrivateValidation,
    PublicValidation as PublicValidation,
    Reached as Reached,
)
from .estimators import (
    DPSGDClassifier as DPSGDClassifier,
    DPSGDRegressor as DPSGDRegressor,
    OutputPerturbationClassifier as OutputPerturbationClassifier,
    PrivateBoostingClassifier as PrivateBoostingClassifier,
    PrivateBoostingRegressor as PrivateBoostingRegressor,
    PrivateLeastSquares as PrivateLeastSquares,
    PrivateNaiveBayes as PrivateNaiveBayes,
    PrivateRidge as PrivateRidge,
    PrivateRidgeClassifier as PrivateRidgeClassifier,
)
from .gated_release import GatedLogisticRegression as GatedLogisticRegression, GatedRelease as GatedRelease
from .rectangle_classifier import PrivateRectangleClassifier as PrivateRectangleClassifier
from .rows import (
    DataDependentClassesWarning as DataDependentClassesWarning,
    PublicRowCountWarning as PublicRowCountWarning,
)
from .threshold_classifier import PrivateThresholdClassifier as PrivateThresholdClassifier
