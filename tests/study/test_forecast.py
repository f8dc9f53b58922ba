"""What a forecast says, from public facts and from the table that is shipped; and that no row is read for it."""

import copy
import json
from importlib.resources import files
from itertools import product
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.errors import ArgumentError, StudyError
from dpselect.searching.design import design_names
from dpselect.study import check_study, forecast_study, parse_study
from dpselect.study.forecast import SIGNALS, SIGNALS_A_WEIGHT
from tests.study.schema_cases import STUDY

ONE = {key: copy.deepcopy(STUDY[key]) for key in ("name", "data", "privacy", "output")}
MAPS = {"map": {"law": "categorical", "choices": ["cos4", "direction"]}}
SHIPPED = json.loads((files("dpselect.study") / "forecast.json").read_text(encoding="utf-8"))


MU = 0.7191
"""Of (3, 1e-5), by the curve of Gaussian differential privacy (Dong, Roth, Su 2022, Corollary 2.13)."""


def tune(*arguments):
    return CliRunner().invoke(app, ["tune", *arguments])


def forecast(rows=1200, **tables):
    privacy = {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": rows}
    study = parse_study({**copy.deepcopy(ONE), "privacy": privacy, **tables})
    return forecast_study(study, base_folder=Path())


def test_the_table_that_is_shipped_is_whole_and_says_where_it_is_from():
    assert SHIPPED["made_by"] == "python -m benchmarks.planner"
    assert len(SHIPPED["tables"]) >= 5
    assert {each["group"] for each in SHIPPED["losses"]} <= set(range(len(SIGNALS_A_WEIGHT) + 1))
    asked = set(product(design_names()[1:], ("maps", "rates"), range(len(SIGNALS) + 1)))
    assert {(each["design"], each["space"], each["group"]) for each in SHIPPED["gains"]} <= asked
    for each in (*SHIPPED["losses"], *SHIPPED["gains"]):
        assert each["releases"] >= 3
        assert each["low"] < each["median"] < each["high"]


@pytest.mark.parametrize(("rows", "group"), [(200, 0), (1000, 1), (1200, 2), (50_000, 3)])
def test_a_forecast_is_that_of_what_was_measured_at_as_many_signals(rows, group):
    found = forecast(rows, space=MAPS)
    assert found["signals"] == pytest.approx(rows * MU, rel=1e-3)
    here = ("classification", "maps", group)
    known = {each["design"]: each for each in SHIPPED["gains"] if (each["task"], each["space"], each["group"]) == here}
    for each in found["designs"]:
        if each["design"] == "one-run":
            assert (each["median"], each["releases"]) == (0.0, None)
        elif each["design"] in known:
            assert each.items() <= known[each["design"]].items()
        else:
            assert each["median"] is None


def test_a_space_of_rates_is_told_from_one_of_maps():
    assert forecast(space=MAPS)["space"] == "maps"
    assert forecast()["space"] == "maps"  # what a search would be for
    assert forecast(space={"learning_rate": {"law": "uniform", "low": 1.0, "high": 2.0}})["space"] == "rates"


@pytest.mark.full
def test_the_design_is_the_one_that_the_study_will_have():
    for tables in ({}, {"space": MAPS}, {"space": MAPS, "search": {"design": "one-stage"}}):
        study = parse_study({**copy.deepcopy(ONE), **tables})
        checked = check_study(study, base_folder=Path())
        found = forecast_study(study, base_folder=Path())
        assert found["design"] == checked["design"]
    assert found["why"] == "the study says so"


def test_what_was_not_measured_is_not_foretold():
    with pytest.raises(StudyError, match="a delta above 0"):
        forecast_study(
            parse_study(
                {**ONE, "privacy": {"epsilon": 3.0, "nominal_rows": 120}, "learner": {"name": "output-perturbation"}}
            ),
            base_folder=Path(),
        )
    public = {"epsilon": 3.0, "delta": 1e-5, "adjacency": "replace_one"}
    with pytest.raises(StudyError, match="nominal_rows"):
        forecast_study(
            parse_study({**ONE, "privacy": public, "learner": {"name": "output-perturbation"}}), base_folder=Path()
        )


def test_the_command_prints_it_and_reads_no_row(tmp_path, monkeypatch):
    study = tmp_path / "study.toml"
    (tmp_path / "people.csv").write_text("a,b,moved\n")  # no row at all
    study.write_text(
        '[data]\nsource = "people.csv"\nlabel = "moved"\nclasses = ["no", "yes"]\n'
        "[data.columns]\na = { bounds = [0, 1] }\nb = { bounds = [0, 1] }\n"
        "[privacy]\nepsilon = 2.0\ndelta = 1e-6\nnominal_rows = 4000\n"
        '[output]\nfolder = "out"\n'
    )
    monkeypatch.chdir(tmp_path)
    printed = tune("--forecast", "study.toml").stdout
    assert "4000 rows at epsilon 2 and delta 1e-06" in printed
    assert "no row was read" in printed
    assert "this study" in printed
    assert json.loads(tune("--forecast", "study.toml", "--json").stdout)["weights"] == 4
    assert isinstance(tune("--forecast", "--check", "study.toml").exception, ArgumentError)
    assert not (tmp_path / "out").exists()
