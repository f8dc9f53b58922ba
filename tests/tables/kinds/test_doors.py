"""Declared cells through every door: a study's column, `open_column` and `dpselect quantile` read them alike."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app, in_flags
from dpselect.errors import ArgumentError, ContentError
from dpselect.ordered import Column as OrderedColumn, open_column, quantiles
from dpselect.study.columns.column import Column
from dpselect.study.data import cells_of
from dpselect.tables import Declared, Written
from dpselect.tables.table import open_table
from tests.tables.kinds.doors_cases import of_quantile

BERLIN = "Europe/Berlin"
CASES = {
    "numbers": ({"missing_values": [-99, "NA"]}, ["1.5", "-99", "-99.0", "NA", "2", "", "x"]),
    "integers": ({"kind": "integer", "missing_values": [-1]}, ["1", "2.0", "1e3", "2.5", "-1", "x", ""]),
    "booleans": ({"kind": "boolean", "true_values": ["J"], "false_values": ["N"]}, ["J", "N", "TRUE", "0", "?", "n"]),
    "dates": (
        {"kind": "date", "format": "%d.%m.%y", "two_digit_years_from": 1920, "missing_values": ["01.01.20"]},
        ["31.12.24", "01.01.20", "29.02.00", "30.02.00", "x"],
    ),
    "time stamps": (
        {"kind": "timestamp", "time_zone": BERLIN},
        ["2024-07-01 12:00", "2024-10-27T02:30", "2024-01-01T00:00Z", "2024-01-01", "01/02/2024"],
    ),
    "durations": ({"kind": "duration"}, ["1:30", "-2 days", "90", "1 day 02:03:04.5", "x"]),
}


def files_of(folder, cells):
    """One column of text in each format that has no other types for it."""
    (folder / "t.csv").write_text("id,x\n" + "".join(f'1,"{cell}"\n' for cell in cells))
    (folder / "t.tsv").write_text("id\tx\n" + "".join(f" 1\t {cell}  \n" for cell in cells))
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    parquet.write_table(pa.table({"x": pa.array(cells, pa.string())}), folder / "t.parquet")
    return ["t.csv", "t.tsv", "t.parquet"]


@pytest.mark.parametrize("name", CASES)
def test_every_door_reads_declared_cells_alike(name, tmp_path):
    keys, cells = CASES[name]
    expected = Declared(**keys).read(cells)
    bounds = {} if keys.get("kind") == "boolean" else {"bounds": "private"}
    column = Column(**keys, **bounds, missing="indicator")
    assert 0 < np.isnan(expected).sum() < len(cells)
    for file in files_of(tmp_path, cells):
        np.testing.assert_array_equal(of_quantile(tmp_path / file, **keys), expected)
        table = open_table(file, tmp_path)
        try:
            found = column.numbers("x", cells_of(table, ["x"], ["x"])["x"])
        except ContentError as error:
            assert "another form" in str(error)  # noqa: PT017
        else:
            np.testing.assert_array_equal(found, expected)


def asked(path, column, *flags):
    result = CliRunner().invoke(app, ["quantile", str(path), "--column", column, "--epsilon", "50", *flags, "--json"])
    if result.exception is not None:
        raise result.exception
    return [row["value"] for row in json.loads(result.stdout)["quantiles"]]


@pytest.mark.parametrize(
    ("unit", "zone", "declared", "said"),
    [
        ("us", "Asia/Tokyo", (), "+09:00"),
        ("ns", "+05:30", (), "+05:30"),
        ("s", "UTC", (), "+00:00"),
        ("ms", "Mars/Base", (), "+00:00"),
        ("us", "Asia/Tokyo", ("--kind", "timestamp", "--time-zone", BERLIN), "+02:00"),
        ("us", None, (), ""),
    ],
)
def test_a_typed_time_zone_comes_back_with_its_offset(unit, zone, declared, said, tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    ticks = np.datetime64("2024-07-01T12:00:00.5") + np.arange(-300, 301).astype("m8[s]")
    cells = pa.array(ticks).cast(pa.timestamp(unit, zone), safe=False)
    parquet.write_table(pa.table({"x": cells}), tmp_path / "t.parquet")
    bounds = ("--lower", "2024-07-01T00:00Z", "--upper", "2024-07-02T00:00Z")
    (middle,) = asked(tmp_path / "t.parquet", "x", "--q", "0.5", *bounds, *declared)
    assert middle.endswith(said)
    moment = datetime.fromisoformat(middle)
    assert abs((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - 1719835200) < 300
    # a bound without an offset is in the zone of the answers
    early = ("--lower", "2024-06-30", "--upper", "2024-07-01")
    assert asked(tmp_path / "t.parquet", "x", "--q", "1", *early, *declared)[0][:19] == "2024-07-01T00:00:00"


def test_answers_come_back_as_they_were_asked(tmp_path):
    path = tmp_path / "t.csv"
    hours = [f"{hour % 24:02}:{hour % 60:02}" for hour in range(600)]
    lines = (f"01.07.2024 {hour};{hour}:00;{'J' if k % 3 else 'N'};{k % 100}" for k, hour in enumerate(hours))
    path.write_text("seen;wait;ill;n\n" + "\n".join(lines) + "\n")
    plain = ("--delimiter", ";", "--q", "0.5")
    zone = ("--kind", "timestamp", "--format", "%d.%m.%Y %H:%M", "--time-zone", BERLIN)
    (seen,) = asked(path, "seen", *plain, *zone, "--lower", "01.07.2024 00:00", "--upper", "2024-07-02")
    assert "2024-07-01T11" <= seen < "2024-07-01T13"
    assert seen.endswith("+02:00")
    (wait,) = asked(path, "wait", *plain, "--kind", "duration", "--lower", "0:00", "--upper", "24:00:00")
    assert wait.startswith(("11:", "12:"))
    (wait,) = asked(path, "wait", *plain, "--kind", "duration", "--lower", "0", "--upper", "86400")
    assert 11 * 3600 <= wait <= 13 * 3600
    assert asked(path, "ill", *plain, "--kind", "boolean", "--true-value", "J", "--false-value", "N") == [True]
    several = ("--q", "0.9", "--q", "0.5", "--kind", "integer", "--lower", "0", "--upper", "99")
    middle, high, again = asked(path, "n", *plain, *several)
    assert (middle, type(high)) == (again, int)
    assert high > middle
    kept = asked(path, "n", *plain, "--missing-value", "99", "--missing-value", "NA", "--lower", "0", "--upper", "99")
    assert 40 < kept[0] < 60
    with pytest.raises(ArgumentError) as said:
        asked(path, "seen", *plain, "--kind", "date", "--format", "%d.%m.%y", "--lower", "1", "--upper", "2")
    assert in_flags(str(said.value), ["quantile"]).startswith("--two-digit-years-from: a format with %y")
    with pytest.raises(ArgumentError, match="--lower must be a timestamp"):
        asked(path, "seen", *plain, *zone, "--lower", "1.7.", "--upper", "2024-07-02")
    with pytest.raises(ArgumentError, match="--lower must be a duration such as"):
        asked(path, "wait", *plain, "--kind", "duration", "--lower", "x", "--upper", "1")
    with pytest.raises(ArgumentError, match="--kind: categories and text need --category"):
        asked(path, "ill", *plain, "--kind", "category", "--lower", "0", "--upper", "1")


def test_quantiles_of_a_declared_column_keep_their_order(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x\n" + "".join(f"{k}\n" for k in range(500)))
    with open_column(str(path), "x", kind="integer", form=Written(thousands=",")) as source:
        release = quantiles(source, qs=[0.9, 0.5, 0.5], lower=0, upper=499, epsilon=20)
    assert release.value[0] > release.value[1] == release.value[2]
    assert all(isinstance(value, int) for value in release.value)


STUDY = """
[data]
source = "people.csv"
delimiter = ";"
decimal = ","
label = "moved"
label_cells = { kind = "boolean", true_values = ["ja"], false_values = ["nein"] }
classes = [false, true]
[data.columns]
born = { kind = "date", format = "%d.%m.%y", two_digit_years_from = 1920, bounds = ["01.01.20", "31.12.19"] }
seen = { kind = "timestamp", time_zone = "Europe/Berlin", bounds = ["2024-07-01", "2024-08-01"] }
wait = { kind = "duration", bounds = [0, 10800], missing = "indicator" }
smoker = { kind = "boolean", true_values = ["J"], false_values = ["N"], missing = "N" }
n = { kind = "integer", bounds = "private", missing = 0 }
score = { bounds = [0, 5], missing = "indicator", missing_values = [-99] }
[privacy]
epsilon = 9
delta = 1e-6
nominal_rows = 2000
[learner]
name = "ridge"
[runs]
executor = "inline"
[output]
folder = "release"
"""


@pytest.mark.full
def test_a_study_of_declared_cells_from_its_rows_to_predictions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = ["born;seen;wait;smoker;n;score;moved"]
    for k in range(2000):
        moved, day = k % 2, 1 + k % 28
        score = ("-99", "1,5", "2,5")[k % 3]
        born = f"{day:02}.{1 + k % 12:02}.{(30 if moved else 70) + k % 20}"
        rest = f"2024-07-{day:02} 12:{k % 60:02};{k % 3}:30;{'JN'[k % 5 > 1]};{k % 9};{score}"
        lines.append(f"{born};{rest};{'ja' if moved else 'nein'}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "study.toml").write_text(STUDY)
    tuned = CliRunner().invoke(app, ["tune", "--quiet", "study.toml"])
    if tuned.exception is not None:
        raise tuned.exception
    assert tuned.exit_code == 0, tuned.output
    assert "| seen | timestamp, Europe/Berlin |" in (tmp_path / "release" / "model-card.md").read_text()
    written = ("--delimiter", ";", "--decimal", ",", "--keep", "moved")
    told = CliRunner().invoke(app, ["predict", "release/model.npz", "people.csv", *written])
    rows = [line.split(",") for line in told.stdout.splitlines()[1:]]
    assert len(rows) == 2000
    assert sum((moved == "ja") == (found == "True") for moved, found in rows) > 1900


def test_bounds_of_dates_may_be_written_in_the_format_or_in_iso():
    form = {"kind": "date", "format": "%d.%m.%Y", "missing": "indicator"}
    plain = Column(**form, bounds=("2015-01-01", "2024-12-31"))
    assert plain.limits == Column(**form, bounds=("01.01.2015", "31.12.2024")).limits
    with pytest.raises(ValueError, match=r"written as %d\.%m\.%Y or in ISO 8601"):
        Column(**form, bounds=("01/01/2015", "2024-12-31"))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_durations_of_a_parquet_file_are_those_of_a_study(tmp_path, unit):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    spans = pa.array([0, 90, None, -(10**9), 10**15], pa.duration(unit))
    parquet.write_table(pa.table({"x": spans}), tmp_path / "t.parquet")
    with open_column(str(tmp_path / "t.parquet"), "x", kind="duration") as source:
        found = np.concatenate([values for values, _ in source.blocks()])
        fates = OrderedColumn(source, lower=0, upper=10**5).fates().tolist()
    column = Column(kind="duration", bounds=(0, 10**5), missing="indicator")
    wanted = column.numbers("x", open_table("t.parquet", tmp_path).read(["x"])["x"])
    np.testing.assert_array_equal(found, wanted)
    assert sum(fates) == 5
    assert fates[3:] == [1, 0]
    with pytest.raises(ArgumentError, match=r"holds duration\[.*, which needs kind duration"):
        open_column(str(tmp_path / "t.parquet"), "x").__enter__()


def test_one_duration_of_a_parquet_file_changes_no_other(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def read(last):
        spans = pa.array([*range(50), last], pa.duration("ns"))
        parquet.write_table(pa.table({"x": spans}), tmp_path / "t.parquet", row_group_size=7)
        with open_column(str(tmp_path / "t.parquet"), "x", kind="duration") as source:
            return np.concatenate([values for values, _ in source.blocks()])

    before = read(1)
    for last in (None, 0, 2**63 - 1, -(2**63) + 1):
        assert read(last)[:-1].tobytes() == before[:-1].tobytes()
