"""Reading rows and splitting them: by public facts, one row at a time."""

from collections import Counter

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.privacy import Adjacency
from dpselect.study.data import Rows, load
from dpselect.study.row_parts import content_digests, row_digest, validation_mask
from dpselect.study.schema import Data
from dpselect.tables.column_cells import cells_in
from dpselect.tables.table import open_table

CSV = "age,colour,label\n30,red,yes\n150,blue,no\n-5,green,maybe\n"
FACTS = {"age": {"bounds": (0, 100)}, "colour": {"categories": ("red", "blue")}}


def data(**changes):
    return Data.model_validate(
        {"source": "d.csv", "label": "label", "classes": ("no", "yes"), "columns": FACTS, **changes}
    )


def write(tmp_path, text, name="d.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path


def rows_of(tmp_path, text, **changes):
    facts = data(**changes)
    return load(facts, open_table(facts.source, write(tmp_path, text)))


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


def some_rows(count, seed=0):
    features = np.random.default_rng(seed).normal(size=(count, 2))
    return Rows(features, np.zeros(count, dtype=np.int64), [f.tobytes() for f in features])


def without(rows, index):
    keep = np.arange(len(rows.labels)) != index
    return Rows(rows.features[keep], rows.labels[keep], [d for d, k in zip(rows.digests, keep, strict=True) if k])


def test_removing_a_row_moves_no_other_row_under_add_or_remove_one():
    rows = some_rows(200)
    mask = validation_mask(rows.digests, fraction=0.3, adjacency=Adjacency.ADD_OR_REMOVE_ONE, salt="s")
    for index in (0, 57, 199):
        after = validation_mask(
            without(rows, index).digests, fraction=0.3, adjacency=Adjacency.ADD_OR_REMOVE_ONE, salt="s"
        )
        assert np.array_equal(after, np.delete(mask, index))


def test_a_split_by_position_would_move_rows_under_add_or_remove_one():
    """The same check catches a split that goes by position, which is right under replace_one only."""
    rows = some_rows(200)
    mask = validation_mask(rows.digests, fraction=0.3, adjacency=Adjacency.REPLACE_ONE, salt="s")
    after = validation_mask(without(rows, 0).digests, fraction=0.3, adjacency=Adjacency.REPLACE_ONE, salt="s")
    assert not np.array_equal(after, np.delete(mask, 0))


def parts_of(rows):
    """What is scored on and what is trained on, as collections of rows without an order."""
    mask = validation_mask(rows.digests, fraction=0.3, adjacency=Adjacency.ADD_OR_REMOVE_ONE, salt="s")
    contents = [(tuple(row), label) for row, label in zip(rows.features.tolist(), rows.labels.tolist(), strict=True)]
    return [Counter(c for c, m in zip(contents, mask, strict=True) if m == part) for part in (True, False)], contents


def moved_without(lines, index, read):
    """Whether leaving out a row changes anything but that the row is gone from one of the parts."""
    (before, contents), (after, _) = parts_of(read(lines)), parts_of(read(lines[:index] + lines[index + 1 :]))
    gone = [b - a for b, a in zip(before, after, strict=True)]
    came = [a - b for b, a in zip(before, after, strict=True)]
    return bool(came[0] or came[1] or gone[0] + gone[1] != Counter([contents[index]]))


COPIES = ["30,red,yes", "40,blue,no"] * 8 + ["41,red,no", "30,red,no", "41,red,no", "40,blue,no"]


def test_a_row_among_equal_ones_changes_one_part_by_that_row(tmp_path):
    """Exact, of each row of a table with copies."""

    def read(lines):
        return rows_of(tmp_path, "age,colour,label\n" + "".join(f"{line}\n" for line in lines))

    assert not any(moved_without(COPIES, index, read) for index in range(len(COPIES)))


def test_numbers_that_do_not_belong_to_equal_rows_would_move_others(tmp_path):
    """The same check catches copies that are told apart by where they stand."""

    def read(lines):
        rows = rows_of(tmp_path, "age,colour,label\n" + "".join(f"{line}\n" for line in lines))
        digests = [row_digest(digest, bytes([i])) for i, digest in enumerate(rows.digests)]
        return Rows(rows.features, rows.labels, digests)

    assert any(moved_without(COPIES, index, read) for index in range(len(COPIES)))


def test_a_table_of_few_distinct_rows_is_split_like_any(tmp_path):
    """Two contents, 1,000 of each: 6 standard errors about 0.3 (false alarm 4e-9); by content alone it is 0 or 1."""
    rows = rows_of(tmp_path, "age,colour,label\n" + "30,red,yes\n40,blue,no\n" * 1000)
    mask = validation_mask(rows.digests, fraction=0.3, adjacency=Adjacency.ADD_OR_REMOVE_ONE, salt="s")
    for label in (0, 1):
        assert abs(mask[rows.labels == label].mean() - 0.3) < 6 * (0.3 * 0.7 / 1000) ** 0.5


def test_rows_of_one_key_share_a_part(tmp_path):
    text = "age,colour,label\n" + "".join(f"{key},red,{label}\n" for key in range(50) for label in ("yes", "no"))
    facts = {"colour": FACTS["colour"]}
    mask = validation_mask(
        rows_of(tmp_path, text, columns=facts, row_key="age").digests,
        fraction=0.3,
        adjacency=Adjacency.ADD_OR_REMOVE_ONE,
        salt="s",
    )
    assert np.array_equal(mask[::2], mask[1::2])
    assert 0 < mask.sum() < 100


def test_replacing_a_row_keeps_every_row_in_its_part_under_replace_one():
    one, other = some_rows(200), some_rows(200, seed=1)
    masks = [validation_mask(r.digests, fraction=0.3, adjacency=Adjacency.REPLACE_ONE, salt="s") for r in (one, other)]
    assert np.array_equal(*masks)


def test_the_fraction_is_met():
    """20,000 coins of 0.3: mean within 6 standard errors (false alarm 2e-9; a fraction off by 0.03 shows surely)."""
    rows = some_rows(20_000)
    mask = validation_mask(rows.digests, fraction=0.3, adjacency=Adjacency.ADD_OR_REMOVE_ONE, salt="s")
    assert abs(mask.mean() - 0.3) < 6 * (0.3 * 0.7 / 20_000) ** 0.5


@pytest.mark.parametrize("rows", [0, 1, 3, 2**14, 2**14 + 1])
def test_digests_of_many_rows_are_those_of_each(rows):
    features = np.random.default_rng(rows).normal(size=(rows, 3))[:, ::-1]
    for labels in (np.arange(rows), np.arange(rows) / 7):
        found = content_digests(features, labels)
        assert len(found) == rows
        assert list(found) == [row_digest(features[i].tobytes(), labels[i].tobytes()) for i in range(rows)]
        assert rows == 0 or (found[-1], found[:1]) == (list(found)[-1], list(found)[:1])


def test_digests_of_equal_rows_are_numbered():
    features, labels = np.random.default_rng(2).integers(0, 2, (500, 2)) / 1.0, np.arange(500) % 2
    before, expected = Counter(), []
    for row, label in zip(features, labels, strict=True):
        digest = row_digest(row.tobytes(), label.tobytes())
        expected.append(row_digest(digest, before[digest].to_bytes(8, "little")) if before[digest] else digest)
        before[digest] += 1
    assert list(content_digests(features, labels)) == expected
    assert len(set(expected)) == 500


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
