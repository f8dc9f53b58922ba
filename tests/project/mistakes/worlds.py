"""Where the lines run: names, files, a ledger, a gate and a model, made anew for each."""

from __future__ import annotations

import contextlib
import io
import shlex
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dpselect.cli.app import main
from dpselect.holdout import Gate, GateRules
from dpselect.ledger import Ledger
from tests.project.mistakes.studies import STUDY
from tests.study.model_cases import written

ROOMS = ("privacy", "repetitions", "accounting", "mechanisms", "ordered", "tuning", "learners", "ledger", "holdout")
TASKS = {f"t{number}": number % 2 for number in range(60)}


def make_files(folder: Path) -> None:
    """What the lines name."""
    rows = [(number, 20 + number % 60, ("cook", "nurse")[number % 2]) for number in range(200)]
    table = "\n".join(["id,age,job", *(",".join(map(str, row)) for row in rows)]) + "\n"
    (folder / "people.csv").write_text(table)
    (folder / "semicolon.csv").write_text(table.replace(",", ";"))
    (folder / "ages.csv").write_text("age\n" + "".join(f"{20 + number}\n" for number in range(60)))
    (folder / "labels.csv").write_text("id,label\n" + "".join(f"{i},{i % 2}\n" for i in range(2000)))
    (folder / "guesses.csv").write_text("id,prediction\n" + "".join(f"{i},1\n" for i in range(2000)))
    (folder / "tasks.csv").write_text("id,outcome\n" + "".join(f"{name},{mark}\n" for name, mark in TASKS.items()))
    (folder / "study.toml").write_text(STUDY)
    (folder / "model.npz").write_bytes(written())
    (folder / "new.csv").write_text("mango,apple,zebra\na,0,1\n")
    with Ledger.open(folder / "budget.db") as ledger:
        ledger.create_budget("team", epsilon=3, delta="1e-5")
        ledger.create_budget("renyi", epsilon=3, delta="1e-5", accounting="renyi", orders=[2, 4, 8])
    Gate.create(folder / "my.gate", TASKS, rules=GateRules(answer_seconds=0))


def names(ledger: Ledger) -> dict[str, Any]:
    """What a script of a user has imported and made."""
    import dpselect
    from dpselect.integrations.sklearn import PrivateSearchCV

    known: dict[str, Any] = {"np": np, "dpselect": dpselect, "load_model": dpselect.load_model}
    for room in ROOMS:
        package = __import__(f"dpselect.{room}", fromlist=["__all__"])
        known |= {name: getattr(package, name) for name in package.__all__}
    if find_spec("torch"):
        from dpselect.integrations.opacus import PrivateTraining

        known["PrivateTraining"] = PrivateTraining
    if find_spec("pandas"):
        import pandas as pd

        known |= {"pd": pd, "frame": pd.DataFrame({"a": [0.1, 0.2], "b": [0.3, 0.4]})}
    from sklearn.linear_model import LogisticRegression

    generator = np.random.default_rng(1)
    X = generator.uniform(-0.5, 0.5, size=(200, 2))
    learner = known["DPSGDClassifier"](steps=2, sampling_rate=0.5)
    lists = {"learning_rate": [0.1, 1.0]}
    search = PrivateSearchCV(learner, lists, epsilon=3, delta=1e-5, nominal_rows=200, classes=["no", "yes"])
    return known | {
        "AGES": [20 + number % 60 for number in range(200)],
        "BASE": known["pure_dp"](epsilon=1),
        "LAW": known["Harmonic"](limit=3),
        "LISTS": lists,
        "LogisticRegression": LogisticRegression,
        "PrivateSearchCV": PrivateSearchCV,
        "SEARCH": search,
        "SPACE": {"x": known["Categorical"]([1, 2])},
        "TASKS": TASKS,
        "X": X,
        "Y": np.where(X[:, 0] > 0, "yes", "no"),
        "y": np.where(X[:, 0] > 0, "yes", "no"),
        "budget": ledger.budget("team"),
        "gate": Gate.open("my.gate"),
        "learner": learner,
        "ledger": ledger,
        "privatesearchcv": search,
        "run": run,
        "search": search,
    }


def run(params: dict[str, Any], random: Any) -> tuple[float, dict[str, Any]]:
    """The objective of a search."""
    return 0.0, dict(params)


def run_python(line: str) -> tuple[BaseException | None, str]:
    """The error of a line, if any, and what it says or warns of. In the current folder."""
    with Ledger.open("budget.db") as ledger, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(line, "script", "exec"), names(ledger))
        except Exception as error:
            return error, str(error)
        return None, "\n".join(str(each.message) for each in caught)


def run_command(line: str) -> tuple[BaseException | None, str]:
    """The exit of a command line, if not 0, and what it wrote to standard error."""
    said, before = io.StringIO(), sys.argv
    sys.argv = ["dpselect", *shlex.split(line)]
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            main()
    except SystemExit as stopped:
        return (stopped if stopped.code else None), said.getvalue()
    except Exception as error:
        return error, f"Traceback {type(error).__name__}: {error}"
    finally:
        sys.argv = before
    return None, said.getvalue()


def run_study(text: str) -> tuple[BaseException | None, str]:
    """The exit of `tune --check` of a study of this text, and what it wrote to standard error."""
    Path("study.toml").write_text(text)
    return run_command("tune --check study.toml")
