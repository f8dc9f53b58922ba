"""A study says one run or a search; what it leaves open follows from public facts."""

import re
from pathlib import Path

import numpy as np
import pytest

from dpselect.errors import StudyError
from dpselect.learners import DPSGDClassifier
from dpselect.randomness import keyed_source
from dpselect.study import check_study, load_model, run_study
from dpselect.study.design import designed
from dpselect.study.load import open_rows
from dpselect.study.price import price
from dpselect.study.split import StudyObjective, split
from dpselect.study.validate import StudyPaths, validate
from tests.study.design_cases import ONE, parsed
from tests.study.schema_cases import STUDY


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def check(**tables):
    return check_study(parsed(**tables), base_folder=Path())


def objective(tmp_path, **tables):
    return split(open_rows(price(validate(parsed(**tables), StudyPaths(tmp_path, tmp_path / "out")))))


UNCOUNTED = {**ONE["data"], "count_cells": False}
"""Where nothing is paid beside the run."""


def test_one_run_has_all_rows_and_all_of_the_total(tmp_path):
    found = check(data=UNCOUNTED)
    assert found["design"] == "one-run"
    assert found["max_runs"] == 1
    assert found["metric"] is None
    assert found["score_epsilon"] is None
    assert 0.999 * 3.0 <= found["epsilon"] <= 3.0
    assert found["single_run_epsilon"] == pytest.approx(found["epsilon"], rel=1e-9)
    run = objective(tmp_path)
    assert len(run.training[1]) == 150
    assert run.validation is None


def test_one_run_spends_its_total_between_two_numbers_of_steps():
    """With a step more or less it would be a hundredth too much or too little."""
    for rows in (150, 700, 1300):
        found = check(privacy={"epsilon": 3.0, "delta": 1e-5, "nominal_rows": rows}, data=UNCOUNTED)
        assert 0.9995 * 3.0 <= found["epsilon"] <= 3.0
        learner = DPSGDClassifier(nominal_rows=rows, classes=[0, 1, 2], **found["noise"])
        assert found["epsilon"] == pytest.approx(learner.guarantee().epsilon(delta=1e-5), rel=1e-6)


def test_one_run_costs_what_its_learner_promises():
    found = check(data=UNCOUNTED)
    learner = DPSGDClassifier(nominal_rows=120, classes=[0, 1, 2], **found["noise"])
    assert found["epsilon"] == pytest.approx(learner.guarantee().epsilon(delta=1e-5), rel=1e-6)


def test_a_figure_is_released_where_a_part_of_the_rows_validates(tmp_path):
    study = parsed(validation={"fraction": 0.3})
    told = []
    release = run_study(study, base_folder=tmp_path, random=keyed_source(4), stage=told.append).release
    assert told == ["finding the price", "reading the rows", "training", "writing the release"]
    assert release["validation"]["low"] <= release["validation"]["value"] <= release["validation"]["high"]
    assert len(objective(tmp_path / "again", validation={"fraction": 0.3}).training[1]) < 150


def test_the_model_of_one_run_is_good_and_the_page_speaks_of_no_search(tmp_path):
    """Iris with bounds that no one looked for: a class in three is a third, a line between two reaches two."""
    release = run_study(parsed(test={"source": "sklearn:iris"}), base_folder=tmp_path, random=keyed_source(7)).release
    assert release["score"] is None  # no rows gave it one
    assert release["parameters"] == {}
    assert release["settings"] == {"map": "joint"}
    assert release["test"]["accuracy"] > 0.8
    page = (tmp_path / "out" / "report.html").read_text().partition("</style>")[2]
    assert "search" not in re.sub("<[^>]*>", "", page)
    assert "whole run" in page
    model = load_model(tmp_path / "out" / "model.npz")
    assert model.predict(np.array([[5.0, 3.4, 1.5, 0.2]]))[0] == 0


def assert_that_an_interrupted_one_goes_on(parsed, tmp_path, monkeypatch):
    """The release and its model are those of a study that no one interrupted."""

    def interrupted(*_):
        raise KeyboardInterrupt

    whole = run_study(parsed(output={"folder": "whole"}), base_folder=tmp_path, random=keyed_source(7)).release
    with monkeypatch.context() as patch:
        patch.setattr(StudyObjective, "__call__", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_study(parsed(), base_folder=tmp_path, random=keyed_source(7))
    resumed = run_study(parsed(), base_folder=tmp_path, resume=True).release
    assert resumed == whole
    models = [load_model(tmp_path / name / "model.npz").estimator.weights_ for name in ("out", "whole")]
    assert all(np.array_equal(a, b) for a, b in zip(*models, strict=True))


@pytest.mark.full
def test_a_run_that_is_interrupted_goes_on(tmp_path, monkeypatch):
    assert_that_an_interrupted_one_goes_on(parsed, tmp_path, monkeypatch)


def test_a_space_alone_is_a_search_of_a_harmonic_number_of_runs():
    found = designed(parsed(space={"hidden_units": {"law": "categorical", "choices": [0, 8]}}))
    assert found.search.design == "one-stage"
    assert found.repetitions == {"law": "harmonic", "limit": 10}
    assert found.validation.data == "private"


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, "joint"),
        ({"learner": {"name": "dp-sgd", "class_weights": {"0": 2.0}}}, "joint"),
        ({"privacy": {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": 1200}}, "cos4"),
        ({"learner": {"name": "dp-sgd", "map": "direction"}}, "direction"),
        ({"learner": {"name": "dp-sgd", "steps": 30}}, None),
        ({"learner": {"name": "ridge"}}, None),
    ],
)
def test_the_map_follows_from_public_facts_where_nothing_is_said(tables, expected):
    assert designed(parsed(**tables)).learner.parameters.get("map") == expected


NUMBERS = {"data": {"source": "rows.csv", "label": "y", "task": "regression", "label_bounds": [0, 9], "bounds": [0, 1]}}
MANY = {"privacy": {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": 3000}}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (MANY, ("boosted-trees", None)),
        ({"privacy": {**MANY["privacy"], "nominal_rows": 1200}}, ("least-squares", "cos4")),
        ({"privacy": {**MANY["privacy"], "nominal_rows": 300}}, ("dp-sgd", "cos4")),
        ({**MANY, "learner": {"row_norm": 2.0}}, ("least-squares", None)),
        ({**MANY, "learner": {"name": "dp-sgd"}}, ("dp-sgd", "cos4")),
        ({**MANY, "learner": {"clip_norm": 0.5}}, ("dp-sgd", None)),
        ({"privacy": {"noise_multiplier": 30.0, "delta": 1e-5, "nominal_rows": 3000}}, ("dp-sgd", "cos4")),
        ({**MANY, "space": {"map": {"law": "categorical", "choices": ["cos4", "joint"]}}}, ("least-squares", "cos4")),
        ({**MANY, "space": {"clip_norm": {"law": "categorical", "choices": [0.1, 1.0]}}}, ("boosted-trees", None)),
        ({**MANY, "search": {"design": "portfolio"}}, ("least-squares", None)),
    ],
)
def test_the_learner_of_a_number_follows_from_public_facts(tables, expected):
    learner = designed(parsed(**NUMBERS, **tables)).learner
    assert (learner.name, learner.parameters.get("map")) == expected


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        (MANY, "boosted-trees"),
        ({"privacy": {**MANY["privacy"], "nominal_rows": 1200}}, "dp-sgd"),
        ({**MANY, "learner": {"class_weights": {"1": 2.0}}}, "boosted-trees"),
        ({**MANY, "learner": {"name": "dp-sgd"}}, "dp-sgd"),
        ({**MANY, "learner": {"image_shape": [1, 2]}}, "dp-sgd"),
        ({**MANY, "learner": {"map": "cos4"}}, "dp-sgd"),
        ({**MANY, "repetitions": {"law": "fixed", "count": 3}, "space": {"map": {"law": "categorical"}}}, "dp-sgd"),
        ({**MANY, "search": {"design": "portfolio"}}, "dp-sgd"),
        ({**MANY, "search": {"design": "one-run"}}, "boosted-trees"),
        ({"privacy": {"noise_multiplier": 3.0, "delta": 1e-5, "nominal_rows": 3000}}, "dp-sgd"),
    ],
)
def test_classes_of_many_rows_are_learnt_by_trees_if_the_rule_may_choose(tables, expected):
    once = designed(parsed(**tables))
    assert once.learner.name == expected
    assert designed(once) == once


TEXTS = {"source": "rows.csv", "label": "y", "classes": [0, 1], "columns": {"title": {"kind": "text"}}}
MIXED = {**TEXTS, "columns": {"title": {"kind": "text"}, "length": {"bounds": [0, 9]}}}


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({"data": TEXTS}, ("naive-bayes", None, 2048)),
        (
            {"data": TEXTS, "privacy": {"epsilon": 1.0, "delta": 1e-6, "adjacency": "replace_one"}},
            ("naive-bayes", None, 2048),
        ),
        ({"data": TEXTS, "validation": {"metric": "balanced-accuracy"}}, ("naive-bayes", None, 2048)),
        ({"data": TEXTS, "learner": {"name": "dp-sgd"}}, ("dp-sgd", "joint", 2048)),
        ({"data": TEXTS, "learner": {"steps": 5}}, ("dp-sgd", None, 2048)),
        ({"data": {**TEXTS, "columns": {"title": {"kind": "text", "n_features": 64}}}}, ("naive-bayes", None, 64)),
        ({"data": MIXED, **MANY}, ("boosted-trees", None, 2048)),
        ({"data": MIXED}, ("boosted-trees", None, 2048)),
        ({"data": MIXED, "learner": {"name": "naive-bayes"}}, ("naive-bayes", "bins", 2048)),
        ({"data": MIXED, "search": {"design": "portfolio"}}, ("dp-sgd", None, 2048)),
        ({"data": {**TEXTS, "bounds": [0, 1]}, **MANY}, ("boosted-trees", None, 2048)),
        (
            {"data": {**NUMBERS["data"], "bounds": None, "columns": TEXTS["columns"]}, **MANY},
            ("boosted-trees", None, 2048),
        ),
    ],
)
def test_tables_with_text_are_learnt_by_the_learners_for_text(tables, expected):
    study = designed(parsed(**tables))
    learner = study.learner
    assert (learner.name, learner.parameters.get("map"), study.data.columns["title"].n_features) == expected
    if "validation" in tables:
        assert learner.parameters["class_weights"] == "balanced"


def test_a_number_of_many_rows_has_ridge_beside_least_squares():
    many = {**MANY["privacy"], "nominal_rows": 30_000}
    found = designed(parsed(**NUMBERS, privacy=many, search={"design": "portfolio"}))
    assert found.space["learner"]["choices"] == ["least-squares", "ridge"]


RARE = {"source": "rows.csv", "label": "y", "classes": ["well", 1, "ill"], "bounds": [0, 1]}


@pytest.mark.parametrize(
    ("metric", "shares", "learner", "weights"),
    [
        ("balanced-accuracy", {"ill": 0.02, "1": 0.08}, {}, {"well": 1 / 0.9, "1": 12.5, "ill": 50.0}),
        ("balanced-accuracy", {"ill": 0.02, "1": 0.08}, {"name": "ridge"}, {"well": 1 / 0.9, "1": 12.5, "ill": 50.0}),
        ("balanced-accuracy", {"ill": 0.02, "1": 0.08}, {"class_weights": {"ill": 9.0}}, {"ill": 9.0}),
        ("balanced-accuracy", {"ill": 0.02}, {}, "balanced"),
        ("balanced-accuracy", {"ill": 0.0, "1": 0.5}, {}, "balanced"),
        ("balanced-accuracy", {"ill": 0.02}, {"name": "ridge"}, None),
        ("accuracy", {"ill": 0.02, "1": 0.08}, {}, None),
        ("log-loss", {"ill": 0.02, "1": 0.08}, {}, None),
    ],
)
def test_classes_have_weights_if_the_metric_counts_them_alike(metric, shares, learner, weights):
    study = parsed(data={**RARE, "class_shares": shares}, validation={"metric": metric}, learner=learner)
    found = designed(study).learner.parameters
    assert found.get("class_weights") == (pytest.approx(weights) if isinstance(weights, dict) else weights)
    assert found.get("map") == (None if learner.get("name") == "ridge" else "joint")
    assert designed(designed(study)) == designed(study)


@pytest.mark.parametrize("design", ["portfolio", "one-stage"])
def test_other_designs_do_not_estimate_shares(design):
    more = {"space": STUDY["space"]} if design == "one-stage" else {}
    study = parsed(data=RARE, validation={"metric": "balanced-accuracy"}, search={"design": design}, learner={}, **more)
    assert "class_weights" not in designed(study).learner.parameters


def test_a_design_that_is_filled_in_is_filled_in_once():
    assert designed(designed(parsed(**NUMBERS, **MANY))) == designed(parsed(**NUMBERS, **MANY))
    for study in (parsed(), parsed(space=STUDY["space"]), parsed(validation={"fraction": 0.3})):
        assert designed(designed(study)) == designed(study)


def test_a_study_hears_that_nothing_will_say_how_good_the_model_is():
    (note,) = check()["notes"]
    assert note.startswith("nothing will say how good the model is: [validation] keeps some rows")
    assert check(validation={"fraction": 0.3})["notes"] == []


@pytest.mark.full
def test_a_search_hears_of_one_run_where_searches_like_it_lost(caplog):
    """Of rates what a run of it is trained at, and of both what was measured on tables with as few rows; at once."""
    maps = {"map": {"law": "categorical", "choices": ["cos4", "direction"]}}
    many = {**STUDY["privacy"], "nominal_rows": 1500}
    trained, measured = check(space=STUDY["space"], repetitions=STUDY["repetitions"], privacy=many)["notes"]
    assert trained.startswith("a run of this search is trained at epsilon ")
    (lost,) = check(space=maps, repetitions=STUDY["repetitions"])["notes"]
    for said, kind in ((measured, "rates"), (lost, "maps")):
        assert re.search(rf"^one-stage searches for {kind} .* gained -\d+ thousandths of accuracy in the median", said)
    run_study(parsed(space=maps, repetitions={"law": "fixed", "count": 1}), base_folder=Path())
    assert f"note: {lost}" in caplog.messages


def test_rows_that_are_images_have_the_map_of_images():
    """As docs/how-to/one-run.md says. A shape alone was refused, and the smooth map of tables is worse on images."""
    data = {"source": "sklearn:digits", "classes": list(range(10)), "bounds": [0, 16]}
    found = check(data=data, learner={"image_shape": [8, 8]})
    assert found["parameters"] == {"image_shape": [8, 8], "map": "oriented-gradients"}
    named = check(data=data, learner={"image_shape": [8, 8], "map": "oriented-gradients"})
    assert found == named
    with pytest.raises(StudyError, match="cell"):
        check(data=data, learner={"cell": 4})


def test_what_a_rule_knows_is_one_run_and_said_beforehand(caplog):
    """The same run as of the study without the space, and the note names what is left out."""
    found, alone = check(space=STUDY["space"]), check()
    note, *_ = found.pop("notes")
    assert note.startswith("learning_rate under [space] is not searched")
    assert found == {key: value for key, value in alone.items() if key != "notes"}
    run_study(parsed(space=STUDY["space"]), base_folder=Path())
    assert f"note: {note}" in caplog.messages


def test_maps_that_cannot_be_told_apart_are_one_run_of_the_first():
    def of(*choices):
        return designed(parsed(space={"map": {"law": "categorical", "choices": list(choices)}})).learner.parameters

    assert of("bins", "cos4") == {"map": "bins"}
    assert of("cos4", "bins") == {"map": "joint"}  # which the rule takes for the smooth ones with so few rows
    assert of("direction", "cos4") == {"map": "joint"}


def test_a_check_says_which_cells_count(tmp_path):
    """A study whose classes are spelt otherwise than the rows' labels trains on nothing, and no row may be asked."""
    columns = {"age": {"bounds": [0, 99]}, "job": {"categories": ["nurse", "teacher"]}}
    (tmp_path / "rows.csv").write_text("well,age,job\n")
    found = check(data={"source": "rows.csv", "label": "well", "classes": ["N", "Y"], "columns": columns})
    assert found["declared"] == [
        "labels 'N', 'Y'; a row with another trains nothing",
        "job 'nurse', 'teacher'; another cell becomes zeros",
    ]
