"""Each row of a table is read by itself, for any content of the others. No reader shows a cell or takes much room."""

import gzip
import random
import sqlite3
import tracemalloc
import unicodedata
import warnings
from contextlib import closing
from datetime import time
from time import process_time

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError, StudyError
from dpselect.holdout.files import read_columns, submitted
from dpselect.holdout.gate.files import read_outcomes
from dpselect.ordered import open_column
from dpselect.study import parse_study
from dpselect.study.row_parts import key_digests
from dpselect.tables import Declared, Written
from dpselect.tables.blocks import csv_blocks
from dpselect.tables.categories import category, composed, positions
from dpselect.tables.column_cells import text_chunks
from dpselect.tables.csv_text import CsvForm, opened, records
from dpselect.tables.number_blocks import block_of
from dpselect.tables.numbers import number_in
from dpselect.tables.table import open_table
from tests.tables.rows_alone import FORMATS, ODD, another_way

MIB = 1 << 20
NUMBERS = (
    *("1.7976931348623157e308", "1.7976931348623159e308", "2.2250738585072011e-308", "4.9e-324", "0e999999", "1.e5"),
    *("nan(1)", "+nan", "-INFINITY", "infinit", "1d5", "1f", "\u0663", "1\u00a0000", "\u2009 2", "\x0b4", "6\x1f"),
    *("7\x85", "8\ufeff", "1\0", "1e", "--1", "12.34.56", "1.000.000", "1'000", "0,5", "nULL", "#1", "$5", "\\5", " "),
)


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 2), pytest.param(1000, 100, marks=pytest.mark.full), pytest.param(9000, 2500, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("kind", FORMATS)
def test_one_row_changes_no_other(tmp_path, kind, first, count):
    needs = {
        "duckdb:": "duckdb",
        ".xlsx": "openpyxl",
        ".parquet": "pyarrow",
        ".feather": "pyarrow",
        "folder": "pyarrow",
    }
    if kind in needs:
        pytest.importorskip(needs[kind])
    if kind in ("duckdb:", ".xlsx"):
        count = max(1, count // 8)
    found = {seed: said for seed in range(first, first + count) if (said := another_way(tmp_path, kind, seed))}
    assert not found


def _a_file(path, draw):
    """A CSV file of numbers and of what is none, and its form."""
    delimiter, decimal = draw.choice([(",", "."), (";", ","), ("\t", "."), ("|", "."), ("\u00a7", "."), ("x", ".")])
    form = CsvForm(delimiter, "utf-8", decimal, draw.choice(["", "", "'", " "]))
    width, few = draw.choice([1, 2, 3]), draw.sample([*ODD, *NUMBERS], draw.choice([1, 4, 30]))
    good, ends = draw.choice([0, 0.5, 0.9, 1]), draw.choice([("\n",), ("\r\n",), ("\r",), ("\n", "\r\n", "\r", "\n\n")])

    def cell():
        text = repr(draw.uniform(-1e3, 1e3)).replace(".", decimal) if draw.random() < good else draw.choice(few)
        return (
            f'"{text}"'.replace('o"t', "ot") if draw.random() < 0.002 else text.replace(delimiter, "").replace('"', "")
        )

    rows = draw.choice([1, 10, 150])
    lines = (delimiter.join(cell() for _ in range(width + (draw.random() < 0.003))) for _ in range(rows))
    path.write_bytes(f"{delimiter.join('abc'[:width])}\n{''.join(line + draw.choice(ends) for line in lines)}".encode())
    return form, width


@pytest.mark.parametrize(
    "files", [25, pytest.param(400, marks=pytest.mark.full), pytest.param(9000, marks=pytest.mark.slow)]
)
def test_a_block_is_read_as_its_records_are_bit_by_bit(tmp_path, monkeypatch, files):
    for seed in range(files):
        draw = random.Random(seed)
        form, width = _a_file(tmp_path / "t.csv", draw)
        with opened(tmp_path / "t.csv", form, "replace") as file:
            rows = [row + [""] * width for row in records(file, form) if row][1:]
        numbers = [place for place in range(width) if draw.random() < 0.7]
        texts = [place for place in range(width) if place not in numbers]
        monkeypatch.setattr("dpselect.tables.blocks._LARGE", draw.choice([0, 0, 1 << 18]))
        monkeypatch.setattr("dpselect.tables.blocks._CHARACTERS", draw.choice([1, 50, 300, 1 << 20]))
        found = list(csv_blocks(tmp_path / "t.csv", form, numbers, texts))
        for number, place in enumerate(numbers):
            wanted = [number_in(row[place], form.decimal, form.thousands) for row in rows]
            assert (
                np.concatenate([np.empty(0), *(block[0][number] for block in found)]).tobytes()
                == np.array(wanted).tobytes()
            ), seed
        for number, place in enumerate(texts):
            assert [cell for block in found for cell in block[1][number]] == [row[place].strip() for row in rows], seed


def test_a_mark_in_the_middle_is_a_part_of_its_cell_wherever_a_block_ends(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("dpselect.tables.blocks._LARGE", 0)
    for before in range(6):
        (tmp_path / "t.csv").write_text("x,y\n" + "7,1\n" * before + "\ufeff5,2\n", encoding="utf-8")
        monkeypatch.setattr("dpselect.tables.blocks._CHARACTERS", 5)
        assert np.isnan(open_table("t.csv", tmp_path).read(["x"], ["x"])["x"][-1])


def test_digits_of_all_scripts_count_with_a_decimal_comma_too():
    assert number_in("\uff11\uff12", ",") == number_in("\uff11\uff12") == 12.0
    assert number_in("\u0661.\u0662\u0663\u0664,5", ",", ".") == 1234.5


@pytest.mark.parametrize("encoding", ["utf-7", "unicode_escape", "raw_unicode_escape", "punycode", "idna"])
def test_an_encoding_in_which_a_cell_is_half_a_character_is_refused(tmp_path, encoding):
    (tmp_path / "t.csv").write_text("x\n1\n")
    with pytest.raises(ArgumentError, match=r"encoding: unknown encoding"):
        open_table("t.csv", tmp_path, form=Written(encoding=encoding))


def test_a_cell_stays_what_it_is_in_its_own_file_of_a_folder(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def read(first, second, **more):
        parquet.write_table(pa.table({"x": first}), tmp_path / "a.parquet")
        parquet.write_table(pa.table({"x": second}), tmp_path / "b.parquet")
        return open_table(str(tmp_path)).read(["x"], **more)["x"]

    whole, stamps = pa.array([5, 2**53 + 1]), pa.array([5, 6]).cast(pa.timestamp("ns"))
    for second in (pa.nulls(1), pa.array([1.5]), pa.array(["a"])):
        assert [str(cell) for cell in read(whole, second)][:2] == ["5", str(2**53 + 1)]
        assert Declared(kind="date").read(read(stamps, second))[:2].tolist() == [5e-9, 6e-9]
    assert read(whole, pa.array([1.5]), numbers=["x"]).dtype == np.float64
    read(pa.array(["1", "2"]), stamps)
    with open_column(str(tmp_path), "x", kind="number") as source:
        blocks = [values for values, _ in source.blocks()]
    assert np.isnan(np.concatenate(blocks)[-2:]).all()


def test_keys_that_are_missing_are_one_text():
    assert len({key_digests([key])[0] for key in (None, float("nan"), np.datetime64("NaT"), "")}) == 1
    assert len(set(key_digests(["nan", "", "None"]))) == 3


def test_numbers_that_are_equal_and_written_otherwise_are_no_category_of_another_cell():
    cells = np.array([complex(-0.0, 0.0), 0j])
    assert positions(cells, ("0j",)).tolist() == [-1, 0]


def test_a_row_that_lacks_cells_reads_as_empty_beside_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2\n")
    ((values, texts),) = csv_blocks(tmp_path / "t.csv", CsvForm(), [0], [1])
    assert (values[0].tolist(), texts) == ([1.0, 2.0], [["x", ""]])


def test_no_warning_tells_of_a_cell(tmp_path):
    cells = np.array(["1e400", "5"], dtype=np.longdouble)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for kind in ("number", "duration", "integer"):
            Declared(kind=kind).read(cells)
        assert block_of(cells)[0].tolist() == [np.inf, 5.0]


def test_what_a_database_says_of_a_cell_is_not_the_context_of_an_error_either(tmp_path):
    with closing(sqlite3.connect(tmp_path / "t.db")) as connection, connection:
        connection.execute("CREATE TABLE t (x)")
        connection.execute("INSERT INTO t VALUES ('secret')")
        connection.execute("CREATE VIEW v AS SELECT json_extract(x, '$.a') AS x FROM t")
    with pytest.raises(ArgumentError) as refused:
        open_table("sqlite:///t.db", tmp_path, form=Written(table="v")).read(["x"])
    assert refused.value.__context__ is refused.value.__cause__ is None


def test_a_damaged_archive_shows_no_check_sum(tmp_path):
    content = bytearray(gzip.compress(b"x\n" + b"1\n" * 1000))
    content[-8] ^= 1
    (tmp_path / "t.csv.gz").write_bytes(content)
    with pytest.raises(ContentError, match="truncated or damaged"):
        open_table("t.csv.gz", tmp_path).read(["x"])


@pytest.mark.full
def test_a_damaged_feather_file_is_refused_and_text_of_any_bytes_is_read(tmp_path):
    pa, feather = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.feather")
    rows = {
        "text": pa.array([f"cell {k}" for k in range(200)]),
        "coded": pa.array(["a", "b"] * 100).dictionary_encode(),
        "bytes": pa.array([b"\xff\xfe"] * 200).view(pa.string()),
    }
    feather.write_feather(pa.table(rows), tmp_path / "t.feather", compression="uncompressed")
    sound = (tmp_path / "t.feather").read_bytes()
    assert open_table("t.feather", tmp_path).read(["bytes"])["bytes"][0] == "\ufffd\ufffd"
    refused = 0
    for seed in range(150):
        draw, content = random.Random(seed), bytearray(sound)
        for _ in range(5):
            content[draw.randrange(len(content))] = draw.randrange(256)
        (tmp_path / "t.feather").write_bytes(content)
        try:
            table = open_table("t.feather", tmp_path)
            table.check(list(rows))
            table.read(list(rows))
        except (ArgumentError, ContentError):
            refused += 1
    assert refused > 20


def test_texts_that_are_declared_are_numbers_by_the_separators_of_the_file(tmp_path):
    facts = {
        "size": {"categories": ["38,5", "x"]},
        "age": {"bounds": [0, 9], "missing": 0, "missing_values": ["-99,5"]},
    }
    data = {"source": "t.csv", "classes": ["1,5", "b"], "decimal": ",", "delimiter": ";", "columns": facts}
    with pytest.raises(StudyError) as refused:
        parse_study({"data": data, "privacy": {"epsilon": 1.0, "nominal_rows": 9}, "output": {"folder": "out"}})
    for key in (
        "data.classes: '1,5'",
        "data.columns.size.categories: '38,5'",
        "data.columns.age.missing_values: '-99,5'",
    ):
        assert key in str(refused.value)
    (tmp_path / "t.csv").write_text("x;y\n-99,5;1\n1,5;2\n9.999;3\n")
    form = Written(delimiter=";", decimal=",", thousands=".")
    for absent, place in (("-99,5", 0), (-99.5, 0), ("9.999", 2)):
        with open_column(str(tmp_path / "t.csv"), "x", form=form, missing_values=[absent]) as source:
            cells = np.concatenate([values for values, _ in source.blocks()])
        assert np.flatnonzero(np.isnan(cells)).tolist() == [place]


def test_durations_that_a_spreadsheet_shows_as_a_clock():
    assert Declared(kind="duration").read([time(1, 30), time(0, 0, 1, 500_000)]).tolist() == [5400.0, 1.5]


def test_formats_with_an_offset_are_read_and_with_a_name_of_a_zone_refused():
    offsets = Declared(kind="date", format="%Y-%m-%d %H:%M %z").read(["2024-01-02 03:04 +0200", "2024-01-02 01:04 Z"])
    assert offsets[0] == offsets[1]
    with pytest.raises(ArgumentError, match="%Z is read otherwise on each machine"):
        Declared(kind="date", format="%Y-%m-%d %Z")


WIDE = b"ab," * (MIB // 3 - 20)
HOSTILE = {
    "wide.csv": lambda: b"id,outcome\n" + (WIDE + b"\n") * 12,
    "wide.csv.gz": lambda: gzip.compress(b"id,outcome\n" + (WIDE + b"\n") * 12, 1),
    "lists.jsonl": lambda: b"".join(b'{"id": %d, "outcome": [%s[]]}\n' % (k, b"[]," * 340_000) for k in range(8)),
    "texts.jsonl": lambda: b"".join(b'{"id": %d, "outcome": [%s1]}\n' % (k, b'"ab",' * 200_000) for k in range(16)),
}


@pytest.mark.full
@pytest.mark.parametrize("name", HOSTILE)
def test_a_submission_takes_no_more_than_eight_times_its_size(tmp_path, name):
    path, content = tmp_path / name, HOSTILE[name]()
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(ContentError):
            read_outcomes(path, "id", ["outcome"], limits=submitted(400_000))
        if ".csv" in name:
            with pytest.raises(ContentError):
                read_columns(path, ["id", "outcome"], limits=submitted(400_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * len(content) + 64 * MIB


def test_a_list_of_repeats_counts_as_so_many_rows(tmp_path):
    (tmp_path / "t.jsonl").write_text('{"id": "a", "outcome": [1, 0, 1]}\n{"id": "b", "outcome": 1}\n')
    found = read_outcomes(tmp_path / "t.jsonl", "id", ["outcome"], limits=submitted(4))
    assert found == {"a": [1, 0, 1], "b": [1]}
    with pytest.raises(ContentError, match="more than 3 rows"):
        read_outcomes(tmp_path / "t.jsonl", "id", ["outcome"], limits=submitted(3))


def test_a_megabyte_of_accents_on_one_letter_takes_no_minutes():
    begun = process_time()
    for text in ("a" + "\u0301" * 40_000 + "\u0316" * 40_000, "a" + "\u0301\u0316" * 40_000):
        category(text)
    assert process_time() - begun < 4.0


def test_a_text_is_composed_as_unicode_has_it():
    letters = "ae o\u0301\u0316\u0308\u0344\u00e9\u212b\u1100\u1161\u11a8\uac00\u0958"
    draw = random.Random(5)
    for _ in range(3000):
        text = "".join(draw.choice(letters) for _ in range(draw.randrange(12)))
        assert composed(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_categories_of_short_floats_are_what_they_are_in_every_door(kind):
    largest = {np.float16: 65504, np.float32: 123456792}[kind]
    cells = np.array([0.1, largest, np.nan, 3], dtype=kind)
    names = [category(cell) for chunk in text_chunks(cells)() for cell in chunk]
    assert names == [category(cell) for cell in cells] == [category("0.1"), category(largest), "", category(3)]
    assert positions(cells, (3, 0.1, largest)).tolist() == [1, 2, -1, 0]
