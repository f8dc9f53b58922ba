from .gate.advice import GateAdvice as GateAdvice, advise_gate as advise_gate
from .gate.planning import GatePlan as GatePlan, plan_gate as plan_gate
from .gate.service import Gate as Gate
from .gate.terms import GateRules as GateRules, GateTerms as GateTerms
from .saved_analysis import SavedAnalysis as SavedAnalysis
from .service import Holdout as Holdout, HoldoutLabels as HoldoutLabels, Score as Score
from .terms import (
    MECHANISMS as MECHANISMS,
    Choice as Choice,
    HoldoutRequest as HoldoutRequest,
    Terms as Terms,
)
