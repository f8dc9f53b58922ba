"""Records of every kind on disk, to see that a later version reads what an earlier one wrote.

`python -m tests.records.past_files FOLDER` makes them, with a search that was killed in the middle. The files of
`assets/records-*.zip` were made so by the version that their name tells.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.holdout import Gate, Holdout, HoldoutLabels, HoldoutRequest, SavedAnalysis
from dpselect.holdout.gate.terms import GateRules
from dpselect.holdout.server.submitters import Submitters
from dpselect.ledger import Ledger, LedgerMissingError
from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed
from dpselect.tuning import SearchStore, Space, Uniform, tune

ROWS = 200
LABELS = [number % 3 % 2 for number in range(ROWS)]
GUESSES = [number % 2 for number in range(ROWS)]
TASKS = {f"task {number}": number % 2 for number in range(60)}
DATA = np.arange(2000) % 7
GRID: dict[str, Any] = {"lower": 0, "upper": 7, "granularity": 0.01}


def questions(folder: Path) -> dict[str, Any]:
    """What the records answer to questions that were asked before, and how much is left."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    with Ledger.open(folder / "budget.db", create=False) as ledger:
        head, spent = ledger.head(), ledger.budget("b").spent().epsilon
        found: dict[str, Any] = {"ledger": [ledger.verify(), head.sequence, head.head, str(spent)]}
    holdout = Holdout.open(folder / "my.holdout")
    answer = holdout.score(ids=range(ROWS), predictions=GUESSES, claim=0.5)
    found["holdout"] = [answer.value, answer.repeated, answer.questions_left]
    gate = Gate.open(folder / "my.gate")
    found["gate"] = [gate.ask(dict.fromkeys(TASKS, 1), candidate="all"), gate.purse, gate.certificate()["signature"]]
    analysis = SavedAnalysis.open(folder / "my.analysis", DATA)
    found["analysis"] = [analysis.estimate("mean", np.mean, **GRID).value, analysis.remaining]
    with Submitters(folder / "submitters.db") as submitters:
        ada = submitters.by_token((folder / "token").read_text())
        found["submitters"] = None if ada is None else [ada.name, *submitters.left(ada, "my")]
    return found


def search(folder: Path, *, die: int | None = None) -> str:
    """Begin a search and die within a run, or resume it; what it releases."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    begun = 0

    def objective(params: Any, random: Any) -> tuple[float, float]:
        nonlocal begun
        begun += 1
        if begun == die:
            os._exit(0)
        return params["x"] + 0.1 * float(random.laplace(1)[0]), params["x"]

    released = []
    with Ledger.open(folder / "budget.db") as ledger:
        try:
            budget = ledger.budget("b")
        except LedgerMissingError:
            budget = ledger.create_budget("b", epsilon=50)
        tune(
            objective,
            space=Space({"x": Uniform(0.0, 1.0)}),
            base=pure_dp(epsilon=0.5),
            repetitions=Fixed(count=6),
            store=SearchStore(path=folder / "search.db", resume=die is None, payload_bytes=512),
            ledger=budget,
            release=lambda result: released.append(repr((result.value, dict(result.params or {})))),
        )
    return str(released[0])


def write(folder: Path) -> None:
    """Every kind of record, each of them used."""
    os.environ["XDG_STATE_HOME"] = str(folder / "state")
    request = HoldoutRequest(metric="accuracy", questions=9, answers=9, failure_probability=0.25, mechanism="gaussian")
    Holdout.create(folder / "my.holdout", HoldoutLabels(ids=range(ROWS), labels=LABELS), request)
    Gate.create(folder / "my.gate", TASKS, consultations=4, rules=GateRules(answer_seconds=0))
    SavedAnalysis.create(folder / "my.analysis", DATA, queries=4, subsample_size=2, failure_probability=0.1)
    with Submitters(folder / "submitters.db") as submitters:
        (folder / "token").write_text(submitters.invite("Ada", questions=5, answers=3))
    with Ledger.open(folder / "budget.db") as ledger:
        budget = ledger.create_budget("b", epsilon=50)
        budget.reserve(pure_dp(epsilon=1), label="first").settle()
        budget.reserve(pure_dp(epsilon=0.5), label="second")
    questions(folder)
    Gate.open(folder / "my.gate").ask(dict.fromkeys(TASKS, 0))
    if os.fork() == 0:
        search(folder, die=3)
    os.wait()


def empty_tables(url: str) -> None:
    """The tables of a gate, a ledger and its witness in a database, without rows."""
    import psycopg

    Gate.create(f"{url}#x", TASKS, rules=GateRules(answer_seconds=0))
    with Ledger.open(url, witness=url) as ledger:
        ledger.create_budget("x", epsilon=1)
    with psycopg.connect(url) as connection:
        for table in ("record", "entry"):
            connection.execute(f"DELETE FROM holdout_{table}")
        connection.execute("ALTER TABLE ledger_entry DISABLE TRIGGER ALL")
        for table in ("meta", "entry", "account", "reservation", "witness"):
            connection.execute(f"DELETE FROM ledger_{table}")
        connection.execute("ALTER TABLE ledger_entry ENABLE TRIGGER ALL")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
