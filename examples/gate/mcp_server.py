"""A gate as a tool of an agent: configure `sudo -u judge python mcp_server.py` as a server of its client."""

import json
from pathlib import Path

from dpselect.integrations.gates import gate_server

ANSWERS = json.loads(Path("answers.json").read_text(encoding="utf-8"))  # of held-out tasks: the judge's alone


def grade(candidate):
    """What a candidate is, and how it is run, is yours: here a table of answers."""
    return {task: json.loads(candidate)[task] == answer for task, answer in ANSWERS.items()}


gate_server("my.gate", grade).run()
