"""`dpselect predict`: the command line ends where the user ends, with predictions for new rows."""

import csv

import numpy as np
import pytest

from dpselect.study import load_model
from tests.cli.predict_cases import predict, refused
from tests.study.model_cases import written

TEXT = "more,mango,apple,zebra,id\n1,m,0.5,1,r1\n2,a,2,0,r2\n3,?,0,0.25,=r3\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.npz").write_bytes(written())
    (tmp_path / "new.csv").write_text(TEXT)
    return tmp_path


def expected():
    rows = list(csv.DictReader(TEXT.splitlines()))
    columns = {name: np.array([row[name] for row in rows], dtype=object) for name in rows[0]}
    model = load_model("model.npz")
    return model.predict(columns).tolist(), model.predict_proba(columns).tolist()


def test_predictions_go_to_a_file_or_to_standard_output(folder):
    result = predict("model.npz", "new.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == ["prediction", *expected()[0]]
    result = predict("model.npz", "new.csv", "--to", "p.csv")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "wrote p.csv\n", "")
    assert (folder / "p.csv").read_text().splitlines() == ["prediction", *expected()[0]]


def test_columns_that_are_kept_and_probabilities():
    result = predict("model.npz", "new.csv", "--keep", "id", "--keep", "zebra", "--probabilities")
    rows = list(csv.DictReader(result.stdout.splitlines()))
    assert list(rows[0]) == ["id", "zebra", "prediction", "probability_yes", "probability_no"]
    assert [row["id"] for row in rows] == ["r1", "r2", "=r3"]
    assert [[float(row[f"probability_{label}"]) for label in ("yes", "no")] for row in rows] == expected()[1]


def test_a_file_in_another_dialect(folder):
    (folder / "new.csv").write_bytes(TEXT.replace(",", ";").replace(".", ",").encode("utf-16"))
    options = ("--delimiter", ";", "--decimal", ",", "--encoding", "utf-16")
    assert predict("model.npz", "new.csv", *options).stdout.splitlines() == ["prediction", *expected()[0]]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("new.csv", "new.csv"), "'new.csv' is not a released model"),
        (("none.npz", "new.csv"), "cannot read the model 'none.npz'"),
        (("model.npz", "none.csv"), "cannot read DATA 'none.csv'"),
        (("model.npz", "new.doc"), "DATA 'new.doc' must be"),
        (("model.npz", "new.csv", "--keep", "pear"), "no such column: 'pear'"),
        (("model.npz", "new.csv", "--delimiter", ";"), "no such column: 'zebra', 'apple', 'mango'"),
        (("model.npz", "new.csv", "--delimiter", ";;"), "--delimiter: must be one character"),
        (("model.npz", "new.csv", "--table", "t"), "--table: goes with"),
        (("model.npz", "new.csv", "--to", "new.csv"), "--to: would be written over the data"),
        (("model.npz", "new.csv", "--to", "none/p.csv"), "--to: 'none/p.csv' cannot be written"),
    ],
)
def test_wrong_input_names_its_argument(folder, arguments, said):
    assert said in refused(*arguments)
    assert (folder / "new.csv").read_text() == TEXT
