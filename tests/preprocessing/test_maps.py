"""Maps of rows: each row by itself, none refused, norm at most 1 exactly, free in a search, the same when loaded."""

from __future__ import annotations

import copy
import math
import pickle
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from dpselect.errors import ArgumentError, StudyError
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.integrations.sklearn.guarantee import is_free, private_steps
from dpselect.learners import OutputPerturbationClassifier
from dpselect.preprocessing import (
    MAPS,
    CenteredScale,
    Cosines,
    DirectionAndCosines,
    LogScale,
    OrientedGradients,
    PublicBins,
    RowDirection,
    RowStandardization,
)
from dpselect.preprocessing.transformers import EXPECTED_FAILED_CHECKS, is_known_map
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.study import load_model, parse_study, run_study
from dpselect.study.learners.recipe import recipe_of
from dpselect.testing import learner_contract
from dpselect.testing.learner_contract import unpriced

ALL: dict[str, Any] = {
    "bins": PublicBins(bins=5, bounds=(-2, 3), indicators=[[4, 1], (7,)]),
    "centered": CenteredScale(bounds=[(-1, 1)] * 6 + [(0, 1e9)], indicators=[[0, 5]]),
    "cos4": Cosines(waves=7, bounds=(-2, 3), indicators=[[2, 3, 8]]),
    "direction": RowDirection(bounds=(-1e-3, 1e300)),
    "joint": DirectionAndCosines(bounds=(0, 1), indicators=[[0], [1], [2]]),
    "log": LogScale(bounds=(-1.7e308, 1.7e308)),
    "oriented-gradients": OrientedGradients(orientations=5, cell=3),
    "standardized": RowStandardization(),
}
ODD = [0.0, -0.0, 1.0, -1.0, 1e-320, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan, 0.5, 2.0**-17]


def test_every_map_is_tried_here():
    assert set(ALL) == set(MAPS)
    assert all(isinstance(ALL[name], MAPS[name]) and is_known_map(ALL[name]) for name in MAPS)


def rows(seed: int, count: int = 200) -> Any:
    """Rows of nine cells: ordinary ones, odd ones, constant ones, zeros."""
    random = np.random.default_rng(seed)
    table = random.normal(size=(count, 9)) * 10.0 ** random.integers(-3, 4, size=(count, 1))
    odd = random.random((count, 9)) < 0.2
    table[odd] = random.choice(ODD, size=int(odd.sum()))
    table[0], table[1], table[2] = 0.0, 7.25, math.nan
    table[3:11] = random.choice(ODD, size=table[3:11].shape)
    return table


@pytest.mark.parametrize("name", ALL)
def test_every_image_has_norm_at_most_one_exactly(name):
    images = ALL[name].fit_transform(rows(3))
    assert images.dtype == np.float64
    assert np.all(np.isfinite(images))
    for image in images:
        assert sum(Fraction(cell) ** 2 for cell in image.tolist()) <= 1


@pytest.mark.parametrize("name", ALL)
def test_an_image_is_a_function_of_its_row(name):
    table, rows_map = rows(5), ALL[name]
    whole = rows_map.fit(table).transform(table)
    assert np.array_equal(rows_map.fit(rows(6, 4)).transform(table), whole), "nothing is learnt"
    order = np.random.default_rng(1).permutation(len(table))
    assert np.array_equal(rows_map.transform(table[order]), whole[order])
    for place in (0, 2, 7, 150):
        assert np.array_equal(rows_map.transform(table[place : place + 1]), whole[place : place + 1])
    assert np.array_equal(rows_map.transform(np.asfortranarray(table)), whole)
    assert rows_map.transform(table[:0]).shape == (0, whole.shape[1])


@pytest.mark.parametrize("name", ALL)
def test_no_cell_is_refused_and_what_is_no_number_is_missing(name):
    class Odd:
        def __float__(self):
            raise RuntimeError("secret")

    cells = ["x", None, Odd(), [1], "2.5", 10**400, b"", 1, True]
    table = np.array([cells, [1.0] * 9], dtype=object)
    plain = [math.nan, math.nan, math.nan, math.nan, 2.5, math.inf, math.nan, 1.0, 1.0]  # 10**400 as the text 1e400
    with warnings.catch_warnings(action="error"):
        found = ALL[name].fit(table).transform(table)
    assert np.array_equal(found, ALL[name].transform([plain, [1.0] * 9]))


@pytest.mark.cases(4)
@pytest.mark.parametrize("name", ALL)
def test_only_the_listed_conventions_are_broken(name):
    with warnings.catch_warnings(action="ignore"):
        results = check_estimator(
            type(ALL[name])(), expected_failed_checks=EXPECTED_FAILED_CHECKS, on_fail=None, on_skip=None
        )
    failed = [r for r in results if r["status"] == "failed"]
    if name == "oriented-gradients":  # scikit-learn makes tables of 1, 2, 3, 5 and 10 columns, which are no images
        failed = [r for r in failed if "image" not in str(r["exception"])]
    assert [r["check_name"] for r in failed] == []
    assert sum(r["status"] == "passed" for r in results) > 20


@pytest.mark.parametrize("name", ALL)
def test_copies_are_alike(name):
    table, rows_map = rows(8, 20), ALL[name]
    images = rows_map.fit_transform(table)
    for other in (clone(rows_map).fit(table), copy.deepcopy(rows_map), pickle.loads(pickle.dumps(rows_map))):
        assert np.array_equal(other.transform(table), images)
    assert len(rows_map.get_feature_names_out()) == images.shape[1]


# what each does


def test_the_middle_of_the_bounds_is_zero():
    found = CenteredScale(bounds=[(0, 10), (-4, 4)]).fit_transform([[5, 0], [10, -4], [99, -99], [math.nan, 2]])
    assert found * math.sqrt(2) == pytest.approx(np.array([[0, 0], [1, -1], [1, -1], [0, 0.5]]), abs=1e-4)


def test_the_logarithm_spreads_small_amounts():
    found = LogScale(bounds=(10, 10 + math.e**4 - 1)).fit_transform([[10 + math.e**k - 1] for k in range(5)])
    assert found.ravel() == pytest.approx([-1, -0.5, 0, 0.5, 1], abs=1e-4)


def test_bins_hold_their_lower_ends_and_a_missing_cell_lies_in_none():
    found = PublicBins(bins=4, bounds=(0, 1)).fit_transform([[0.0], [0.25], [0.4999], [0.5], [1.0], [math.nan]])
    assert [np.flatnonzero(row).tolist() for row in found] == [[0], [1], [1], [2], [3], []]
    assert found.sum(axis=1)[:5] == pytest.approx(1.0, abs=1e-4)


def test_directions_lose_the_length():
    found = RowDirection(bounds=(-1, 1)).fit_transform([[0.03, 0.04], [0.3, 0.4], [0, 0]])
    assert found == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [0, 0]]), abs=1e-3)


def test_waves_are_those_of_the_formula():
    u, flags = np.array([-0.7, 0.2]), np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    found = Cosines(indicators=[[1, 2, 3]]).fit_transform(np.column_stack([u, flags]))
    norm = math.sqrt(1 + 1 / 4 + 1 / 9 + 1 / 16)
    trig = (np.sin, np.cos, np.sin, np.cos)
    waves = np.column_stack([f(math.pi * k * u / 2) / (k * norm) for k, f in zip(range(1, 5), trig, strict=True)])
    expected = 1.2 * np.hstack([waves, flags]) / math.sqrt(2 + 1)
    assert np.all(np.linalg.norm(expected, axis=1) < 1)
    assert found == pytest.approx(expected, abs=2.0**-15)


def test_joint_holds_both():
    table = rows(2)[:, :3]
    options = {"bounds": (-1, 1), "indicators": [[2]]}
    found = DirectionAndCosines(**options).fit_transform(table) * math.sqrt(2)
    parts = [RowDirection(**options).fit_transform(table), Cosines(**options).fit_transform(table)]
    assert found == pytest.approx(np.hstack(parts), abs=1e-3)


def test_brightness_and_contrast_go():
    row = np.random.default_rng(0).integers(0, 50, 12)
    found = RowStandardization().fit_transform([row, 3 * row + 40])
    assert found[0] == pytest.approx(found[1], abs=1e-3)
    assert found[0] == pytest.approx((row - row.mean()) / np.linalg.norm(row - row.mean()), abs=1e-3)


def test_an_edge_is_found_where_it_is_and_in_its_direction():
    image = np.zeros((6, 8))
    image[:, 5:] = 3.0
    squares = OrientedGradients(image_shape=(6, 8), cell=2, orientations=4)
    across = squares.fit_transform([image.ravel()]).reshape(5, 7, 4)
    assert set(np.argwhere(across > 0)[:, 1]) == {3, 4, 5}, "the columns of squares that touch pixels 4 or 5"
    assert set(np.argwhere(across > 0)[:, 2]) == {0}, "brighter to the right"
    turned = squares.fit_transform([image[:, ::-1].ravel()]).reshape(5, 7, 4)
    assert set(np.argwhere(turned > 0)[:, 2]) == {2}, "brighter to the left"
    assert squares.transform([(image * 1e200).ravel()]) == pytest.approx(across.ravel()[None, :], abs=1e-3)


@pytest.mark.parametrize(
    ("rows_map", "named"),
    [
        (CenteredScale(bounds=(1, 1)), "bounds"),
        (CenteredScale(bounds=(0, math.inf)), "bounds"),
        (CenteredScale(bounds="wide"), "bounds"),
        (CenteredScale(bounds=[(0, 1)] * 3), "bounds"),
        (RowDirection(indicators=[[0], [0]]), "indicators"),
        (RowDirection(indicators=[[9]]), "indicators"),
        (RowDirection(indicators=[[]]), "indicators"),
        (RowDirection(indicators=[0]), "indicators"),
        (RowDirection(indicators=[["a"]]), "indicators"),
        (PublicBins(bins=1), "bins"),
        (PublicBins(bins=2.5), "bins"),
        (Cosines(waves=0), "waves"),
        (OrientedGradients(image_shape=(2, 3)), "image_shape"),
        (OrientedGradients(image_shape=4), "image_shape"),
        (OrientedGradients(cell=3), "cell"),
        (OrientedGradients(orientations=1), "orientations"),
    ],
)
def test_parameters_that_do_not_fit_are_refused_by_name(rows_map, named):
    with pytest.raises((ArgumentError, TypeError), match=named):
        rows_map.fit(np.zeros((3, 4)))


# in a search


def test_a_map_is_free_and_what_inherits_from_one_is_not():
    class Peeking(CenteredScale):
        def fit(self, X, y=None):
            self.bounds = (np.min(X), np.max(X))
            return super().fit(X)

    assert all(is_free(ALL[name]) for name in ALL)
    assert not is_free(Peeking())
    with pytest.raises(ArgumentError, match="learns from the data"):
        private_steps(make_pipeline(Peeking(), OutputPerturbationClassifier()))


def test_a_search_over_maps_costs_what_a_search_over_nothing_costs():
    random = np.random.default_rng(2)
    X = np.concatenate([random.normal(8.0, 1.0, (60, 3)), random.normal(5.0, 1.0, (60, 3))])
    y = np.repeat(["late", "early"], 60)
    learner = OutputPerturbationClassifier(epsilon=20.0, classes=["early", "late"], nominal_rows=100)
    options = {"repetitions": Fixed(count=2), "score_epsilon": 1.0, "nominal_rows": 120, "random": keyed_source(1)}
    maps = [RowDirection(bounds=(0, 13)), CenteredScale(bounds=(0, 13)), RowStandardization()]
    searched = PrivateSearchCV(make_pipeline(maps[0], learner), {"rowdirection": maps}, **options)
    plain = PrivateSearchCV(learner, {}, **options)
    assert searched.plan(X).guarantee.epsilon(0.0) == plain.plan(X).guarantee.epsilon(0.0)
    X[0, 0] = math.nan
    found = searched.fit(X, y)
    assert found.best_params_["rowdirection"] in maps
    assert found.best_estimator_.predict(X[:1]).shape == (1,)


# in a study


def study(table, folder, *, learner, space):
    import csv

    with (folder / "rows.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.cells)
        writer.writerows(zip(*table.cells.values(), strict=True))
    facts = {"label": "label", "classes": list(table.classes), "columns": dict(table.columns)}
    return parse_study(
        {
            "data": {"source": "rows.csv", **facts},
            "privacy": {"nominal_rows": 90, "epsilon": 8.0, "delta": 1e-5},
            "learner": {"name": "output-perturbation", **learner},
            "space": space,
            "repetitions": {"law": "fixed", "count": 2},
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
        }
    )


MAPPED = {
    "shared": ({"map": "cos4", "waves": 3}, {"regularization": {"law": "uniform", "low": 0.01, "high": 0.1}}),
    "searched": ({"bins": 3}, {"map": {"law": "categorical", "choices": ["log", "bins", "joint"]}}),
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("kind", MAPPED)
@pytest.mark.parametrize("table", [learner_contract.narrow, learner_contract.wide])
def test_the_model_that_is_loaded_goes_through_the_map_that_it_was_trained_behind(kind, table, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    made, (learner, space) = table(), MAPPED[kind]
    asked = study(made, tmp_path, learner=learner, space=space)
    trained, original = [], learner_contract.Recipe.estimator

    def keeping(self, *arguments):
        trained.append(original(self, *arguments))
        return trained[-1]

    monkeypatch.setattr(learner_contract.Recipe, "estimator", keeping)
    with unpriced():
        found = run_study(asked, base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(7)).release
    name = found["parameters"].get("map", "cos4")
    model = load_model(tmp_path / "out" / "model.npz")
    assert type(model.estimator.rows_map) is MAPS[name]
    same = [
        m
        for m in trained
        if hasattr(m, "weights_") and len(m.weights_[0]) and np.array_equal(m.weights_[0], model.estimator.weights_[0])
    ]
    encoded = model.encode(made.features)
    assert same
    assert all(np.array_equal(m.predict_proba(encoded), model.predict_proba(made.features)) for m in same)


@pytest.mark.parametrize(
    ("learner", "space", "named"),
    [
        ({"map": "cosines"}, {}, "learner.map: no such map; one of bins"),
        ({"map": 3}, {}, "learner.map"),
        ({"map": "cos4", "bins": 3}, {}, "learner.bins"),
        ({"waves": 3}, {}, "learner.waves"),
        ({"map": "cos4", "bounds": [0, 1]}, {}, "learner.bounds"),
        ({"map": "cos4"}, {"map": {"law": "categorical", "choices": ["bins"]}}, "space.map"),
        ({}, {"map": {"law": "uniform", "low": 0, "high": 1}}, "space.map"),
        ({}, {"map": {"law": "categorical", "choices": ["bins", "worse"]}}, "space.map"),
        ({"map": "cos4"}, {"waves": {"law": "uniform", "low": 1, "high": 3}}, "space.waves"),
    ],
)
def test_a_study_names_maps_that_there_are(learner, space, named, tmp_path):
    asked = study(learner_contract.narrow(), tmp_path, learner=learner, space=space)
    with pytest.raises(StudyError, match=named):
        recipe_of(asked, nominal_rows=60.0, columns=asked.data.columns)


def test_images_of_another_shape_are_refused_before_a_row_is_read(tmp_path):
    learner = {"map": "oriented-gradients", "image_shape": [5, 5]}
    asked = study(learner_contract.narrow(), tmp_path, learner=learner, space={})
    with pytest.raises(StudyError, match="image_shape"):
        run_study(asked, base_folder=tmp_path, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_registered_map_of_ones_own_is_free(monkeypatch):
    class Halved(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            return self

        def transform(self, X):
            return np.asarray(X) / 2

    assert not is_free(Halved())
    monkeypatch.setattr(MAPS, "_things", dict(MAPS._things))
    monkeypatch.setattr(MAPS, "_facts", dict(MAPS._facts))
    MAPS.register("halved")(Halved)
    assert is_free(Halved())
