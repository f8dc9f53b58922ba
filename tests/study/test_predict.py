"""Predictions for a table: cells and separators that a model cannot read."""

import pytest

from tests.cli.predict_cases import predict, refused
from tests.study.model_cases import written

TEXT = "more,mango,apple,zebra,id\n1,m,0.5,1,r1\n2,a,2,0,r2\n3,?,0,0.25,=r3\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.npz").write_bytes(written())
    (tmp_path / "new.csv").write_text(TEXT)
    return tmp_path


def test_a_cell_that_cannot_be_read_is_not_shown(folder):
    (folder / "new.csv").write_text(TEXT.replace("0.25", "s3cr3t"))
    said = refused("model.npz", "new.csv")
    assert "'zebra' has a cell that is missing or no number" in said
    assert "s3cr3t" not in said


def test_separators_that_training_refuses_are_refused(folder):
    head, row = "mango;apple;zebra\n", "m;0,5;1\n"
    for keep in ((), ("--keep", "zebra")):
        (folder / "new.csv").write_text(head + row * 10 + "a;2;1.994,5\n" * 2)
        options = ("new.csv", "--delimiter", ";", "--decimal", ",", *keep)
        assert "'zebra' holds numbers with other separators" in (said := refused("model.npz", *options))
        assert "declare form.decimal and form.thousands" in said
        assert "1.994" not in said
        assert predict("model.npz", *options, "--thousands", ".").exit_code == 0
