"""How a file is written: declarations that are wrong are named."""

import pytest

from dpselect.errors import ArgumentError
from dpselect.tables import Written
from dpselect.tables.table import open_table
from dpselect.tables.written import csv_form


@pytest.mark.parametrize(
    ("written", "named"),
    [
        (Written(delimiter=";;"), "--delimiter"),
        (Written(decimal=";"), "--decimal"),
        (Written(decimal=","), "--decimal"),
        (Written(thousands="_"), "--thousands"),
        (Written(thousands="."), "--thousands"),
        (Written(skip_rows=-1), "--skip_rows"),
        (Written(encoding="klingon"), "--encoding"),
    ],
)
def test_what_is_wrong_is_named(written, named):
    with pytest.raises(ArgumentError, match=named):
        csv_form(written, named=lambda part: f"--{part}")


@pytest.mark.parametrize("encoding", ["utf-7", "unicode_escape", "raw_unicode_escape", "punycode", "idna"])
def test_an_encoding_in_which_a_cell_is_half_a_character_is_refused(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("x\n1\n")
    with pytest.raises(ArgumentError, match=r"encoding: unknown encoding"):
        open_table("t.csv", tmp_path, form=Written(encoding=encoding))
