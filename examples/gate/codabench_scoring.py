"""Codabench: the scoring program, whose `metadata.yaml` says `command: python scoring.py /app/input /app/output`."""

import sys

from dpselect.integrations.gates import codabench_score

codabench_score("pets.holdout", sys.argv[1], sys.argv[2])
