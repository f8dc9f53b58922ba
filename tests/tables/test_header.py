"""Names of columns: errors say which are there."""

import re

import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout.files import read_columns
from dpselect.ordered import open_column
from dpselect.tables.header import absent
from tests.tables.every_format import (
    FORMATS,
)


@pytest.mark.parametrize("name", FORMATS)
def test_a_column_that_is_not_there_is_named(name, tmp_path):
    FORMATS[name](tmp_path / name)
    with (
        pytest.raises(ArgumentError, match=r"no such column: 'y'; there are 'id', 'x'"),
        open_column(str(tmp_path / name), "y"),
    ):
        pass
    with pytest.raises(ContentError, match=r"no such column: 'y'; there are 'id', 'x'"):
        read_columns(tmp_path / name, ["id", "y"], own=True)


def test_of_many_columns_the_most_alike_are_named():
    many = [f"column {n}" for n in range(20)]
    assert absent(["age"], many).count("'column") == 20
    assert absent(["age"], [*many, "Age"]) == "no such column: 'age'; there are 'Age', and others (21 in all)"
    assert absent(["age"], [*many, "x"]).endswith("'column 19', and others (21 in all)")


@pytest.mark.parametrize(
    ("header", "said"),
    [
        (["sep=;"], "by delimiter that it is ';'"),
        (["sep="], "by delimiter that it is ','"),
        (["# 2024", "b"], "a comment, so say by skip_rows"),
        (["a;b"], "so the delimiter may be ';'"),
        (["a\tb"], r"so the delimiter may be '\\t'"),
    ],
)
def test_a_header_that_is_none_is_recognised(header, said):
    assert re.search(said, absent(["age"], header))
    assert not re.search(said, absent(["age"], ["a", "b"]))
