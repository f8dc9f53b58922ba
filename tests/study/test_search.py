"""A study's search spends from the ledger that it names, or from one in its folder."""

import json

import pytest

from dpselect.errors import BudgetError
from tests.budgets import charges
from tests.study.run_cases import run
from tests.study.schema_cases import STUDY, changed


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state):
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
def test_a_search_spends_from_the_ledger_that_the_study_names(tmp_path):
    from dpselect.ledger import Ledger

    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create_budget("iris", epsilon=4, delta=1e-4)
    privacy = {**STUDY["privacy"], "ledger": "budget.db", "budget": "iris"}
    release = run(tmp_path, changed("privacy", privacy)).release
    with Ledger.open(tmp_path / "budget.db") as ledger:
        spent = ledger.budget("iris").spent()
        assert float(spent.epsilon) == pytest.approx(release["guarantee"]["epsilon"], rel=1e-9)
        assert ledger.verify()
    assert release["receipt"]["sequence"] >= 1
    assert release["receipt"]["head"]
    moved = json.loads((tmp_path / "out" / "facts.json").read_text())["budget"]
    assert moved["before"] == {"epsilon": 0.0, "delta": 0.0}
    assert moved["after"]["epsilon"] == pytest.approx(release["guarantee"]["epsilon"], rel=1e-9)
    assert moved["epsilon"] == 4.0
    with pytest.raises(BudgetError, match="left"):
        run(tmp_path, changed("privacy", privacy), folder="second")


@pytest.mark.full
@pytest.mark.parametrize("epsilon", [3.0, 9.0])
def test_a_folder_pays_for_one_search(tmp_path, epsilon):
    """Also when all but the charge was removed, and no matter what another study may spend."""
    run(tmp_path)
    for name in ("release.json", "search.sealed"):
        (tmp_path / "out" / name).unlink()
    with pytest.raises(BudgetError, match=r"paid for another search|0 remains"):
        run(tmp_path, changed("privacy", {**STUDY["privacy"], "epsilon": epsilon}))
    assert charges(tmp_path / "out" / "budget.db") == [True]
