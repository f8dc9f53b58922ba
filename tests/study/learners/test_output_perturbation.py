"""Output perturbation in a study: pure privacy under replacement."""

import pytest

from tests.study.run_cases import run
from tests.study.schema_cases import STUDY


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch, state, no_page):
    monkeypatch.chdir(tmp_path)


@pytest.mark.full
def test_pure_privacy_by_output_perturbation_under_replace_one(tmp_path):
    document = {
        **STUDY,
        "privacy": {"epsilon": 2.0, "adjacency": "replace_one"},
        "learner": {"name": "output-perturbation"},
        "space": {"regularization": {"law": "log_uniform", "low": 0.01, "high": 0.1}},
    }
    guarantee = run(tmp_path, document).release["guarantee"]
    assert guarantee["delta"] == 0.0
    assert 1.99 < guarantee["epsilon"] <= 2.0
    assert guarantee["adjacency"] == "replace_one"
