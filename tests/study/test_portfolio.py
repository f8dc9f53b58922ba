"""A study that is a portfolio: when it is one, what it costs, what it releases, and what is refused."""

import csv
import json
import math
from pathlib import Path

import numpy as np
import pytest

from dpselect.accounting.planning.portfolio import HEAD_START, OPTIMISM, TRIALS, PortfolioPrice, trial_shares
from dpselect.privacy import compose
from dpselect.randomness import keyed_source
from dpselect.searching.portfolio import TrialModel
from dpselect.study import check_study, load_model, run_study
from dpselect.study.design import designed
from dpselect.study.portfolio import fitted
from dpselect.study.price import price
from dpselect.study.validate import StudyPaths, validate
from tests.budgets import charges
from tests.study.portfolio_cases import BASE, MANY, MAPS, parsed
from tests.study.schema_cases import STUDY
from tests.study.test_design import assert_that_an_interrupted_one_goes_on

LEARNERS = {"learner": {"law": "categorical", "choices": ["dp-sgd", "ridge"]}}
FEW = 800


@pytest.fixture(autouse=True)
def own_state(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)


def priced(**tables):
    return price(validate(parsed(**tables), StudyPaths(Path(), Path("out"))))


# When a study is one


@pytest.mark.parametrize(
    ("tables", "expected"),
    [
        ({}, "portfolio"),
        ({"space": LEARNERS, "privacy": {**MANY, "nominal_rows": 20}}, "portfolio"),  # which nothing else searches
        ({"validation": {"fraction": 0.1}}, "portfolio"),
        ({"privacy": {**MANY, "nominal_rows": FEW + 100}}, "portfolio"),
        ({"privacy": {**MANY, "nominal_rows": FEW}}, "one-run"),  # a trial could not tell the maps apart
        ({"space": {**MAPS, **STUDY["space"]}}, "portfolio"),  # of the maps: a rule knows the rate
        ({"privacy": {"epsilon": 3.0, "delta": 1e-6, "nominal_rows": 5000, "adjacency": "replace_one"}}, "portfolio"),
        ({"privacy": {"noise_multiplier": 3.0, "delta": 1e-6, "nominal_rows": 5000}}, "one-stage"),
        ({"validation": {"metric": "balanced-accuracy"}}, "one-stage"),  # a portfolio compares correct predictions
        ({"validation": {"data": "public", "source": "sklearn:iris"}}, "one-stage"),
        ({"repetitions": {"law": "harmonic", "limit": 4}}, "one-stage"),
        ({"space": STUDY["space"]}, "one-run"),
        ({"space": {"map": {"law": "categorical", "choices": ["cos4", "joint", "direction"]}}}, "one-run"),
        ({"space": {"map": {"law": "categorical", "choices": ["bins"]}}}, "one-run"),
        ({"space": {"momentum": {"law": "categorical", "choices": [0.0, 0.9]}}}, "one-run"),
        ({"space": {"hidden_units": {"law": "categorical", "choices": [0, 8]}}}, "one-stage"),
        (
            {
                "space": {"regularization": {"law": "log_uniform", "low": 0.1, "high": 1.0}},
                "learner": {"name": "output-perturbation"},
            },
            "one-stage",
        ),
        ({"space": {"map": {"law": "categorical", "choices": ["cos4", "bins"] * 3}}}, "one-stage"),
    ],
)
def test_a_few_unlike_candidates_are_a_portfolio(tables, expected):
    study = designed(parsed(**{"search": {}, **tables}))
    assert study.search.design == expected
    assert designed(study) == study


@pytest.mark.parametrize(
    ("tables", "space"),
    [
        ({}, {"map": ["cos4", "joint"]}),
        ({"privacy": {**MANY, "nominal_rows": 30_000}}, {"learner": ["dp-sgd", "ridge"]}),
        ({"learner": {"image_shape": [2, 2]}}, {"map": ["oriented-gradients", "standardized"]}),
    ],
)
def test_a_portfolio_that_names_no_candidates_has_the_default_and_another(tables, space):
    study = designed(parsed(**{"space": {}, **tables}))
    assert {key: law["choices"] for key, law in study.space.items()} == space


# What it costs


@pytest.mark.full
def test_the_price_is_the_composition_and_uses_the_total():
    found = priced().price
    parts = found.portfolio.training
    assert 0.999 * 3.0 <= found.epsilon <= 3.0
    assert found.portfolio.choice.epsilon == pytest.approx(0.3)
    again = compose(compose(*parts, found.portfolio.last), found.portfolio.choice.guarantee, found.cells.guarantee)
    assert found.epsilon == pytest.approx(again.epsilon(1e-6), rel=1e-9)
    squares = np.array([part.gaussian_mu**2 for part in (*parts, found.portfolio.last)])
    assert found.portfolio.ahead == math.floor(HEAD_START / parts[0].gaussian_mu)
    assert squares / np.sum(squares) == pytest.approx([*trial_shares(3), 1.0 - TRIALS], abs=0.01)


@pytest.mark.full
def test_a_candidate_with_more_weights_is_put_back(tmp_path, monkeypatch):
    """Of 4 columns and 3 classes: (4 * 4 + 1) * 3 weights of cosines, 5 * 3 centred, (4 * 16 + 1) * 3 of bins."""
    told = []
    starts = PortfolioPrice.starts
    monkeypatch.setattr(PortfolioPrice, "starts", lambda *given: told.append(given[1:]) or starts(*given))
    run_study(parsed(output={"folder": "released"}), base_folder=tmp_path, random=keyed_source(1))
    assert told == [([17 * 3, 5 * 3, 65 * 3], MANY["nominal_rows"])]
    assert starts(priced().price.portfolio, *told[0])[1:] == (0, -(65 * 3 - 17 * 3) // 2)


@pytest.mark.parametrize("told", [{"map": "cos4"}, {"hidden_units": 3}, {"name": "ridge", "map": "bins"}])
def test_the_last_run_of_a_linear_model_begins_at_a_part_of_its_trial(told):
    """As large a part as its noise is of the trial's; a network and noisy sums begin again."""
    study = parsed(learner=told, space={}, search={"design": "one-run"})
    recipe = validate(study, StudyPaths(Path(), Path("out"))).recipe
    rows = np.linspace(0.0, 1.0, 24).reshape(6, 4), np.array([0, 1, 2, 0, 1, 2])
    trial = fitted(recipe, 40.0, keyed_source(1), rows, None)
    last = fitted(recipe, 10.0, keyed_source(2), rows, TrialModel(trial, 40.0))
    goes_on = {"initial_weights": [0.25 * trial.weights_[0]]} if told == {"map": "cos4"} else {}
    expected = recipe.estimator(10.0, {}, keyed_source(2)).fit(*rows, **goes_on)
    again = fitted(recipe, 10.0, keyed_source(2), rows, None)
    assert all(map(np.array_equal, last.weights_, expected.weights_))
    assert all(map(np.array_equal, last.weights_, again.weights_)) == (not goes_on)


@pytest.mark.full
@pytest.mark.parametrize(("optimism", "expected"), [(0.0, "bins"), (OPTIMISM, "cos4")])
def test_what_is_fitted_by_chance_alone_is_not_taken_for_better(tmp_path, monkeypatch, optimism, expected):
    """Labels that no column tells anything of, at a budget that lets bins learn them by heart."""
    random = np.random.default_rng(8)
    X, y = random.uniform(size=(600, 6)), random.integers(2, size=600)
    np.savez(tmp_path / "rows.npz", **{f"x{place}": X[:, place] for place in range(6)}, y=y)
    monkeypatch.setattr("dpselect.accounting.planning.portfolio.OPTIMISM", optimism)
    study = parsed(
        data={"source": "rows.npz", "label": "y", "classes": [0, 1], "bounds": [0, 1]},
        privacy={"epsilon": 60.0, "delta": 1e-6, "nominal_rows": 600},
        space={"map": {"law": "categorical", "choices": ["cos4", "bins"]}},
    )
    release = run_study(study, base_folder=tmp_path, random=keyed_source(4)).release
    assert release["parameters"] == {"map": expected}


@pytest.mark.full
def test_bounds_that_are_bought_are_paid_for_beside_it():
    columns = {"petal width (cm)": {"bounds": "private"}, "sepal length (cm)": {"bounds": [0, 8]}}
    data = {**{key: value for key, value in BASE["data"].items() if key != "bounds"}, "columns": columns}
    found = priced(data=data).price
    assert 0.999 * 3.0 <= found.epsilon <= 3.0
    trained = compose(*found.portfolio.training, found.portfolio.last)
    whole = compose(trained, found.portfolio.choice.guarantee, found.purchase.guarantee, found.cells.guarantee)
    assert found.epsilon == pytest.approx(whole.epsilon(1e-6), rel=1e-6)


@pytest.mark.full
def test_without_delta_epsilon_itself_is_shared():
    privacy = {"epsilon": 4.0, "nominal_rows": 120}
    space = {"regularization": {"law": "categorical", "choices": [0.01, 0.1]}}
    found = priced(privacy=privacy, learner={"name": "output-perturbation"}, space=space).price
    assert [part.pure_epsilon for part in found.portfolio.training] == pytest.approx([0.48, 0.06], rel=1e-3)
    assert found.portfolio.last.pure_epsilon == pytest.approx(3.06, rel=1e-3)
    assert 0.999 * 4.0 <= found.epsilon <= 4.0


# What it releases


@pytest.mark.full
def test_the_candidates_are_public_and_only_the_chosen_one_is_released(tmp_path):
    study = parsed(privacy={**MANY, "epsilon": 30.0}, test={"source": "sklearn:iris"})
    release = run_study(study, base_folder=tmp_path, random=keyed_source(3)).release
    assert release["candidates"] == [{"map": name} for name in MAPS["map"]["choices"]]
    assert release["parameters"] in release["candidates"]
    assert release["score"] is None
    assert release["validation"] is None
    assert release["test"]["accuracy"] > 0.6
    found = check_study(study, base_folder=tmp_path, folder=tmp_path / "other")
    assert [one["map"] for one in found["candidates"]] == MAPS["map"]["choices"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert "3 candidates" in page
    assert "whole portfolio" in page
    assert "law of the number" not in page
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        *("model.npz", "release.json", "facts.json", "report.html", "search.sealed", "budget.db", "model-card.md"),
    }


@pytest.mark.full
def test_a_figure_is_released_where_a_part_of_the_rows_validates(tmp_path, no_page):
    study = parsed(validation={"fraction": 0.3})
    release = run_study(study, base_folder=tmp_path, random=keyed_source(3)).release
    assert release["validation"]["low"] <= release["validation"]["value"] <= release["validation"]["high"]


@pytest.mark.full
def test_one_that_is_interrupted_goes_on_and_is_charged_once(tmp_path, monkeypatch, no_page):
    assert_that_an_interrupted_one_goes_on(parsed, tmp_path, monkeypatch)
    assert charges(tmp_path / "out" / "budget.db") == [True]


ROWS = 600


@pytest.fixture
def houses(tmp_path):
    """Odd names in no order, labels as text or as a number, and a column without public bounds."""
    random = np.random.default_rng(1)
    size, age = random.uniform(20, 200, ROWS), random.uniform(0, 90, ROWS)
    place = random.choice(["Köln", "a,b", ""], ROWS)
    price = 1000 * size + 500 * age + random.normal(0, 5000, ROWS)
    cells = {
        "Größe (m²)": size.tolist(),
        "price": price.tolist(),
        "place": place.tolist(),
        "dear": ["yes, dear" if p > 130_000 else "no" for p in price],
        "age": age.tolist(),
    }
    with (tmp_path / "houses.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(cells)
        writer.writerows(zip(*cells.values(), strict=True))
    return cells


COLUMNS = {
    "age": {"bounds": [0, 100]},
    "place": {"categories": ["a,b", "Köln"], "other": True},
    "Größe (m²)": {"bounds": "private"},
}


@pytest.mark.full
@pytest.mark.parametrize(
    "label",
    [
        {"label": "dear", "classes": ["yes, dear", "no"]},
        {"label": "price", "task": "regression", "label_bounds": [0, 300_000]},
    ],
)
def test_a_table_of_ones_own_with_learners_and_bought_bounds(tmp_path, houses, label, no_page):
    study = parsed(
        data={"source": "houses.csv", "columns": COLUMNS, **label},
        privacy={**MANY, "nominal_rows": ROWS, "epsilon": 20.0},
        space=LEARNERS,
        learner={"class_weights": {"no": 2.0}} if "classes" in label else {},
    )
    release = run_study(study, base_folder=tmp_path, random=keyed_source(2)).release
    assert release["candidates"] == [{"learner": "dp-sgd", "map": "cos4"}, {"learner": "ridge", "map": "bins"}]
    assert release["learner"] == release["parameters"]["learner"]
    (ends,) = release["preparation"]["bounds"].values()
    assert -100 < ends[0] < ends[1] < 400
    model = load_model(tmp_path / "out" / "model.npz")
    answers = model.predict({name: houses[name] for name in reversed(list(COLUMNS))})
    if "classes" in label:
        assert np.mean(answers == np.array(houses["dear"])) > 0.8
    else:
        errors = answers - np.array(houses["price"])
        assert math.sqrt(np.mean(errors**2)) < 0.7 * np.std(houses["price"])
    assert "Größe" in json.dumps(release, ensure_ascii=False)
