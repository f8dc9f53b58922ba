"""Each row of a table is read by itself, for any content of the others. No reader shows a cell or takes much room."""

import gzip
import tracemalloc

import numpy as np
import pytest

from dpselect.errors import ContentError, StudyError
from dpselect.holdout.files import read_columns, submitted
from dpselect.holdout.gate.files import read_outcomes
from dpselect.ordered import open_column
from dpselect.study import parse_study
from dpselect.study.row_parts import key_digests
from dpselect.tables import Declared, Written
from dpselect.tables.table import open_table
from tests.tables.rows_alone import FORMATS, another_way

MIB = 1 << 20


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
