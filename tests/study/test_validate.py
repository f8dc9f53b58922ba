"""Validation of a study by public facts, before any price is computed."""

from pathlib import Path

import pytest

from dpselect.errors import StudyError
from dpselect.ledger import Ledger
from dpselect.study import check_study, load_study, parse_study
from dpselect.study.validate import StudyPaths, law_of, validate
from tests.root import ROOT
from tests.study.schema_cases import STUDY, changed


@pytest.mark.parametrize(
    ("law", "said"),
    [
        (
            {"law": "log_uniform", "low": 1},
            'log_uniform needs high. Write { distribution = "log_uniform", low = 1, high = 1.0 }',
        ),
        ({"law": "log_uniform", "low": 1, "high": 2, "hi": 3}, "log_uniform has no argument hi: it takes low=, high="),
        ({"law": "categorial", "choices": ["cos4"]}, "distribution must be one of categorical, "),
    ],
)
def test_a_law_with_wrong_settings_names_them_and_nothing_else(tmp_path, law, said):
    with pytest.raises(StudyError, match=f"map.*: {said}") as caught:
        check_study(parse_study(changed("space.map", law)), base_folder=tmp_path, folder=tmp_path / "out")
    assert "__init__" not in str(caught.value)
    assert law["law"] != "categorial" or "no such map" not in str(caught.value)


def test_all_that_is_wrong_before_a_price_is_said_at_once(tmp_path):
    """Keys of the learner and of the space, the source, the folder, the law: one message."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "release.json").write_text("{}")
    document = changed("learner.step", 3)
    document["space"]["rate"] = {"law": "uniform", "low": 0, "high": 1}
    document["space"]["noise_multiplier"] = {"law": "uniform", "low": 0, "high": 1}
    document["space"]["steps"] = {"law": "integer_uniform", "low": 1, "high": 9}
    document["data"]["source"] = "none.csv"
    document["repetitions"] = {"law": "harmonic", "limits": 3}
    with pytest.raises(StudyError) as caught:
        check_study(parse_study(document), base_folder=tmp_path, folder=tmp_path / "out")
    for said in (
        "already holds a release",
        "learner.step: unknown key for dp-sgd. Write steps = 3",
        "space.rate: unknown key for dp-sgd; there are ",
        "space.noise_multiplier: the noise follows",
        "space.steps: enters the guarantee",
        "cannot read data.source 'none.csv'",
        "repetitions: ",
    ):
        assert said in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="no such file system here")
def test_a_folder_that_cannot_be_made_is_found_beforehand(tmp_path):
    """Root may write everywhere, by the permissions; no one makes folders in /proc."""
    with pytest.raises(StudyError, match=r"output.folder '/proc/x' is not writable: nothing can be made in '/proc'"):
        check_study(parse_study(changed("output.folder", "/proc/x")), base_folder=tmp_path)


def test_a_budget_of_another_adjacency_is_refused_before_a_store_is_made(tmp_path):
    with Ledger.open(tmp_path / "money.db") as ledger:
        ledger.create_budget("b", epsilon=9, delta=1e-3, adjacency="replace_one")
    document = changed("output.folder", str(tmp_path / "out"))
    document["privacy"] |= {"ledger": "money.db", "budget": "b"}
    with pytest.raises(StudyError, match=r"privacy.adjacency: add_or_remove_one here, but budget 'b' is under replace"):
        check_study(parse_study(document), base_folder=tmp_path)
    assert not (tmp_path / "out").exists()


def test_an_adjacency_that_a_learner_does_not_know_is_said_with_its_key(tmp_path):
    document = changed("privacy.adjacency", "replace_one")
    check_study(parse_study(document), base_folder=tmp_path)  # DP-SGD knows both
    document["learner"], document["space"] = {"name": "boosted-trees", "linear_share": 0.25}, {}
    with pytest.raises(
        StudyError, match=r"^privacy.adjacency: .* replace_one.*; take the other one, or another learner.name"
    ):
        check_study(parse_study(document), base_folder=tmp_path)


@pytest.mark.parametrize("name", ["digits", "breast_cancer", "tumours"])
def test_the_example_studies_are_valid(name):

    study = load_study(ROOT / "examples" / f"{name}.toml")
    assert law_of(study).limit is not None


@pytest.mark.parametrize("metric", ["absolute-error", "r2"])
def test_a_regression_behind_a_map_may_be_scored_on_private_rows(metric, tmp_path):
    """Its estimator has the method `predict_proba` of every mapped learner, and no probabilities."""
    document = {
        "name": "toy",
        "data": {
            "source": "rows.csv", "label": "y", "task": "regression", "label_bounds": [0, 10],
            "columns": {"a": {"bounds": [0, 1]}},
        },
        "privacy": {"epsilon": 3.0, "delta": 1e-6, "nominal_rows": 2000},
        "learner": {"name": "dp-sgd", "map": "bins"},
        "validation": {"data": "private", "metric": metric},
        "output": {"folder": "out"},
    }  # fmt: skip
    (tmp_path / "rows.csv").write_text("a,y\n0.5,3\n")
    settled = validate(parse_study(document), StudyPaths(tmp_path, tmp_path / "out"))
    assert settled.releases_score


@pytest.mark.parametrize("begun", [False, True])
def test_a_resume_needs_a_search_or_its_release(begun, tmp_path):
    """A wrong folder would begin a second search, and pay for it."""
    (tmp_path / "out").mkdir()
    place = StudyPaths(tmp_path, tmp_path / "out", resume=True)
    place.store.write_bytes(b"sealed" if begun else b"")
    if begun:
        validate(parse_study(STUDY), place)
        return
    with pytest.raises(StudyError, match="holds no search to continue: name the folder of the search"):
        validate(parse_study(STUDY), place)
    (tmp_path / "out" / "release.json").write_text("{}")
    validate(parse_study(STUDY), place)
