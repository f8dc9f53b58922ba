"""One file, one reading: what each door makes of text that people have, beside what was declared."""

import json
import math
import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.errors import ContentError
from dpselect.holdout.files import class_names, read_columns
from dpselect.holdout.gate.files import read_outcomes
from dpselect.holdout.gate.outcomes import Layout
from dpselect.learners.rows import labels_of
from dpselect.ordered import median, open_column
from dpselect.randomness import keyed_source
from dpselect.tables.csv_text import csv_header
from tests.tables.csv_text_cases import of_quantile, of_study

NAN = math.nan


@pytest.mark.parametrize("rows", [20, pytest.param(200_000, marks=pytest.mark.full)])
def test_rows_of_another_length_make_no_quantile_fail(rows, tmp_path):
    """What a row holds must not be told by an error after the price is paid; a study refuses before it."""
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "a,1\n" * rows + "b\nc,3,4\n")
    np.testing.assert_array_equal(of_quantile(path), [1] * rows + [NAN, 3])
    with open_column(str(path), "x", look=True) as source:
        assert median(source, lower=0, upper=5, epsilon=10, granularity=1, random=keyed_source(1)).value == 1
    for door in (of_study, lambda path: read_columns(path, ["id", "x"])):
        with pytest.raises(ContentError, match="length differs"):
            door(path)


def test_the_gate_reads_the_same_truth_values(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,outcome\na,TRUE\nb,False\nc,0.5\nd,1_0\n")
    outcomes = read_outcomes(path, "id", ["outcome"])
    layout = Layout(tuple((name,) for name in outcomes), 1)
    assert layout.means(outcomes).tolist() == [1.0, 0.0, 0.5, 0.0]


def test_a_holdout_knows_truth_values_in_any_case():
    assert class_names(["TRUE", "True", "true", "1"]) == ["1.0"] * 4
    assert class_names(["FALSE", "0.0"]) == ["0.0"] * 2


def test_a_holdout_of_an_older_version_names_classes_as_it_did():
    names = ["TRUE", "True", "true", "1", "cafe\u0301", "1_0", str(2**60)]
    assert class_names(names, naming=1) == ["TRUE", "1.0", "true", "1.0", "cafe\u0301", "1_0", str(2**60)]


def test_a_draft_declares_how_the_file_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("# by hand\nage;income;moved\n40;1.994,5;TRUE\n")
    flags = ["--delimiter", ";", "--decimal", ",", "--thousands", ".", "--skip-rows", "1"]
    found = CliRunner().invoke(app, ["init", "people.csv", "--label", "moved", *flags])
    assert found.exit_code == 0
    declared = tomllib.loads(found.stdout)["data"]
    assert [declared[key] for key in ("delimiter", "decimal", "thousands", "skip_rows")] == [";", ",", ".", 1]


def test_a_quantile_of_a_file_with_its_own_separators(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("# by hand\nid;x\n" + "".join(f"{k};1.99{k % 10},5\n" for k in range(300)))
    asked = ["quantile", str(path), "--column", "x", "--q", "0.5", "--epsilon", "50", "--lower", "0", "--upper", "9999"]
    flags = ["--delimiter", ";", "--decimal", ",", "--thousands", ".", "--skip-rows", "1", "--json"]
    (answer,) = json.loads(CliRunner().invoke(app, [*asked, *flags]).stdout)["quantiles"]
    assert 1990 < answer["value"] < 2000


def test_a_missing_label_of_a_dictionary_is_no_class():
    pa = pytest.importorskip("pyarrow")
    assert labels_of(pa.array(["a", None, "b"]).dictionary_encode(), 3).tolist() == ["a", None, "b"]


def test_a_header_that_begins_as_a_mark_of_another_format_is_one(tmp_path):
    for name in ("PAR1", "ARROW", "PK", "SQLite"):
        (tmp_path / "t.csv").write_text(f"{name},x\n1,2\n")
        assert csv_header(tmp_path / "t.csv") == [name, "x"]
