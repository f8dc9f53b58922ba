"""Reading rows and splitting them: by public facts, one row at a time."""

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.study.data import load
from dpselect.study.schema_data import Data
from dpselect.tables.column_cells import cells_in
from dpselect.tables.table import open_table
from tests.study.data_cases import FACTS, data, rows_of, write

CSV = "age,colour,label\n30,red,yes\n150,blue,no\n-5,green,maybe\n"


def test_values_are_clipped_scaled_and_encoded(tmp_path):
    rows = rows_of(tmp_path, CSV)
    assert rows.features.tolist() == [[-0.4, 1, 0], [1.0, 0, 1], [-1.0, 0, 0]]
    assert rows.labels.tolist() == [1, 0, -1]


def test_numeric_classes_match_however_they_are_written(tmp_path):
    rows = rows_of(tmp_path, "age,colour,label\n1,red,1\n2,red,0.0\n3,red, 1.0\n", classes=(0, 1))
    assert rows.labels.tolist() == [1, 0, 1]


def test_npz_and_csv_agree(tmp_path):
    matrix = np.array([[1.0, 2.0], [3.0, 4.0]])
    np.savez(tmp_path / "d.npz", X=matrix, y=np.array([0, 1]))
    facts = Data.model_validate({"source": "d.npz", "label": "y", "classes": (0, 1), "bounds": (0, 4)})
    rows = load(facts, open_table("d.npz", tmp_path))
    assert np.array_equal(rows.features, matrix / 2 - 1)


def test_parquet(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    write(tmp_path, CSV)
    pandas.read_csv(tmp_path / "d.csv").to_parquet(tmp_path / "d.parquet")
    facts = data(source="d.parquet")
    from_parquet = load(facts, open_table("d.parquet", tmp_path))
    assert np.array_equal(from_parquet.features, rows_of(tmp_path, CSV).features)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("absent.csv", "cannot read"),
        ("d.xls", "save it as .xlsx"),
        ("sklearn:mnist", "not one of"),
        ("broken.npz", "not a readable"),
    ],
)
def test_sources_that_cannot_be_opened(tmp_path, source, said):
    write(tmp_path, "not a zip", "broken.npz")
    with pytest.raises((ArgumentError, ContentError), match=said):
        open_table(source, tmp_path)


def test_missing_columns_are_found_before_a_row_is_read(tmp_path):
    table = open_table("d.csv", write(tmp_path, CSV))
    facts = data(columns={**FACTS, "height": {"bounds": (0, 1)}})

    def refuse(names, numbers):
        pytest.fail("a row was read")

    with pytest.raises(ArgumentError, match="height"):
        load(facts, type(table)(table.columns, refuse))


SECRET = "s3cr3t"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("age,colour,label\n", "no rows"),
        (f"age,colour,label\n{SECRET},red,yes\n1,red,no\n", "'age' has a cell that is missing or no"),
        ("age,colour,label\nnan,red,yes\n1,red,no\n", "'age' has a cell that is missing or no"),
        (
            ",colour,label\n1,red,yes\n".replace(",colour", "age,colour", 1) + ",red,no\n",
            "'age' has a cell that is missing or no",
        ),
        (f"age,colour,label\n1,red,yes\n2,{SECRET},yes\n", "'label' must hold at least two of the declared classes"),
        (f"age,colour,label\n1,red,yes\n2,red,no,{SECRET}\n", "length differs"),
    ],
)
def test_content_errors_name_a_column_and_no_value_row_or_count(tmp_path, text, said):
    with pytest.raises(ContentError, match=said) as caught:
        rows_of(tmp_path, text)
    assert SECRET not in str(caught.value)
    assert not any(character.isdigit() for character in str(caught.value))


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_texts_of_arrow_are_read_whatever_their_pieces_are(kind):
    pa = pytest.importorskip("pyarrow")
    cells = [*map(str, range(200)), None, "", "a", None]
    whole = pa.array(cells, kind)
    short = whole.slice(150)
    pieces = pa.chunked_array([whole, short.dictionary_encode().dictionary_decode(), whole[:0]])
    no_text = pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers())
    small = pa.DictionaryArray.from_arrays(pa.array([127, None, 0], pa.int8()), pa.array([str(i) for i in range(128)]))
    for column, expected in (
        (whole, cells),
        (short, cells[150:]),
        (whole.dictionary_encode().slice(3), cells[3:]),
        (pieces, cells + cells[150:]),
        (pa.chunked_array([], kind), []),
        (no_text, ["\ufffd"]),
        (small, ["127", None, "0"]),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None])), ["x", None]),
    ):
        assert cells_in(column).tolist() == expected
