"""One file, one reading: what each door makes of text that people have, beside what was declared."""

import gzip
import json
import math
import sqlite3
import tomllib
from contextlib import closing
from dataclasses import dataclass, field
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
from dpselect.ordered import median, open_column
from dpselect.randomness import keyed_source
from dpselect.study.columns import Column
from dpselect.study.containers import table_columns
from dpselect.study.data import cells_of, load
from dpselect.study.schema import Data
from dpselect.tables import (
    CsvForm,
    Written,
    block_of,
    category,
    csv_blocks,
    csv_form,
    csv_rows,
    has_tabs,
    number_in,
    numbers_in,
    open_table,
    present_in,
    restated,
)

NAN = math.nan


@dataclass(frozen=True)
class Case:
    """A file, what is declared of it, and the numbers of its column `x`; or a part of the refusal."""

    name: str
    content: str | bytes
    numbers: tuple[float, ...] | str
    declared: Written = field(default_factory=Written)
    file: str = "t.csv"


CASES = [
    Case("a plain column", "id,x\na,1\nb,2.5\nc,-3e2\n", (1, 2.5, -300)),
    Case("a blank before a quote", 'name,x\n"Roe, J", 40\n7, "41"\n "a, b",42\n', (40, 41, 42)),
    Case("blanks around names and cells", "id , x \na, 1 \nb,2\n", (1, 2)),
    Case("Python's underscore is none of CSV's", "id,x\na,1_000\nb,2\n", (NAN, 2)),
    Case("truth values in any case", "id,x\na,TRUE\nb,False\nc,true\n", (1, 0, 1)),
    Case("a decimal comma", "id;x\na;7,35\nb;31\n", (7.35, 31), Written(";", decimal=",")),
    Case("a decimal comma in quotes", 'id,x\na,"7,35"\nb,31\n', "decimal: must differ", Written(decimal=",")),
    Case("a point where the comma is declared", "id;x\na;1.234\nb;1,5\n", (NAN, 1.5), Written(";", decimal=",")),
    Case("points of thousands", "id;x\na;1.234,5\nb;12.345.678\n", (1234.5, 12345678), Written(";", None, ",", ".")),
    Case("commas of thousands", 'id,x\na,"1,994"\nb,697\nc,"1,99"\n', (1994, 697, NAN), Written(thousands=",")),
    Case(
        "blanks of thousands",
        "id;x\na;1 994,5\nb;1\u202f994\nc;1\u00a0994\n",
        (1994.5, 1994, 1994),
        Written(";", None, ",", " "),
    ),
    Case("an apostrophe of thousands", "id,x\na,1'994.5\nb,2\n", (1994.5, 2), Written(thousands="'")),
    Case("commas of thousands that are not declared", 'id,x\na,"1,994"\nb,2\n', (NAN, 2)),
    Case("quoted line ends", 'id,x\n"a\nb",1\n"c\r\nd",2\n', (1, 2)),
    Case("doubled quotes", 'id,x\n"a ""b""",1\nc,2\n', (1, 2)),
    Case("line ends of Windows", "id,x\r\na,1\r\nb,2\r\n", (1, 2)),
    Case("lone carriage returns", "id,x\ra,1\rb,2\r", (1, 2)),
    Case("no line end at the end", "id,x\na,1\nb,2", (1, 2)),
    Case("a mark of UTF-8", "\ufeffid,x\na,1\nb,2\n", (1, 2)),
    Case("Latin-1", "id,x,stra\xdfe\na,1,\xe4\nb,2,\xf6\n".encode("latin-1"), (1, 2), Written(encoding="latin-1")),
    Case("Latin-1 that is not declared", "id,x,stra\xdfe\na,1,b\n".encode("latin-1"), "UTF-8.*reads as latin-1"),
    Case("another page of letters", "id,x,\u20ac\na,1,b\n".encode("cp1252"), "UTF-8.*reads as cp1252"),
    Case("UTF-16", "id,x\na,1\nb,2\n".encode("utf-16"), (1, 2), Written(encoding="utf-16")),
    Case("UTF-16 that is not declared", "id,x\na,1\n".encode("utf-16"), "UTF-8.*reads as utf-16"),
    Case("UTF-16 without a mark", "id,x\na,1\n".encode("utf-16-le"), "UTF-8.*reads as utf-16-le"),
    Case("UTF-32", "id,x\na,1\n".encode("utf-32"), "UTF-8.*reads as utf-32"),
    Case("blank lines before the header", "\n\nid,x\na,1\nb,2\n", (1, 2)),
    Case("blank lines among the rows", "id,x\n\na,1\n\nb,2\n\n", (1, 2)),
    Case("a comment before the header", "# made by hand\nid,x\na,1\nb,2\n", "skip_rows"),
    Case("a comment that is skipped", "# made by hand, in 2024\nid,x\na,1\nb,2\n", (1, 2), Written(skip_rows=1)),
    Case("the line that spreadsheets write", "sep=;\nid;x\na;1\n", "skip_rows"),
    Case("that line skipped", "sep=;\nid;x\na;1\nb;2\n", (1, 2), Written(";", skip_rows=1)),
    Case("semicolons that are not declared", "id;x\na;1\n", "delimiter may be ';'"),
    Case("tabs", "id\tx\na\t1\nb\t2\n", (1, 2), file="t.tsv"),
    Case("tabs in a file of another name", "id\tx\na\t1\nb\t2\n", (1, 2), Written("\t"), file="t.txt"),
    Case("gzip", gzip.compress(b"id,x\na,1\nb,2\n"), (1, 2), file="t.csv.gz"),
    Case("gzip of tabs", gzip.compress(b"id\tx\na\t1\nb\t2\n"), (1, 2), file="t.tsv.gz"),
    Case("an ending in capitals", "id,x\na,1\nb,2\n", (1, 2), file="T.CSV"),
    Case("two columns of one name", "id,x,x\na,1,2\n", "more than one|must have one|2 columns"),
    Case("no such column", "id,y\na,1\n", "no such column|must have one column|there is no 'x'"),
    Case("an empty file", "", "empty|must have one column|there is no 'x'"),
    Case("Inf and NaN", "id,x\na,inf\nb,NaN\nc,-Infinity\n", (math.inf, NAN, -math.inf)),
    Case(
        "more digits than a double has",
        "id,x\na,0.1000000000000000055511151231257827\nb,9007199254740993\n",
        (0.1, 2.0**53),
    ),
]


def form_of(case):
    return csv_form(case.declared, tabs=has_tabs(case.file))


def of_quantile(path, case):
    with open_column(str(path), "x", form=case.declared) as source:
        return np.concatenate([values for values, _ in source.blocks()])


def of_study(path, case):
    table = open_table(path.name, path.parent, form=case.declared)
    table.check(["x"])
    return Column(bounds=(0, 1), missing=0.5).numbers("x", cells_of(table, ["x"], ["x"])["x"])


def of_holdout(path, case):
    return numbers_in(read_columns(path, ["x", "x"], form=case.declared)[1])  # the first is raw, as ids are


DOORS = [of_quantile, of_study, of_holdout]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("door", DOORS)
def test_every_door_reads_the_same(door, case, tmp_path):
    path = tmp_path / case.file
    path.write_bytes(case.content if isinstance(case.content, bytes) else case.content.encode())
    if isinstance(case.numbers, str):
        with pytest.raises((ArgumentError, ContentError), match=case.numbers):
            door(path, case)
    else:
        np.testing.assert_array_equal(door(path, case), case.numbers)


@pytest.mark.parametrize("rows", [20, 200_000])
def test_rows_of_another_length_make_no_quantile_fail(rows, tmp_path):
    """What a row holds must not be told by an error after the price is paid; a study refuses before it."""
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "a,1\n" * rows + "b\nc,3,4\n")
    case = Case("uneven", "", ())
    np.testing.assert_array_equal(of_quantile(path, case), [1] * rows + [NAN, 3])
    with open_column(str(path), "x", look=True) as source:
        assert median(source, lower=0, upper=5, epsilon=10, granularity=1, random=keyed_source(1)).value == 1
    for door in (of_study, of_holdout):
        with pytest.raises(ContentError, match="length differs"):
            door(path, case)


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
    assert table_columns({"x": masked}, ["x"])["x"].tolist() == [10, None, 20]
    assert table_columns(masked[:, None], ["x"])["x"].tolist() == [10, None, 20]


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
    """Whatever Arrow or NumPy parses of a block, and wherever blocks end."""
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
    # a row that a column of whole numbers has no place for is missing, and refuses nothing
    assert present_in(block_of(np.array([*range(5), 0.5], dtype=object))).tolist() == [0, 1, 2, 3, 4]


def test_an_archive_that_ends_early_is_said_to_be_truncated(tmp_path):
    whole = gzip.compress(b"id,x\n" + b"".join(b"a,%d\n" % k for k in range(100_000)), compresslevel=1)
    path = tmp_path / "t.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    case = Case("truncated", b"", (), file=path.name)
    for door in (of_quantile, of_study):
        with pytest.raises(ContentError, match="truncated"):
            door(path, case)


def test_a_type_that_has_no_array_is_named():
    pl = pytest.importorskip("polars")
    with pytest.raises(ArgumentError, match="'x' is of the type Int128"):
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
    with pytest.raises(ContentError, match=r"'x' holds numbers with other separators than data\.decimal"):
        load(data, open_table(path.name, tmp_path))
    path.write_text("id,x\n" + "".join(f"a,{cell}\n" for cell in (*["697"] * 60, cells[0])))
    with open_column(str(path), "x", look=True):
        pass  # a few are missing, as a person's "unknown" is
    path.write_text(path.read_text() + "b,1\n")
    assert load(data, open_table(path.name, tmp_path)).features[:, 1].sum() == 1
