"""Rows that cannot be read are refused before anything is drawn or charged."""

import pytest

from dpselect.errors import ContentError, StudyError
from tests.study.run_cases import run
from tests.study.schema_cases import STUDY, changed


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
def test_content_errors_come_before_anything_is_drawn_or_charged(tmp_path, monkeypatch):
    monkeypatch.setattr("dpselect.study.search.tune", lambda *_, **__: pytest.fail("the search began"))
    (tmp_path / "d.csv").write_text("a,target\n1,0\nx,1\n")
    with pytest.raises(ContentError, match="'a'"):
        run(tmp_path, changed("data", {"source": "d.csv", "classes": [0, 1], "bounds": [0, 1]}))


@pytest.mark.full
def test_delta_is_checked_against_the_public_row_count_under_replace_one(tmp_path):
    document = {
        **STUDY,
        "privacy": {"epsilon": 2.0, "delta": 0.5, "adjacency": "replace_one"},
        "learner": {"name": "output-perturbation"},
        "space": {"regularization": {"law": "log_uniform", "low": 0.01, "high": 0.1}},
    }
    with pytest.raises(StudyError, match="number of rows"):
        run(tmp_path, document)
