"""Names of columns: errors say which are there."""

import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout.files import read_columns
from dpselect.ordered import open_column
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
