"""Studies that buy their bounds: killed at durable writes and resumed to one release; and the bounds' share is counted.

Each attempt is a forked child, killed by SIGKILL before or after a write that is to survive a crash.
"""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

import dpselect.study.bounds as bounds
import dpselect.study.split as split
from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.study import parse_study, run_study
from dpselect.study.price import Price, price
from dpselect.study.validate import StudyPaths, validate
from tests.budgets import budget_at, charges
from tests.tuning.kill_search import Killer, append, lines

pytestmark = pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")


@pytest.fixture
def folder(tmp_path, no_page):
    random = np.random.default_rng(5)
    weights, heights = random.normal(70, 9, 200), random.normal(170, 9, 200)
    rows = [f"{a:.3f},{b:.3f},{'yes' if a > 70 else 'no'}" for a, b in zip(weights, heights, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["weight,height,y", *rows]) + "\n")
    return tmp_path


def study():
    """Quick to price: without delta."""
    return parse_study(
        {
            "data": {
                "source": "rows.csv",
                "label": "y",
                "classes": ["yes", "no"],
                "columns": {"weight": {"bounds": "private"}, "height": {"bounds": "private", "within": [0, 300]}},
            },
            "privacy": {"epsilon": 40.0, "nominal_rows": 200, "ledger": "budget.db", "budget": "b"},
            "preparation": {"share": 0.2},
            "learner": {"name": "output-perturbation"},
            "space": {"row_norm": {"law": "uniform", "low": 0.5, "high": 2.0}},
            "repetitions": {"law": "fixed", "count": 1},
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
        }
    )


def attempt(here, *, resume=False, at=None, after=False):
    """Exit status of one attempt, negative for a signal. It notes the bounds that it drew, and its number of writes."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.environ["XDG_STATE_HOME"] = str(here / "state")
            killer, real = Killer(at, after), bounds.buy

            def noted(*asked):
                limits = real(*asked)
                append(here / "bounds", repr(limits.tolist()))
                return limits

            split.buy = noted
            run_study(study(), base_folder=here, folder=here / "out", resume=resume, random=keyed_source(3))
            append(here / "writes", str(killer.count))
            status = 0
        except BaseException as error:
            append(here / "errors", repr(error))
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def released(here):
    """What someone sees who loads the model, but for the receipt, which names the place in a ledger."""
    document = json.loads((here / "out" / "release.json").read_text())
    document.pop("receipt", None)
    with np.load(here / "out" / "model.npz") as arrays:
        return {name: value for name, value in document.items() if "time" not in name}, {
            name: arrays[name].tolist() for name in arrays
        }


def fresh(folder, name):
    here = folder / name
    here.mkdir()
    shutil.copy(folder / "rows.csv", here)
    budget_at(here / "budget.db", epsilon=100, delta=0)
    return here


def killed_everywhere(folder, instants):
    """Killed at each of these writes, and resumed; one of five is killed once more on the way."""
    whole = fresh(folder, "whole")
    price(validate(study(), StudyPaths(whole, whole / "out")))  # remembered: children have the memory of their parent
    assert attempt(whole) == 0, lines(whole / "errors")
    expected, writes = released(whole), int(lines(whole / "writes")[0])
    killed = 0
    for number in range(instants):
        at, after = 1 + number * writes // instants, bool(number % 2)
        here = fresh(folder, f"killed-{number}")
        status = attempt(here, at=at, after=after)
        killed += status < 0
        began = (here / "bounds").exists() or (here / "out" / "release.json").exists()
        assert not began or len(charges(here / "budget.db")) == 1, "drawn without a reservation"
        if number % 5 == 0:
            attempt(here, resume=True, at=max(1, at // 2), after=after)
        if not (here / "out" / "release.json").exists() or charges(here / "budget.db") != [True]:
            assert attempt(here, resume=True) == 0, (at, after, lines(here / "errors"))
        assert charges(here / "budget.db") == [True], (at, after)
        assert len(set(lines(here / "bounds"))) == 1, (at, after)
        assert released(here) == expected, (at, after)
    return killed, writes


@pytest.mark.slow
def test_bounds_are_bought_once_whenever_the_study_is_killed(folder):
    killed, writes = killed_everywhere(folder, 60)
    assert killed >= min(writes, 60) // 2


def share_is_counted(folder, name):
    """What is promised, charged and written is at least what bounds and one run cost together.

    Two exponential mechanisms and one run of pure privacy on the same rows: their losses add up on the event that all
    three are least likely together, so that nothing less than the sum holds. A row trains or validates:
    the larger counts.
    """
    here = fresh(folder, name)
    asked = study()
    found = price(validate(asked, StudyPaths(here, here / "out"))).price
    together = 2 * found.purchase.epsilon + max(part.epsilon(0.0) for part in found.parts)
    assert found.search.epsilon(0.0) >= together * (1 - 1e-12)
    assert found.epsilon >= together * (1 - 1e-12)
    finished = run_study(asked, base_folder=here, folder=here / "out", random=keyed_source(3))
    assert finished.release["guarantee"]["epsilon"] >= together * (1 - 1e-12)
    assert float(budget_at(here / "budget.db").spent().epsilon) >= together * (1 - 1e-12)


@pytest.mark.full
def test_the_share_of_the_bounds_is_counted(folder, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    share_is_counted(folder, "real")


@pytest.mark.full
@pytest.mark.parametrize("mutation", ["price", "charge", "draw"])
def test_zoo_a_share_that_is_left_out_is_caught(folder, monkeypatch, mutation):
    """Broken: the noise is calibrated, the charge made, or the draw priced as if bounds were free."""
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
    if mutation == "price":
        monkeypatch.setattr(
            "dpselect.study.price.SearchPrice", lambda parts, law, beside=None, **more: SearchPrice(parts, law, **more)
        )
    elif mutation == "charge":
        monkeypatch.setattr(Price, "beside", pure_dp(epsilon=1e-9))
    else:
        monkeypatch.setattr("dpselect.study.bounds.Purchase.guarantee", pure_dp(epsilon=1e-9))
    with pytest.raises(AssertionError):
        share_is_counted(folder, mutation)
