"""Boosted trees in a study: the columns reach them, and what columns do together is learnt."""

import numpy as np
import pytest

from dpselect.errors import StudyError
from dpselect.randomness import keyed_source
from dpselect.study import check_study, load_model, parse_study, run_study
from dpselect.study.columns.column import Column
from dpselect.study.learners.mapped import indicators_of
from dpselect.study.validate import StudyPaths, validate
from dpselect.tuning.trial import encode_value


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def table(rows=1500):
    random = np.random.default_rng(5)
    a, kind = random.uniform(0, 10, rows), random.choice(["x", "y"], rows)
    return {"a": a, "kind": kind, "label": np.where((a > 5) ^ (kind == "x"), "in", "out")}


def study(folder, **parts):
    np.savez(folder / "rows.npz", **table())
    return {
        "data": {
            "source": "rows.npz",
            "label": "label",
            "classes": ["in", "out"],
            "columns": {"a": {"bounds": [0, 10]}, "kind": {"categories": ["x", "y"]}},
            "count_cells": False,
        },
        "privacy": {"epsilon": 4.0, "delta": 1e-5, "nominal_rows": 1500},
        "learner": {"name": "boosted-trees", "n_estimators": 60},
        "runs": {"executor": "inline"},
        "output": {"folder": "out"},
        **parts,
    }


def released(folder, **parts):
    asked = parse_study(study(folder, **parts))
    return run_study(asked, base_folder=folder, folder=folder / "out", random=keyed_source(2)).release


@pytest.mark.full
def test_what_two_columns_do_together_is_learnt_and_loaded(tmp_path):
    released(tmp_path)
    fresh = table(400)
    model = load_model(tmp_path / "out" / "model.npz")
    assert np.mean(model.predict(fresh) == fresh["label"]) >= 0.9


def test_a_model_under_replacement_is_loaded(tmp_path):
    """The number of rows is public there and in no file, and the number of trees follows from none."""
    released(
        tmp_path,
        privacy={"epsilon": 20.0, "delta": 1e-5, "adjacency": "replace_one"},
        learner={"name": "boosted-trees"},
    )
    assert set(load_model(tmp_path / "out" / "model.npz").predict(table(20))) <= {"in", "out"}


@pytest.mark.full
def test_a_linear_model_cannot_know_it(tmp_path):
    released(tmp_path, learner={"name": "dp-sgd"})
    fresh = table(400)
    assert np.mean(load_model(tmp_path / "out" / "model.npz").predict(fresh) == fresh["label"]) < 0.75


@pytest.mark.full
def test_a_portfolio_chooses_among_learners(tmp_path):
    space = {"learner": {"law": "categorical", "choices": ["dp-sgd", "boosted-trees"]}}
    privacy = {"epsilon": 12.0, "delta": 1e-5, "nominal_rows": 1500}
    release = released(tmp_path, learner={}, space=space, search={"design": "portfolio"}, privacy=privacy)
    assert release["parameters"]["learner"] == "boosted-trees"


@pytest.mark.cases(2)
@pytest.mark.parametrize("rows", [120_000, 2_000_000, 60, 700, 5_000])
def test_a_slot_has_room_for_the_model_of_any_noise(tmp_path, rows):
    """The noise follows from the price, after the room is chosen; a model without room is a run that failed."""
    settled = validate(
        parse_study(study(tmp_path, privacy={"epsilon": 4.0, "delta": 1e-7, "nominal_rows": rows})),
        StudyPaths(tmp_path, tmp_path / "out", resume=False),
    )
    for noise in np.geomspace(0.05, 1e5, 13):
        weights = tuple(settled.recipe.empty_fit(float(noise), {}).weights_)
        assert len(encode_value(weights)) <= settled.payload_bytes, noise


@pytest.mark.full
@pytest.mark.parametrize(("rows", "noise"), [(120_000, 1.5), (900, 0.7)])
def test_a_release_with_many_or_few_rows_is_found(tmp_path, rows, noise):
    privacy = {"noise_multiplier": noise, "delta": 1e-7, "nominal_rows": rows}
    assert released(tmp_path, privacy=privacy, learner={"name": "boosted-trees"})["found"]


@pytest.mark.parametrize(
    ("key", "value"), [("max_depth", 9), ("n_estimators", 0), ("linear_share", 1), ("bounds", [0, 1]), ("max_bins", 1)]
)
def test_what_is_wrong_is_named(tmp_path, key, value):
    asked = study(tmp_path, learner={"name": "boosted-trees", key: value})
    with pytest.raises(StudyError, match=f"learner.{key}"):
        check_study(parse_study(asked), base_folder=tmp_path)


def test_indicators_follow_their_column():
    columns = {
        "a": Column(bounds=(0, 1)),
        "kind": Column(categories=("x", "y")),
        "b": Column(bounds=(0, 1), missing="indicator"),
    }
    assert indicators_of(columns) == [[1, 2], [4]]
    assert indicators_of({}) == []
