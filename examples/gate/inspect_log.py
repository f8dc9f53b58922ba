"""A finished evaluation of Inspect is the candidate. The log has what each task scored: keep it from the searcher."""

import sys

from inspect_ai.log import read_eval_log

from dpselect.holdout import Gate
from dpselect.integrations.gates import inspect_outcomes

log = read_eval_log(sys.argv[1])
print("accepted" if Gate.open("my.gate").ask(lambda: inspect_outcomes(log)) else "rejected")
