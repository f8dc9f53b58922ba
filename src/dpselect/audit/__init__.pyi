from .black_box import audit as audit, audit_outputs as audit_outputs
from .callables import function_subject as function_subject
from .commands import command_subject as command_subject
from .finite import exact_audit as exact_audit, sampled as sampled
from .one_run import OneRunAudit as OneRunAudit, audit_guesses as audit_guesses, label_scores as label_scores
from .subject import FiniteSubject as FiniteSubject, Subject as Subject
