"""How cells of a column are read: dates, times and durations."""

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pytest

from dpselect.study.columns.column import Column
from tests.study.tables_cases import ROWS, cells, encoded, rows_of, text_of


@pytest.mark.parametrize(
    "noon",
    [
        "2013-01-01T12:00:00",
        "2013-01-01 12:00",
        "2013-01-01 12:00:00+00",
        "2013-01-01T14:00:00+02:00",
        "20130101T120000Z",
        b"2013-01-01 12:00",
        datetime(2013, 1, 1, 12),
        datetime(2013, 1, 1, 12, tzinfo=UTC),
        datetime(2013, 1, 1, 14, tzinfo=timezone(timedelta(hours=2))),
        np.datetime64("2013-01-01T12:00"),
    ],
)
def test_a_moment_is_itself_however_it_is_written(noon):
    assert encoded({"kind": "date", "bounds": ("2013-01-01", "2013-01-03")}, noon) == [[-0.5]]


def test_dates_in_columns_of_their_own_type_and_in_a_declared_format():
    column = Column(kind="date", bounds=("2000-01-01", "2000-01-05"), missing="indicator")
    days = np.array(["2000-01-02", "NaT", "1600-01-01"], dtype="datetime64[D]")
    expected = [[-0.5, 0.0], [0.0, 1.0], [-1.0, 0.0]]
    for unit in ("D", "s", "ms", "us"):
        assert column.encode("c", days.astype(f"datetime64[{unit}]")).tolist() == expected
    assert column.encode("c", cells(date(2000, 1, 2), None, date(1600, 1, 1))).tolist() == expected
    german = {"kind": "date", "format": "%d.%m.%Y", "bounds": ("01.01.2000", "05.01.2000"), "missing": "02.01.2000"}
    assert encoded(german, "04.01.2000", "2000-01-04") == [[0.5], [-0.5]]
    pandas = pytest.importorskip("pandas")
    zoned = pandas.Series(pandas.to_datetime(["2000-01-02T01:00", None]).tz_localize("Europe/Paris"))
    assert column.encode("c", np.asarray(zoned)).tolist() == [[-0.5, 0.0], [0.0, 1.0]]


@pytest.fixture
def expected(tmp_path):
    (tmp_path / "plain.csv").write_text(text_of(ROWS), encoding="utf-8")
    rows = rows_of(tmp_path, "plain.csv")
    assert rows.labels.tolist() == [0, 1, 0, -1]
    assert rows.features.shape == (4, 13)
    return rows
