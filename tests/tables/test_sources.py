"""What is said of a source that is not there, or of no kind that is read: the public names that are there instead."""

import pytest

from dpselect.cli import app as command_line
from dpselect.errors import ArgumentError
from dpselect.ordered import open_column


def test_an_engine_that_is_not_read_is_named_without_its_driver():
    with pytest.raises(ArgumentError, match="'mysql' is not read"), open_column("mysql://host/x", "x", table="t"):
        pass


def test_a_missing_file_has_no_number_of_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["dpselect", "holdout", "create", "no.csv", "--to", "h.db", "--questions", "5"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        command_line.main()
    assert end.value.code == 1
    assert capsys.readouterr().err == "dpselect: no.csv: No such file or directory\n"
