"""Measuring leakage: what outputs show about a claim. An audit finds faults; it never proves privacy."""

from dpselect.audit.black_box import audit, audit_outputs
from dpselect.audit.callables import function_subject
from dpselect.audit.finite import exact_audit, sampled
from dpselect.audit.one_run import OneRunAudit, audit_guesses, label_scores
from dpselect.audit.one_run_bound import one_run_epsilon, one_run_p_value
from dpselect.audit.result import DATA_OVER_NEIGHBOUR, NEIGHBOUR_OVER_DATA, Audit
from dpselect.audit.subject import FiniteSubject, Subject

__all__ = [
    "DATA_OVER_NEIGHBOUR",
    "NEIGHBOUR_OVER_DATA",
    "Audit",
    "FiniteSubject",
    "OneRunAudit",
    "Subject",
    "audit",
    "audit_guesses",
    "audit_outputs",
    "exact_audit",
    "function_subject",
    "label_scores",
    "one_run_epsilon",
    "one_run_p_value",
    "sampled",
]
