"""One file, one reading: what each door makes of text that people have, beside what was declared."""

import gzip
import json
import math
import sqlite3
import tomllib
from contextlib import closing
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout.files import class_names, read_columns
from dpselect.holdout.gate.files import read_outcomes
from dpselect.holdout.gate.outcomes import Layout
from dpselect.learners.rows import doubles, labels_of
from dpselect.ordered import interior_point, median, open_column
from dpselect.ordered.sources.declared import Column as DeclaredColumn
from dpselect.randomness import keyed_source
from dpselect.study.columns.column import Column
from dpselect.study.containers import table_columns
from dpselect.study.data import cells_of, load
from dpselect.study.schema import Data
from dpselect.tables import Written
from dpselect.tables.blocks import csv_blocks
from dpselect.tables.categories import category
from dpselect.tables.csv_text import CsvForm, csv_rows
from dpselect.tables.number_blocks import block_of, present_in
from dpselect.tables.numbers import number_in, numbers_in, restated
from dpselect.tables.table import open_table
from dpselect.tables.written import csv_form

NAN = math.nan


def of_quantile(path):
    with open_column(str(path), "x") as source:
        return np.concatenate([values for values, _ in source.blocks()])


def of_study(path):
    return numbers_of(cells_of(open_table(path.name, path.parent), ["x"], ["x"])["x"])


def numbers_of(cells):
    return Column(bounds=(0, 1), missing=0.5).numbers("x", cells)


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


def test_letters_with_accents_are_one_category_however_they_were_typed():
    assert category("caf\u00e9") == category("cafe\u0301") != category("cafe")
    assert class_names(["caf\u00e9"]) == class_names(["cafe\u0301"])


def test_the_fast_reading_is_the_slow_one():
    cells = ["1", " 2.5 ", "-3e2", "inf", "1e400", "0.1000000000000000055511151231257827", "-0"]
    assert numbers_in(cells).tobytes() == np.array([number_in(cell) for cell in cells]).tobytes()
    mixed = [*cells, "TRUE", "x", "", "1_0"]
    np.testing.assert_array_equal(numbers_in(mixed), [number_in(cell) for cell in mixed])


@pytest.mark.parametrize(
    "cell", ["1.994,5", "-0,1", "1.234", "12.34", "7", ",5", "5,", "1e3", "1,5e-3", "x", "", "inf"]
)
def test_a_restated_cell_is_the_same_number(cell):
    (found,) = restated([cell], ",", ".", strict=True)
    np.testing.assert_array_equal(number_in(found), number_in(cell, ",", "."))


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


PRICES = [Decimal("10.25"), None, Decimal("-0.10"), Decimal("123456789012345678.1")]


def test_decimals_of_parquet(tmp_path):
    pa, parquet = (pytest.importorskip(name) for name in ("pyarrow", "pyarrow.parquet"))
    column = pa.array(PRICES, pa.decimal128(30, 2))
    parquet.write_table(pa.table({"x": column}), tmp_path / "t.parquet")
    expected = [math.nan if price is None else float(price) for price in PRICES]
    with open_column(str(tmp_path / "t.parquet"), "x") as source:
        np.testing.assert_array_equal(np.concatenate([values for values, _ in source.blocks()]), expected)
    table = open_table("t.parquet", tmp_path)
    found = Column(bounds=(0, 1), missing=0.5).numbers("x", cells_of(table, ["x"], ["x"])["x"])
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(block_of(column)[0], expected)


def test_decimals_of_polars():
    pl = pytest.importorskip("polars")
    np.testing.assert_array_equal(block_of(pl.Series(PRICES[:3], dtype=pl.Decimal(10, 2)))[0], [10.25, math.nan, -0.1])


@pytest.mark.parametrize("kind", [float, int, object])
def test_a_masked_cell_is_missing(kind):
    masked = np.ma.masked_array(np.array([10, 90, 20], dtype=kind), [False, True, False])
    assert present_in(block_of(masked)).tolist() == [10, 20]
    np.testing.assert_array_equal(numbers_of(table_columns({"x": masked}, ["x"])["x"]), [10, NAN, 20])
    np.testing.assert_array_equal(numbers_of(table_columns(masked[:, None], ["x"])["x"]), [10, NAN, 20])


def test_a_masked_cell_is_missing_for_every_door_in_memory():
    mask = [True] * 2 + [False] * 500
    rows = np.ma.masked_array(np.array([90.0] * 2 + [10.0] * 500), mask)
    assert interior_point(rows, lower=0, upper=99, epsilon=50, granularity=1).value == 10
    assert (
        DeclaredColumn(rows, lower=0, upper=99, weights=np.ma.masked_array(np.ones(502), mask)).ranked().total
        == 500 * 1024
    )
    labels = np.ma.masked_array([7] * 502, mask)
    assert labels_of(labels, 502)[:3].tolist() == [None, None, 7]
    assert np.isnan(doubles(rows[:, None])[0, 0])


def test_a_missing_label_of_a_dictionary_is_no_class():
    pa = pytest.importorskip("pyarrow")
    assert labels_of(pa.array(["a", None, "b"]).dictionary_encode(), 3).tolist() == ["a", None, "b"]


def test_a_file_or_a_table_is_no_column():
    with pytest.raises(ArgumentError, match=r"open_column\(file, column\)"):
        median("people.parquet", lower=0, upper=1, epsilon=1)
    pd = pytest.importorskip("pandas")
    with pytest.raises(ArgumentError, match="one of its columns"):
        median(pd.DataFrame({"x": [1.0]}), lower=0, upper=1, epsilon=1)


def test_a_locked_database_is_said_to_be(tmp_path, monkeypatch):
    path = tmp_path / "t.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE people (x REAL)")
        other.execute("BEGIN EXCLUSIVE")
        patient = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *where, **how: patient(*where, **{**how, "timeout": 0.01}))
        with pytest.raises(ArgumentError, match="locked by another process"):
            open_table(f"sqlite:///{path}", tmp_path, form=Written(table="people"))
        with (
            pytest.raises(ArgumentError, match="locked by another process"),
            open_column(f"sqlite:///{path}?timeout=0.01", "x", table="people"),
        ):
            pass


CELLS = st.sampled_from(
    [
        *(
            "1",
            "-2.5",
            " 3 ",
            "1e400",
            "x",
            "",
            "nan",
            "TRUE",
            "1_0",
            '"4"',
            '"a,b"',
            '"a\nb"',
            "#",
            "\u0661",
            "NA",
            "+1",
        ),
        *("1e-400", " ", "Infinity", "-nan", "nan(1)", "0x10", "1d5", ".5", "5.", "\t6", "\x1c7", "1e", "8\0", "-0"),
        *("1,5", ",5", "5,", "1.234,5", "-0,0"),
    ]
)
FORMS = st.sampled_from([CsvForm(), CsvForm("\t"), CsvForm(";", decimal=",")])
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])


@pytest.mark.cases(2)
@pytest.mark.parametrize("parser", ["arrow", "numpy"])
@pytest.mark.parametrize("characters", [1 << 20, 7, 1])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.lists(CELLS, min_size=1, max_size=4), ENDS), max_size=8), form=FORMS)
def test_blocks_are_the_rows(tmp_path, monkeypatch, characters, parser, rows, form):
    """No matter what Arrow or NumPy parses of a block, and wherever blocks end."""
    monkeypatch.setattr("dpselect.tables.blocks._LARGE", 0 if parser == "arrow" else math.inf)
    monkeypatch.setattr("dpselect.tables.blocks._CHARACTERS", characters)
    path = tmp_path / "t.csv"
    lines = [(["a", "b"], "\n"), *rows]
    path.write_bytes("".join(form.delimiter.join(cells) + end for cells, end in lines).encode())
    expected = [row for row in csv_rows(path, form) if row]
    blocks = list(csv_blocks(path, form, [1], [0]))
    numbers = [value for values, _ in blocks for value in values[0].tolist()]
    right = [number_in(row[1], form.decimal) if len(row) > 1 else NAN for row in expected]
    np.testing.assert_array_equal(numbers, right)
    assert [cell for _, texts in blocks for cell in texts[0]] == [row[0].strip() for row in expected]
    if any(len(row) != 2 for row in expected):
        with pytest.raises(ContentError, match="length"):
            list(csv_blocks(path, form, [1], [0], width=2))


@pytest.mark.parametrize("parser", ["arrow", "numpy"])
def test_plain_numbers_are_parsed_by_a_library(tmp_path, monkeypatch, parser):
    """To the same bits: the slow reading is never asked."""
    if parser == "arrow":
        pytest.importorskip("pyarrow")
    other = {"arrow": "_by_numpy", "numpy": "_by_arrow"}[parser]
    monkeypatch.setattr(f"dpselect.tables.blocks.{other}", lambda *_: None)
    monkeypatch.setattr("dpselect.tables.blocks._LARGE", 0)
    random = np.random.default_rng(1).integers(0, 2**63, 2000).view(np.float64)
    values = np.concatenate(
        [np.ldexp(np.arange(1.0, 200.0), np.arange(-100, 99)), [0.1, 1e308, 5e-324, -0.0], random[random == random]]
    )
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"a,{value!r}\n" for value in values.tolist()))
    monkeypatch.setattr("dpselect.tables.blocks._recorded", None)
    (((found,), _),) = csv_blocks(path, CsvForm(), [1])
    assert found.tobytes() == values.tobytes()


def test_whole_numbers_among_objects_are_read_however_they_are_stored():
    """As pandas leaves them beside missing cells; 2.0 was lost without a word."""
    cells = np.array(
        [1, 2.0, Decimal("3"), Fraction(8, 2), None, math.nan, math.inf, Decimal("1e999999")], dtype=object
    )
    assert present_in(block_of(cells)).tolist() == [1, 2, 3, 4]


def test_numbers_with_decimal_places_among_objects_are_not_lost_in_silence():
    with pytest.raises(TypeError, match=r"values\.astype"):
        block_of(np.array([1.5, 2.5, 3, 4, None], dtype=object))
    # a row that a column of integers has no place for is missing, and refuses nothing
    assert present_in(block_of(np.array([*range(5), 0.5], dtype=object))).tolist() == [0, 1, 2, 3, 4]


def test_an_archive_that_ends_early_is_said_to_be_truncated(tmp_path):
    whole = gzip.compress(b"id,x\n" + b"".join(b"a,%d\n" % k for k in range(100_000)), compresslevel=1)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    for door in (of_quantile, of_study):
        with pytest.raises(ContentError, match="truncated"):
            door(path)


def test_a_type_that_has_no_array_is_named():
    pl = pytest.importorskip("polars")
    with pytest.raises(ArgumentError, match="'x': the type Int128 is not read"):
        table_columns(pl.DataFrame({"x": pl.Series([1], dtype=pl.Int128)}), ["x"])


@pytest.mark.parametrize("cells", [('"1,994"', "697"), ('"12,5"', "31"), ("1'994", "2"), ('"1.994,5"', "2")])
def test_separators_that_are_not_declared_are_not_lost_in_silence(cells, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"a,{cell}\n" for cell in cells * 50))
    with (
        pytest.raises(ContentError, match=r"declare form\.decimal and form\.thousands"),
        open_column(str(path), "x", look=True),
    ):
        pass
    column = Column(bounds=(0, 1), missing="indicator")
    data = Data(source=path.name, label="id", classes=("a", "b"), columns={"x": column})
    with pytest.raises(ContentError, match=r"'x' holds numbers with other .*data\.decimal and data\.thousands"):
        load(data, open_table(path.name, tmp_path))
    path.write_text("id,x\n" + "".join(f"a,{cell}\n" for cell in (*["697"] * 60, cells[0])))
    with open_column(str(path), "x", look=True):
        pass  # a few are missing, as a person's "unknown" is
    path.write_text(path.read_text() + "b,1\n")
    assert load(data, open_table(path.name, tmp_path)).features[:, 1].sum() == 1
