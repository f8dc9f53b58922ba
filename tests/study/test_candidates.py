"""Candidates of a portfolio: spaces that list none, too many, or two alike are refused."""

from pathlib import Path

import pytest

from dpselect.errors import BudgetError, StudyError
from dpselect.study import check_study
from tests.study.portfolio_cases import MAPS, parsed
from tests.study.schema_cases import STUDY


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


LEARNERS = {"learner": {"law": "categorical", "choices": ["dp-sgd", "ridge"]}}


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"repetitions": {"law": "fixed", "count": 2}}, "repetitions: a portfolio tries each candidate once"),
        ({"validation": {"data": "public", "source": "sklearn:iris"}}, "a portfolio chooses by the rows that train"),
        ({"space": STUDY["space"]}, 'each distribution must be "categorical"'),
        ({"space": {"map": {"law": "categorical", "choices": ["cos4"]}}}, "2 to 4 candidates, and this space has 1"),
        ({"space": {**MAPS, **LEARNERS}}, "2 to 4 candidates, and this space has 6"),
        ({"space": {"map": {"law": "categorical", "choices": ["cos4", "cos5"]}}}, "no such map"),
        ({"space": {"learner": {"law": "categorical", "choices": ["dp-sgd", "forest"]}}}, "no such learner: 'forest'"),
        ({"space": {"steps": {"law": "categorical", "choices": [50, -1]}}}, "the candidate with steps = -1"),
        ({"space": {**MAPS}, "learner": {"map": "cos4"}}, "space.map: is under \\[learner\\] too"),
        ({"learner": {"depth": 3}}, "learner.depth: unknown key"),
        ({"space": {"map": {"law": "categorical", "choices": ["cos4", "cos4"]}}}, "two candidates are the same"),
        ({"space": LEARNERS, "search": {"design": "one-stage"}}, "space.learner: only a portfolio"),
        ({"space": LEARNERS, "search": {}, "refit": {}}, "space.learner: only a portfolio"),
        ({"space": LEARNERS, "search": {}, "repetitions": {"law": "fixed", "count": 2}}, "space.learner: only a portf"),
        ({"privacy": {"noise_multiplier": 3.0, "delta": 1e-6, "nominal_rows": 5000}}, "give epsilon"),
        ({"space": {"map": {"law": "categorical", "choices": ["cos4", ["bins"]]}}}, "space"),
        ({"space": {"map": {"law": "categorical", "choices": "cos4"}}}, "space"),
    ],
)
def test_what_is_no_portfolio_is_refused_before_a_row_is_read(tables, said):
    with pytest.raises((StudyError, BudgetError), match=said):
        check_study(parsed(**tables), base_folder=Path())
