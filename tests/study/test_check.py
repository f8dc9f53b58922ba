"""A study is one pass: what can be refused earlier is, and until the search begins nothing is left behind."""

from pathlib import Path

import numpy as np
import pytest

from dpselect.errors import BudgetError, ContentError
from dpselect.ledger import Ledger
from dpselect.study import check, check_study, parse_study, run, run_study
from dpselect.testing.learner_contract import unpriced
from tests.study.schema_cases import STUDY

STEPS = ("validate", "price", "check_budget", "open_rows", "prepared", "search")
QUICK = {"noise_multiplier": 1.0, "delta": 1e-5, "nominal_rows": 150}


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def walked(monkeypatch):
    """The steps that were entered, in order."""
    names = []
    for step in STEPS:
        original = getattr(run, step)

        def noted(*arguments, step=step, original=original, **named):
            names.append(step)
            return original(*arguments, **named)

        for module in (run, check):
            if hasattr(module, step):
                monkeypatch.setattr(module, step, noted)
    return names


def document(**tables):
    return {**STUDY, "privacy": QUICK, "runs": {"executor": "inline"}, **tables}


@pytest.mark.full
def test_a_study_is_one_pass(walked):
    with unpriced():
        run_study(parse_study(document()), base_folder=Path())
    assert walked == list(STEPS)
    walked.clear()
    check_study(parse_study(document()), base_folder=Path(), folder=Path("other"))
    assert walked == list(STEPS[:3])


def release_there():
    Path("out").mkdir()
    Path("out", "release.json").write_text("{}")


def search_there():
    Path("out").mkdir()
    Path("out", "search.sealed").write_text("a search")


def file_there():
    Path("out").write_text("")


def nothing_there():
    pass


def ledger_there():
    with Ledger.open("budget.db") as ledger:
        ledger.create_budget("small", epsilon=0.001, delta=1e-4)


LEDGER = {**QUICK, "ledger": "budget.db"}
FROM_PUBLIC_FACTS = [
    (release_there, {}, "already holds a release"),
    (search_there, {}, "already holds a search"),
    (file_there, {}, "not writable"),
    (nothing_there, {"data": {**STUDY["data"], "label": "targets"}}, "targets"),
    (nothing_there, {"data": {**STUDY["data"], "source": "absent.csv"}}, "absent.csv"),
    (nothing_there, {"learner": {"name": "dp-sgd", "stepps": 2}}, "stepps"),
    (nothing_there, {"learner": {"name": "dp-sgd", "hidden_units": -2}}, "hidden_units"),
    (nothing_there, {"space": {"learning_rate": {"law": "log_uniform", "low": 2.0, "high": 1.0}}}, "learning_rate"),
    (nothing_there, {"repetitions": {"law": "harmony"}}, "harmony"),
    (nothing_there, {"repetitions": {"law": "poisson", "mean": 3}, "runs": {"constant": True}}, "constant"),
    (nothing_there, {"validation": {"data": "public", "source": "absent.npz"}}, "absent.npz"),
    (nothing_there, {"test": {"source": "absent.npz"}}, "absent.npz"),
    (nothing_there, {"output": {"folder": "out", "key_variable": "DPSELECT_ABSENT"}}, "DPSELECT_ABSENT"),
    (nothing_there, {"privacy": {**LEDGER, "budget": "small"}}, "budget.db"),
    (ledger_there, {"privacy": {**LEDGER, "budget": "smal"}}, "smal"),
]


def left():
    return sorted(str(path) for path in Path().rglob("*") if "state" not in path.parts)


@pytest.mark.cases(17)
@pytest.mark.parametrize(("before", "tables", "said"), FROM_PUBLIC_FACTS)
@pytest.mark.parametrize("start", [run_study, check_study])
def test_public_facts_refuse_before_a_price_is_worked_out(walked, before, tables, said, start):
    before()
    there = left()
    with pytest.raises(Exception, match=said):
        start(parse_study(document(**tables)), base_folder=Path())
    assert walked == ["validate"]
    assert left() == there


@pytest.mark.parametrize("start", [run_study, check_study])
def test_a_price_refuses_before_a_row_is_read(walked, start):
    with pytest.raises(BudgetError):
        start(parse_study(document(privacy={**QUICK, "delta": 0.0})), base_folder=Path())
    assert walked == ["validate", "price"]
    assert left() == []


@pytest.mark.cases(1)
@pytest.mark.parametrize("start", [run_study, check_study])
def test_a_budget_refuses_before_a_row_is_read(walked, start):
    ledger_there()
    there = left()
    with pytest.raises(BudgetError, match="left"):
        start(parse_study(document(privacy={**LEDGER, "budget": "small"})), base_folder=Path())
    assert walked == ["validate", "price", "check_budget"]
    assert left() == there


def test_rows_refuse_before_anything_is_charged_and_leave_no_folder(walked):
    """A class that is mistyped: which classes the rows hold is not public."""
    study = parse_study(document(data={**STUDY["data"], "classes": ["setosa", "versicolor"]}))
    with pytest.raises(ContentError, match="target"):
        run_study(study, base_folder=Path())
    assert walked == ["validate", "price", "check_budget", "open_rows"]
    assert left() == []


def test_public_rows_refuse_there_too(walked):
    np.savez("public.npz", **{name: np.full(9, np.nan) for name in ("a", "b")}, target=np.arange(9) % 2)
    np.savez("d.npz", a=np.zeros(9), b=np.zeros(9), target=np.arange(9) % 2)
    data = {"source": "d.npz", "classes": [0, 1], "bounds": [0, 1]}
    there = left()
    study = parse_study(document(data=data, validation={"data": "public", "source": "public.npz"}))
    with pytest.raises(ContentError, match="'a'"):
        run_study(study, base_folder=Path())
    assert walked[-1] == "open_rows"
    assert left() == there


def test_the_check_names_the_learner_that_the_run_will_train():
    """Without `[learner]` a label that is a number gets `least-squares`, which is not the schema's default."""
    data = {"source": "d.npz", "label": "y", "task": "regression", "label_bounds": [0, 1], "bounds": [0, 1]}
    np.savez("d.npz", a=np.zeros(9), y=np.zeros(9))
    privacy = {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": 1200}
    told = {"data": data, "privacy": privacy, "output": {"folder": "out"}}
    with unpriced():
        found = check_study(parse_study(told), base_folder=Path())
    assert found["learner"] == "least-squares"
