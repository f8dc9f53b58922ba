"""Kills a gate's process, as `kill_holdout.py` does a holdout's; same arguments.

Four candidates are asked under their names, the first is better. Anything that is killed: what was shown is on
record, at most one ask is charged that was not answered, and asking all again shows one answer to each and leaves no
more in the purse.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from dpselect.holdout import Gate
from dpselect.holdout.gate.terms import GateRules
from tests.holdout import kill_holdout as base

TASKS = 20
STAKES = (0.02, 0.001, 0.001, 0.001)
LEFT = 0.017
"""In the purse, when all four were asked once."""


def opened(folder: Path, _: int = 0) -> Gate:
    where = folder / "my.gate"
    if where.exists():
        return Gate.open(where)
    return Gate.create(where, dict.fromkeys(range(TASKS), 0), rules=GateRules(answer_seconds=0))


def outcomes(number: int) -> dict[int, int]:
    return dict.fromkeys(range(TASKS), int(number == 0))


def ask(folder: Path) -> None:
    gate = opened(folder)
    for number, stake in enumerate(STAKES):
        found = gate.ask(outcomes(number), stake, candidate=str(number))
        base.append(folder / "shown", json.dumps([number, found]))


def status(folder: Path) -> dict[str, float]:
    def task() -> None:
        found = Gate.open(folder / "my.gate").status()
        base.append(folder / "status", json.dumps({name: found[name] for name in ("asked", "purse")}))

    if not (folder / "my.gate").exists():
        return {"asked": 0, "purse": 0.05}
    assert base.waited(base.forked(folder, task)) == 0, base.lines(folder / "errors")
    found: dict[str, float] = json.loads(base.lines(folder / "status")[-1])
    return found


def asked(folder: Path) -> int:
    return int(status(folder)["asked"])


def verdict(folder: Path) -> list[str]:
    wrong = []
    shown = set(base.lines(folder / "shown"))
    if shown != {json.dumps([number, number == 0]) for number in range(4)}:
        wrong.append("not one answer to each question")
    found = status(folder)
    if found["asked"] not in (4, 5):
        wrong.append("not charged once")
    if found["purse"] > LEFT + 1e-9:
        wrong.append("too much is left in the purse")
    return wrong + base.lines(folder / "errors")


def hammer(root: Path, processes: int, each: int) -> None:
    """Every process asks its own candidates; no two asks may see the same purse."""
    root.mkdir(parents=True)
    os.environ["XDG_STATE_HOME"] = str(root / "state")
    where = root / "my.gate"
    questions = processes * each
    rules = GateRules(answer_seconds=0)
    Gate.create(where, dict.fromkeys(range(TASKS), 0), consultations=questions, rules=rules)

    def submit(process: int) -> None:
        gate = Gate.open(where)
        for number in range(each):
            found = gate.ask(outcomes(1), candidate=f"{process} {number}")
            base.append(root / "shown", json.dumps([process, number, found]))

    children = [base.forked(root, lambda process=process: submit(process)) for process in range(processes)]
    statuses = [base.waited(child) for child in children]
    found = status(root)
    shown, errors = len(base.lines(root / "shown")), base.lines(root / "errors")
    print(json.dumps({"statuses": statuses, "shown": shown, "errors": errors, **found}))


if __name__ == "__main__":
    if sys.argv[1] == "hammer":
        hammer(Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
    else:
        base.ask, base.asked, base.verdict = ask, asked, verdict
        base.kills(Path(sys.argv[2]), sys.argv[1], int(sys.argv[3]), int(sys.argv[4]))
