"""Counts of a study's cells: what they cost, what they count, and studies that are withheld."""

import math
import sys

import numpy as np
import pytest
from scipy.stats import norm

from dpselect.cli.app import main
from dpselect.errors import StudyError
from dpselect.privacy import Adjacency, gaussian
from dpselect.randomness import keyed_source
from dpselect.report.cells import cells_in_words
from dpselect.study import check_study, run_study
from dpselect.study.cell_counts import CellPrice, cell_price
from dpselect.study.columns.column import Column
from dpselect.study.data import load
from dpselect.study.load import open_rows
from dpselect.study.price import price
from dpselect.study.split import NothingToTrain, prepared
from dpselect.study.validate import StudyPaths, validate
from dpselect.tables.fates import FATES
from dpselect.testing.learner_contract import unpriced
from tests.budgets import charges
from tests.study.cell_counts_cases import COLUMNS, ROW, base, study, written

pytestmark = pytest.mark.usefixtures("state", "no_page")
ODD = [
    ("", "", "", "yes"),
    ("unknown", "soon", "medium", "no"),
    ("NA", "n/a", "NA", "NA"),
    ("7", "1999-01-01", "LOW", "maybe"),
    ("1000", "2030-01-01", "high", ""),
    ("1_000", "2021-05-06T07:08", " low ", " yes"),
    ("1e999", "6th of May", "\u00e9", "TRUE"),
]
COLUMNS_READ = {name: Column(**facts) for name, facts in COLUMNS.items()}
WITH_DELTA = {"epsilon": 2.0, "delta": 1e-5, "nominal_rows": 400}


def counts(folder, rows, asked=None):
    written(folder, rows)
    asked = study() if asked is None else asked
    settled = validate(asked, StudyPaths(folder, folder / "out"))
    return load(asked.data, settled.table, settled.columns, counted=True)


def test_each_cell_has_one_fate(tmp_path):
    found = counts(tmp_path, base() + ODD).cells
    assert dict(zip(FATES, found[0], strict=True)) == {
        "inside": 10, "below": 1, "above": 2, "missing": 2, "unreadable": 2,
    }  # fmt: skip
    assert found[1].tolist() == [11, 1, 1, 2, 2]
    assert found[2].tolist() == [12, 0, 0, 2, 3]
    assert found[3].tolist() == [13, 0, 0, 2, 2]


def test_a_category_for_all_others_leaves_nothing_unreadable(tmp_path):
    other = study({"columns": COLUMNS | {"grade": {"categories": ["low", "high"], "other": True}}})
    assert counts(tmp_path, base() + ODD, other).cells[2].tolist() == [15, 0, 0, 2, 0]


@pytest.mark.parametrize("odd", ODD)
def test_one_row_more_changes_one_count_of_each_column(tmp_path, odd):
    before, after = (counts(tmp_path, rows).cells for rows in (base() + ODD, [*base(), *ODD, odd]))
    assert [sorted(change) for change in (after - before).tolist()] == [[0, 0, 0, 0, 1]] * 4


@pytest.mark.theorem("docs/theory/lost-cells.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_the_price_is_that_of_the_distance_between_neighbours(tmp_path, adjacency, delta):
    replaced = adjacency is Adjacency.REPLACE_ONE
    privacy = {"epsilon": 2.0, "delta": delta, "adjacency": adjacency.value, "nominal_rows": 4000}
    asked = study(privacy=privacy)
    found = cell_price(asked, asked.data.columns)
    rows = [*base(), ("", "", "", "")]
    neighbour = [*base(), ("50", "1999-01-01", "low", "no")] if replaced else base()
    apart = counts(tmp_path, rows).cells - counts(tmp_path, neighbour).cells
    if found.pure:
        lost = np.abs(apart).sum() / found.deviation  # of outputs far out in this direction
        assert 0.99 * found.guarantee.epsilon(0.0) < lost <= found.guarantee.epsilon(0.0)
    else:
        mu = math.sqrt((apart**2).sum()) / found.deviation
        exact = norm.cdf(mu / 2 - 0.1 / mu) - math.exp(0.1) * norm.cdf(-mu / 2 - 0.1 / mu)
        assert exact <= found.guarantee.delta(0.1)
        assert exact > found.guarantee.delta(0.101)


def test_noise_for_one_column_does_not_cover_all():
    """The mutation that the theorem excludes: a sensitivity of 1 in the place of sqrt(columns)."""
    asked = study(privacy=WITH_DELTA)
    found = cell_price(asked, asked.data.columns)
    assert gaussian(noise_multiplier=found.deviation).epsilon(1e-5) < 0.6 * found.guarantee.epsilon(1e-5)


@pytest.mark.theorem("docs/theory/lost-cells.md, Theorem 4", exact=True, loose="a bound on the tail, and a union bound")
@pytest.mark.parametrize("columns", [1, 7, 800])
def test_a_study_is_withheld_with_little_chance_if_the_shares_are_allowed(columns):
    found = CellPrice(tuple(map(str, range(columns))), 20.0, False, Adjacency.REPLACE_ONE, 0.2, (True,) * columns)
    chance = columns * norm.sf((found._excess_margin - 1.0) / (20.0 * math.hypot(0.8, 0.2, 0.2, 0.2)))
    assert 0.002 < chance <= 0.05


def test_the_noise_is_that_of_the_price():
    zeros = np.zeros((2000, 5), dtype=np.int64)
    for pure, deviation in ((False, 7.0), (False, 0.6), (True, 5.0)):
        found = CellPrice(("x",) * 2000, deviation, pure, Adjacency.REPLACE_ONE, 0.2, (True, False) * 1000)
        noise = found.noisy(zeros, keyed_source(3))
        free = noise[:, [0, 3, 4]].ravel()
        wanted = deviation * math.sqrt(2.0) if pure else math.hypot(deviation, math.sqrt(1 / 12))
        assert np.std(free) == pytest.approx(wanted, rel=0.05)
        assert abs(np.mean(free)) < 5 * wanted / math.sqrt(len(free))
        assert not noise[1::2, 1:3].any()
        assert noise[::2, 1:3].any()
        assert np.abs(noise).max() <= found.margin * 1.5


def test_the_rule_is_public_and_the_total_what_was_asked(tmp_path):
    written(tmp_path, base() + ODD)
    for privacy in (WITH_DELTA, {"epsilon": 2.0, "adjacency": "replace_one"}):
        asked = study(privacy=privacy)
        found = check_study(asked, base_folder=tmp_path, folder=tmp_path / "out")
        assert 0.99 * 2.0 < found["epsilon"] <= 2.0
        assert 0.0 < found["cells"]["epsilon"] < 0.5
        without = check_study(study({"count_cells": False}, privacy=privacy), base_folder=tmp_path)
        assert without["cells"] is None
        assert without["single_run_epsilon"] > found["single_run_epsilon"] > 0.85 * without["single_run_epsilon"]
    assert cell_price(study(privacy=WITH_DELTA), COLUMNS_READ).deviation == pytest.approx(30.0)
    assert (
        cell_price(study(privacy=WITH_DELTA | {"nominal_rows": 90}), COLUMNS_READ) is None
    )  # counts would say nothing
    assert cell_price(study(privacy=WITH_DELTA | {"epsilon": 50.0}), COLUMNS_READ).deviation < 10.0  # a hundredth
    assert (
        cell_price(study(privacy=WITH_DELTA | {"epsilon": 0.1, "nominal_rows": 9000}), COLUMNS_READ).deviation > 100.0
    )  # a twentieth
    beside = cell_price(study(privacy=WITH_DELTA), COLUMNS_READ, pure=True)  # runs that need no delta
    assert beside.guarantee.epsilon(0.0) == pytest.approx(0.05 * 2.0)
    assert cell_price(study(privacy={"noise_multiplier": 2.0, "nominal_rows": 9}, learner={}), {}) is None


def test_with_other_cells_the_key_is_another(tmp_path):
    """Features alike, but a cell is unreadable and was missing: the noise must not be that of the other counts."""
    one, other = (counts(tmp_path, [*base(), (cell, *ROW[1:])]) for cell in ("", "unknown"))
    assert np.array_equal(one.features, other.features)
    assert one.digests.joined == other.digests.joined
    assert one.digest() != other.digest()


def opened(folder, rows, **tables):
    written(folder, rows)
    return open_rows(price(validate(study(**tables), StudyPaths(folder, folder / "out"))))


def test_counts_are_the_same_for_the_same_key_and_apart_from_bounds(tmp_path):
    columns = COLUMNS | {"age": {"bounds": "private", "missing": 40}, "dpselect": {"bounds": [0, 1]}}
    rows = [(*row[:3], row[3]) for row in base() * 30]
    del columns["dpselect"]
    preparation = prepared(opened(tmp_path, rows, data={"columns": columns}))
    with unpriced():
        first, again, other = (preparation.objective(keyed_source(key)) for key in (1, 1, 2))
    limits, noisy = first.beside
    assert np.array_equal(noisy, again.beside[1])
    assert not np.array_equal(noisy, other.beside[1])
    assert limits.shape == (1, 2)
    assert noisy.shape == (4, 5)


def test_unreadable_cells_withhold_a_study_before_anything_is_trained(tmp_path):
    rows = [ROW, ("50", "2022-02-02", "High", "no")] * 2000
    found = prepared(opened(tmp_path, rows)).objective(keyed_source(1))
    assert isinstance(found, NothingToTrain)
    (noisy,) = found.beside
    assert abs(noisy[2, FATES.index("unreadable")] - 2000) < 500
    allowed = opened(tmp_path, rows, data={"most_unreadable": 0.7})
    assert not isinstance(prepared(allowed).objective(keyed_source(1)), NothingToTrain)


CHOICES = {"regularization": {"law": "categorical", "choices": [0.01, 0.1]}}
DESIGNS = {
    "one run": {},
    "portfolio": {"search": {"design": "portfolio"}, "space": CHOICES},
    "two stages": {"search": {"design": "two-stage"}, "space": CHOICES, "validation": {"data": "private"}},
    "search": {
        "space": {"row_norm": {"law": "categorical", "choices": [1.0, 2.0]}},
        "repetitions": {"law": "harmonic", "limit": 3},
        "validation": {"data": "private"},
    },
}


@pytest.mark.full
@pytest.mark.parametrize("design", list(DESIGNS))
def test_a_withheld_study_is_charged_and_releases_its_counts_alone(tmp_path, design):
    written(tmp_path, [ROW, ("50", "2022-02-02", "High", "no")] * 2000)
    run = run_study(study(**DESIGNS[design]), base_folder=tmp_path, folder=tmp_path / "out")
    release = run.release
    assert not release["found"]
    assert (release["score"], release["model"], release["validation"]) == (None, None, None)
    assert release["cells"]["withheld"] == ["grade"]
    assert abs(release["cells"]["columns"]["grade"]["unreadable"] - 2000) < release["cells"]["margin_95"] + 200
    assert any(note.startswith("withheld: more than 20 % of the cells") for note in release["notes"])
    assert not (tmp_path / "out" / "model.npz").exists()
    assert charges(tmp_path / "out" / "budget.db") == [True]


TOML = """
[data]
source = "rows.csv"
label = "y"
classes = ["yes", "no"]
columns.age = {{ bounds = [18, 100], missing = "indicator" }}
columns.grade = {{ categories = {grades} }}
[privacy]
epsilon = 2
delta = 1e-5
nominal_rows = 4000
[runs]
executor = "inline"
[output]
folder = "out"
"""


@pytest.mark.full
@pytest.mark.parametrize(("grades", "status"), [('["low", "high"]', 0), ('["LOW", "HIGH"]', 5)])
def test_the_command_says_what_was_counted(tmp_path, monkeypatch, capsys, grades, status):
    written(tmp_path, [ROW, ("150", "2022-02-02", "high", "no")] * 2000)
    (tmp_path / "study.toml").write_text(TOML.format(grades=grades))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["dpselect", "tune", "study.toml", "--quiet"])
    try:
        main()
        ended = 0
    except SystemExit as stopped:
        ended = stopped.code or 0
    said = capsys.readouterr().out
    assert ended == status
    assert "Cells of age: about" in said
    assert "above the bounds and clipped" in said
    assert ("withheld: more than 20 %" in said) == bool(status)


@pytest.mark.full
def test_a_study_that_counts_nothing_says_under_which_condition(tmp_path):
    written(tmp_path, base() * 40)
    release = run_study(study({"count_cells": False}), base_folder=tmp_path, folder=tmp_path / "out").release
    assert release["cells"] is None
    assert "holds if every cell can be read as the study declares" in "".join(cells_in_words(release))


def test_a_share_is_a_share():
    with pytest.raises(StudyError, match="most_unreadable"):
        study({"most_unreadable": 1.5})
