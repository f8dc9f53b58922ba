from .saved_analysis import SavedAnalysis as SavedAnalysis
from .service import Holdout as Holdout, HoldoutLabels as HoldoutLabels, Score as Score
from .terms import (
    MECHANISMS as MECHANISMS,
    Choice as Choice,
    HoldoutRequest as HoldoutRequest,
    Terms as Terms,
)
