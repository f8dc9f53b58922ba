"""What is refused before anything is paid, by public facts, and what errors do not show."""

from __future__ import annotations

import json
import sys
import traceback

import numpy as np
import pytest

from dpselect.cli.app import main
from dpselect.errors import ContentError
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest
from dpselect.holdout.files import read_columns
from dpselect.ordered import median, open_column
from dpselect.study.data import load
from dpselect.study.schema_data import Data
from dpselect.tables.table import open_table
from tests.ordered.sources import column_laws as laws

SECRET = "s3cr3t"


BOUNDS = ("--lower", "0", "--upper", "9")
ODD_FILES = {
    "utf-16": "other,x\n1,2\n".encode("utf-16"),
    "utf-16-be": b"\xfe\xff" + "other,x\n1,2\n".encode("utf-16-be"),
    "utf-32": "other,x\n1,2\n".encode("utf-32"),
    "unmarked utf-16": "other,x\n1,2\n".encode("utf-16-le"),
    "latin-1 header": "größe,x\n1,2\n".encode("latin-1"),
}


@pytest.mark.parametrize("name", ODD_FILES)
def test_files_in_another_encoding_are_refused_by_their_header(tmp_path, pay, name):
    path = tmp_path / "odd.csv"
    path.write_bytes(ODD_FILES[name])
    status, said, left = pay(path, *BOUNDS)
    assert (status, left) == (1, 3.0)
    assert "UTF-8" in said
    for read in (lambda: open_table("odd.csv", tmp_path), lambda: read_columns(path, ["x"])):
        with pytest.raises(ContentError, match="UTF-8") as caught:
            read()
        assert "byte" not in "".join(traceback.format_exception(caught.value))


def test_a_cell_in_another_encoding_is_a_cell_that_is_no_number(tmp_path, pay):
    """A byte that is no UTF-8, and a cell of any length, concern one row alone."""
    path = tmp_path / "rows.csv"
    path.write_bytes(b"other,x\n" + b"1,5\n" * 500 + b"1,caf\xe9\n" + b"\xff,5\n" + b"1," + b"9" * 140_000 + b"\n")
    with open_column(str(path), "x", look=True) as source:
        assert laws.ranks(source, lower=0, upper=9, granularity=1)[1] == {5: 501, 9: 1}
    assert pay(path, *BOUNDS)[::2] == (0, 2.0)
    columns = {"x": {"bounds": (0, 9)}}
    facts = Data.model_validate({"source": "rows.csv", "label": "other", "classes": ("1", "2"), "columns": columns})
    with pytest.raises(ContentError) as caught:
        load(facts, open_table("rows.csv", tmp_path))
    assert caught.value.__context__ is None
    with pytest.raises(ContentError, match="UTF-8") as caught:  # anyone who reads predictions may know all about them
        read_columns(path, ["x"])
    assert caught.value.__context__ is None


def test_study_data_show_no_cell(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    columns = {"x": {"bounds": (0, 9)}}
    facts = Data.model_validate({"source": "x.parquet", "label": "y", "classes": ("a", "b"), "columns": columns})
    text = pa.array([b"a", b"b", b"s3cr3t\xff"]).view(pa.string())
    pyarrow.parquet.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": text}), tmp_path / "x.parquet")
    assert load(facts, open_table("x.parquet", tmp_path)).labels.tolist() == [0, 1, -1]
    pyarrow.parquet.write_table(pa.table({"x": ["1", "2", SECRET], "y": ["a", "b", "a"]}), tmp_path / "x.parquet")
    with pytest.raises(ContentError, match="'x' has a cell that is missing or no number") as caught:
        load(facts, open_table("x.parquet", tmp_path))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    (tmp_path / "x.parquet").write_bytes(b"PAR1 " + SECRET.encode())
    with pytest.raises(ContentError, match="Parquet"):
        open_table("x.parquet", tmp_path)


@pytest.mark.parametrize("missing", ["", "nan", "NaN", None, float("nan"), np.datetime64("NaT")])
def test_predictions_that_are_missing_cost_no_answer(tmp_path, monkeypatch, missing):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    labels = np.random.default_rng(0).integers(0, 2, 500)
    terms = {"metric": "accuracy", "questions": 20, "answers": 2, "failure_probability": 0.05}
    holdout = Holdout.create(
        tmp_path / "l.holdout", HoldoutLabels(ids=range(500), labels=labels), HoldoutRequest(**terms)
    )
    for predictions in ([missing] * 500, [*labels[1:], missing]):
        with pytest.raises(ContentError, match="rows without a prediction"):
            holdout.score(ids=range(500), predictions=predictions)
    assert holdout.status()["asked"] == 0
    holdout.score(ids=range(500), predictions=labels)


def test_the_status_of_a_holdout_by_its_name(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    place = str(tmp_path / "l.holdout")
    terms = {"metric": "accuracy", "questions": 20, "answers": 2, "failure_probability": 0.05}
    Holdout.create(place, HoldoutLabels(ids=range(500), labels=[0, 1] * 250), HoldoutRequest(**terms))
    said = []
    for arguments in ((place,), ("--holdout", place), (), (place, "--holdout", place)):
        monkeypatch.setattr(sys, "argv", ["dpselect", "holdout", "status", *arguments, "--json"])
        with pytest.raises(SystemExit) as end:
            main()
        said.append((end.value.code or 0, capsys.readouterr().out))
    assert json.loads(said[0][1])["questions_left"] == 20
    assert said[0] == said[1]
    assert said[2] == said[3] == (2, "")


@pytest.mark.parametrize("values", [[1.0, None, 2**64], (1, 10**400), [True, "x", 2.5, [1, 2]]])
def test_lists_with_odd_numbers_are_read(values):
    assert 0 <= median(values, lower=0, upper=9, epsilon=1.0).value <= 9
