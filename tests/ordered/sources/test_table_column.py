"""Columns of files: which types are read, and what a look at the first rows refuses."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered import median, open_column
from dpselect.randomness import keyed_source
from tests.ordered.sources import column_laws as laws
from tests.ordered.sources.kinds_cases import near_the_middle
from tests.tables.kinds.doors_cases import of_quantile

BOUNDS = ("--lower", "0", "--upper", "9")


def test_a_text_column_of_a_csv_file_is_not_charged(tmp_path, pay):
    path = laws.csv_file(tmp_path / "people.csv", ["north", "south", "", "nan", "east"] * 400)
    status, said, left = pay(path, *BOUNDS)
    assert (status, left) == (1, 3.0)
    assert "'x'" in said
    assert "north" not in said
    assert pay(path, *BOUNDS, "--range-epsilon", "1")[2] == 3.0
    assert pay(path, "--category", "north", "--category", "south", "--category", "east")[::2] == (0, 2.0)
    assert pay(path, *BOUNDS, "--kind", "number")[::2] == (5, 1.0)  # as was declared, and withheld
    assert pay(path, *BOUNDS, "--kind", "text")[::2] == (2, 1.0)
    mixed = laws.csv_file(tmp_path / "mixed.csv", ["1", "x", "y", "", "-"] * 40)
    assert pay(mixed, *BOUNDS, "--no-count")[::2] == (0, 0.0)


DAYS = np.datetime64("2024-01-01", "D") + np.arange(300)
MOMENTS = np.repeat(DAYS.astype("datetime64[us]"), 5)
GRADES = ["low"] * 10 + ["middle"] * 300 + ["high"] * 20 + ["unheard of"] * 900
ORDER = ["low", "middle", "high"]


def test_files_of_moments_and_text(tmp_path):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    grades = (GRADES * 2)[: len(MOMENTS)]
    table = pa.table({"moment": MOMENTS, "grade": grades, "list": [[1]] * len(MOMENTS)})
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.csv").write_text("grade\n" + "\n".join(GRADES))
    with open_column(str(tmp_path / "rows.parquet"), "moment") as source:
        near_the_middle(source)
    for name in ("rows.parquet", "rows.csv"):
        with open_column(str(tmp_path / name), "grade", text=True) as source:
            assert median(source, categories=ORDER, epsilon=1.0, random=keyed_source(1)).value == "middle"
            with pytest.raises(TypeError, match="categories"):
                median(source, lower=0, upper=1, epsilon=1.0)
    for column, word in (("grade", "categories"), ("list", "store its parts")):
        where = str(tmp_path / "rows.parquet")
        with pytest.raises(ArgumentError, match=word), open_column(where, column):
            pass


def test_an_undeclared_form_of_dates_is_refused_by_the_look(tmp_path):
    path = tmp_path / "t.csv"
    there = ["2024-01-02"] * 30
    path.write_text("id,x\n" + "".join(f"1,{cell}\n" for cell in [*there, *["01/02/2024"] * 4]))
    with pytest.raises(ContentError, match=r"'x' of .* holds dates in another form"):
        of_quantile(path, kind="date", look=True)
    path.write_text("id,x\n" + "".join(f"1,{cell}\n" for cell in [*there, "01/02/2024"]))
    assert np.isnan(of_quantile(path, kind="date", look=True)).sum() == 1  # one row decides nothing
    path.write_text("id,x\n" + "1,J\n1,N\n" * 9)
    with pytest.raises(ContentError, match="look like booleans; other words are declared by true_values"):
        of_quantile(path, kind="boolean", look=True)
    with pytest.raises(ArgumentError, match="two_digit_years_from = 1920"):
        of_quantile(path, kind="date", format="%d.%m.%y")
    with pytest.raises(ArgumentError, match="unicode"):
        open_column(str(path), "x", kind="category", unicode="exact")
