"""Kinds of cells, as they are declared: what other libraries read under the same declaration."""

import datetime

import numpy as np
import pytest

from dpselect.errors import ContentError, StudyError
from dpselect.study.columns.column import Column
from dpselect.study.data import load
from dpselect.study.reading import parse_study
from dpselect.study.schema_data import Data
from dpselect.tables.table import open_table

BERLIN = "Europe/Berlin"
PEOPLE = """born;seen;ill;score;moved
31.12.24;01.07.2024 00:30;J;-99;ja
01.02.30;01.07.2024 12:00;N;7;nein
k.A.;01.01.2024 00:30;k.A.;8;ja
"""
DECLARED = {
    "born": {"kind": "date", "format": "%d.%m.%y", "two_digit_years_from": 1920, "bounds": ["01.01.20", "31.12.99"]},
    "seen": {
        "kind": "timestamp",
        "format": "%d.%m.%Y %H:%M",
        "time_zone": BERLIN,
        "bounds": ["01.01.2024 00:30", "01.07.2024 12:00"],
    },
    "ill": {"kind": "boolean", "true_values": ["J"], "false_values": ["N"]},
    "score": {"kind": "integer", "bounds": [0, 10], "missing_values": [-99]},
}
LABEL = {"kind": "boolean", "true_values": ["ja"], "false_values": ["nein"]}


def data_of(**more):
    columns = {name: {**facts, "missing": "indicator"} for name, facts in DECLARED.items()}
    plain = {"source": "t.csv", "delimiter": ";", "label": "moved", "label_cells": LABEL, "classes": [False, True]}
    return Data.model_validate({**plain, "columns": columns, **more})


def test_a_study_reads_cells_as_they_are_declared(tmp_path):
    (tmp_path / "t.csv").write_text(PEOPLE)
    data = data_of()
    rows = load(data, open_table("t.csv", tmp_path, form=data.form))
    assert rows.labels.tolist() == [1, 0, 1]
    born, seen, ill, score = (rows.features[:, [k, k + 1]].T for k in range(0, 8, 2))
    assert born[1].tolist() == [0, 0, 1]
    assert -1 < born[0][0] < born[0][1] < 0 == born[0][2]  # 1924, 1930
    assert seen[0][1] == 1
    assert seen[0][2] == -1
    summer = datetime.datetime(2024, 6, 30, 22, 30) - datetime.datetime(2023, 12, 31, 23, 30)
    whole = datetime.datetime(2024, 7, 1, 10) - datetime.datetime(2023, 12, 31, 23, 30)
    assert seen[0][0] == pytest.approx(2 * summer / whole - 1)
    assert ill.tolist() == [[1, -1, 0], [0, 0, 1]]
    assert score[1].tolist() == [1, 0, 0]


def test_a_regression_reads_its_label_as_it_is_declared(tmp_path):
    (tmp_path / "t.csv").write_text("x,y\n1,1:30\n2,0:30\n3,2:00\n")
    cells = {"kind": "duration", "missing_values": ["2:00"]}
    data = Data.model_validate(
        {
            "source": "t.csv",
            "label": "y",
            "task": "regression",
            "label_bounds": [0, 7200],
            "columns": {"x": {"bounds": [0, 3]}},
            "label_cells": {"kind": "duration"},
        }
    )
    assert load(data, open_table("t.csv", tmp_path)).labels.tolist() == [5400, 1800, 7200]
    missing = data.model_copy(update={"label_cells": type(data.label_cells)(**cells)})
    with pytest.raises(ContentError, match="'y' has a label that is missing or no duration"):
        load(missing, open_table("t.csv", tmp_path))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"columns": {"born": {**DECLARED["born"], "two_digit_years_from": None}}},
            "columns.born: two_digit_years_from: ",
        ),
        ({"label_cells": {"kind": "date"}}, "label_cells: the kind of a label for classification must be"),
        ({"classes": ["x", "y"]}, "classes: of a boolean label must be its two values"),
        (
            {"columns": {"ill": {"kind": "boolean", "bounds": "private"}}},
            "columns.ill: the bounds of booleans are known",
        ),
        ({"columns": {"a": {"kind": "category", "bounds": [0, 1]}}}, "columns.a"),
        ({"columns": {"a": {"kind": "date", "categories": ["x"]}}}, "columns.a: kind"),
        ({"columns": {"a": {"categories": ["x"], "time_zone": BERLIN}}}, "columns.a: time_zone: goes with"),
    ],
)
def test_a_study_that_declares_too_little_is_refused_by_name(more, said):
    columns = more.get("columns", DECLARED)
    columns = {
        name: {key: value for key, value in facts.items() if value is not None} for name, facts in columns.items()
    }
    data = {"source": "t.csv", "label": "moved", "label_cells": LABEL, "classes": [False, True], **more}
    privacy = {"epsilon": 1, "nominal_rows": 10, "delta": 1e-3}
    with pytest.raises(StudyError, match=f"data.{said}"):
        parse_study({"data": {**data, "columns": columns}, "privacy": privacy, "output": {"folder": "x"}})


def test_dates_of_an_undeclared_form_are_not_lost_in_silence():
    column = Column(kind="date", bounds=("2020-01-01", "2025-01-01"), missing="indicator")
    there = ["2024-01-02"] * 30
    with pytest.raises(ContentError, match="'x' holds dates in another form than declared: say format"):
        column.numbers("x", there + ["01/02/2024"] * 4)
    assert np.isnan(column.numbers("x", [*there, "01/02/2024"])).sum() == 1  # one row decides nothing
    assert np.isnan(column.numbers("x", [*there, "?", "unknown", "12"])).sum() == 3


def test_time_stamps_of_a_type_have_no_other_zone():
    column = Column(kind="date", bounds=("2020-01-01", "2025-01-01"), time_zone=BERLIN)
    with pytest.raises(ContentError, match="leave time_zone out"):
        column.numbers("x", np.array(["2024-01-01"], dtype="M8[s]"))
    pd = pytest.importorskip("pandas")
    aware = pd.Series(pd.to_datetime(["2024-07-01"]).tz_localize(BERLIN))
    assert column.numbers("x", np.asarray(aware)).tolist() == column.numbers("x", ["2024-07-01"]).tolist()
