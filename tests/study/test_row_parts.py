"""Rows are split by a keyed function of each row, so that no row moves another."""

from collections import Counter

import numpy as np
import pytest

from dpselect.privacy import Adjacency
from dpselect.study.data import Rows
from dpselect.study.row_parts import content_digests, validation_mask
from dpselect.tables.row_digests import row_digest
from tests.study.data_cases import FACTS, rows_of


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
