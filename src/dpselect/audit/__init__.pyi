from .black_box import audit as audit, audit_outputs as audit_outputs
from .callables import function_subject as function_subject
from .commands import CommandOutput as CommandOutput, command_subject as command_subject
from .finite import exact_audit as exact_audit, sampled as sampled
from .one_run import OneRunAudit as OneRunAudit, audit_guesses as audit_guesses, label_scores as label_scores
from .one_run_bound import one_run_epsilon as one_run_epsilon, one_run_p_value as one_run_p_value
from .result import (
    DATA_OVER_NEIGHBOUR as DATA_OVER_NEIGHBOUR,
    NEIGHBOUR_OVER_DATA as NEIGHBOUR_OVER_DATA,
    Audit as Audit,
)
from .subject import FiniteSubject as FiniteSubject, Subject as Subject
