"""Gates over 200 tasks and outcomes to ask them about."""

from __future__ import annotations

from dpselect.holdout import Gate, GateRules

TASKS = 200


def half():
    return {f"t{i}": i % 2 for i in range(TASKS)}


def better(share=10):
    """Solves all tasks but one of each `share`."""
    return {f"t{i}": int(i % share > 0) for i in range(TASKS)}


def make(folder, outcomes=None, name="my.gate", **options):
    rules = options.pop("rules", {})
    rules = GateRules(**{"answer_seconds": 0, **rules})
    return Gate.create(folder / name, half() if outcomes is None else outcomes, rules=rules, **options)
