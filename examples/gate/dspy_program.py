"""A program that DSPy or GEPA has improved on tasks of its own is the candidate, once, on held-out tasks."""

import dspy

from dpselect.integrations.gates import GateMetric


def is_it_better(program, held_out_tasks, metric):
    """True when the program is better than the incumbent: nothing else is said about it."""
    held_out = GateMetric("my.gate", metric, key=lambda example: example.id)
    dspy.Evaluate(devset=held_out_tasks, metric=held_out, display_progress=False)(program)
    return held_out.ask()
