from .gate.advice import advise_gate as advise_gate
from .gate.planning import plan_gate as plan_gate
from .gate.service import Gate as Gate
from .gate.terms import GateRules as GateRules
from .saved_analysis import SavedAnalysis as SavedAnalysis
from .service import Holdout as Holdout, HoldoutLabels as HoldoutLabels
from .terms import HoldoutRequest as HoldoutRequest
