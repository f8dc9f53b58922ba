"""EvalAI: `main.py` of a challenge whose labels are in a holdout. On hosts that forget, its URL on a server."""

from dpselect.integrations.gates import evalai_evaluate

evaluate = evalai_evaluate("pets.holdout")
