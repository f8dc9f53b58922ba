"""Scores and queries that come in parts: memory maps, Arrow columns, Parquet files, streams read again."""

import tracemalloc
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BudgetError
from dpselect.mechanisms import ScoreChunks, SparseVector, exponential_mechanism, permute_and_flip, report_noisy_max
from dpselect.mechanisms.scores import CHUNK, as_doubles, read_parts
from dpselect.mechanisms.threshold_test import BLOCK
from dpselect.randomness import keyed_source

SELECTORS = [exponential_mechanism, permute_and_flip, report_noisy_max]
COUNT = 3 * CHUNK + 500


def scores():
    return np.random.default_rng(3).integers(0, 9, size=COUNT).astype(float)


def select(how, numbers):
    return how(numbers, sensitivity=1.0, epsilon=0.5, random=keyed_source(4))


def answers(numbers, thresholds=300.0, **session):
    sv = SparseVector(
        **({"epsilon_threshold": 1.0, "epsilon_queries": 2.0, "max_positives": 5} | session), random=keyed_source(1)
    )
    return sv.above_many(numbers, thresholds)


def queries():
    """Far below the threshold except at four places."""
    values = np.full(COUNT, -1e4)
    values[[5, CHUNK + 1, BLOCK * 70, COUNT - 1]] = 1e4
    return values


def parquet_stream(path, column, batch):
    parquet = pytest.importorskip("pyarrow.parquet")
    return ScoreChunks(
        lambda: (part.column(0) for part in parquet.ParquetFile(path).iter_batches(batch_size=batch, columns=[column]))
    )


@pytest.fixture
def parquet_file(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "scores.parquet"
    table = pyarrow.table({"id": np.arange(COUNT), "score": scores(), "query": queries()})
    parquet.write_table(table, path, row_group_size=CHUNK)
    return path


@pytest.mark.parametrize("how", SELECTORS, ids=lambda f: f.__name__)
def test_a_parquet_file_gives_the_draw_of_its_array(how, parquet_file):
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = select(how, scores())
    assert select(how, parquet_stream(parquet_file, "score", CHUNK)) == expected
    column = parquet.read_table(parquet_file, columns=["score"]).column("score")
    assert column.num_chunks > 1
    assert select(how, column) == expected


def test_a_sparse_vector_reads_the_same_containers(parquet_file, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = [5, CHUNK + 1, BLOCK * 70, COUNT - 1]
    path = tmp_path / "queries.npy"
    np.save(path, queries())
    containers = [
        queries(),
        queries().astype(np.int16),
        queries().tolist(),
        np.load(path, mmap_mode="r"),
        parquet.read_table(parquet_file, columns=["query"]).column("query"),
        parquet_stream(parquet_file, "query", 1000),
        ScoreChunks(lambda: np.split(queries(), [7, 7, 20_000])),
    ]
    for numbers in containers:
        for thresholds in (300.0, np.full(COUNT, 300.0)):
            found = answers(numbers, thresholds)
            assert len(found) == COUNT
            assert np.flatnonzero(found).tolist() == expected


def test_thresholds_of_a_stream_belong_to_its_places():
    """Each query is compared with the threshold at its own place, across parts."""
    values, thresholds = np.zeros(4000), np.full(4000, 1e4)
    thresholds[[1999, 2000, 3999]] = -1e4
    stream = ScoreChunks(lambda: np.split(values, [1999, 2001]))
    assert np.flatnonzero(answers(stream, thresholds)).tolist() == [1999, 2000, 3999]


def test_a_stream_halts_where_its_array_does():
    whole, parts = queries(), np.split(queries(), [6, 900])
    for max_positives in (1, 2):
        ours = answers(ScoreChunks(lambda: parts), max_positives=max_positives)
        theirs = answers(whole, max_positives=max_positives)
        np.testing.assert_array_equal(ours, theirs)
        assert ours[-1]
        assert ours.sum() == max_positives


def test_streams_keep_the_law():
    """Queries at the threshold, cut in the middle of a block: half of them positive, six standard errors."""
    stream = ScoreChunks(lambda: np.split(np.zeros(4000), [100, 613, 2000]))
    sv = SparseVector(epsilon_threshold=1e6, epsilon_queries=1e6, max_positives=4000, random=keyed_source("law"))
    assert abs(sv.above_many(stream, 0.0).mean() - 0.5) < 6 * 0.5 / 4000**0.5


def test_a_stream_that_changes_is_noticed():
    for lengths in ([10, 9], [10, 11]):
        passes = iter(lengths)
        stream = ScoreChunks(lambda passes=passes: [np.full(next(passes), -1e4)])
        with pytest.raises(RuntimeError, match="changed"):
            answers(stream)


def test_wrong_streams():
    with pytest.raises(ArgumentError, match="values"):
        answers(ScoreChunks(lambda: [np.zeros((2, 2))]))
    with pytest.raises(TypeError, match="values"):
        answers(np.array(["a"]))
    with pytest.raises(ArgumentError, match="thresholds"):
        answers(ScoreChunks(lambda: [np.zeros(3)]), np.zeros(4))
    with pytest.raises(BudgetError):
        answers(ScoreChunks(lambda: [np.zeros(3), np.zeros(3)]), max_queries=5)
    assert answers(ScoreChunks(list)).tolist() == []


@pytest.mark.parametrize("how", SELECTORS, ids=lambda f: f.__name__)
def test_extra_memory_does_not_grow_with_a_memory_map(how, tmp_path):
    """Two million scores, 16 MB on disk: less than 6 MB at any time beside them."""
    path = tmp_path / "long.npy"
    np.save(path, np.random.default_rng(1).random(2_000_000))
    numbers = np.load(path, mmap_mode="r")
    select(how, numbers[:CHUNK])
    tracemalloc.start()
    select(how, numbers)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6


ODD_ENTRIES = [2**64, -(2**64), 10**400, None, float("nan"), float("inf"), -0.0, 5e-324, Fraction(1, 3), True, "text"]
ODD_ENTRIES += [Decimal("sNaN"), Decimal("1e999999"), np.float32(2), np.int8(2), object()]


@pytest.mark.parametrize("odd", ODD_ENTRIES, ids=lambda odd: type(odd).__name__)
def test_one_entry_of_a_list_never_raises(odd):
    for numbers in ([0.0, 1, odd], [odd], np.array([0, 1, odd], dtype=object)):
        if odd == "text" and len(numbers) == 1:
            continue  # nothing but texts
        for how in SELECTORS:
            assert 0 <= select(how, numbers) < len(numbers)
        assert len(answers(numbers, thresholds=1e300)) == len(numbers)


def test_a_list_of_texts_is_refused():
    for how in SELECTORS:
        with pytest.raises(TypeError, match="scores must be numbers"):
            select(how, ["private", "texts"])


def test_a_missing_cell_does_not_change_what_a_chunk_means():
    """An integer beyond 2**53 is cut off there, anything else its list or chunk holds."""
    pyarrow = pytest.importorskip("pyarrow")
    large = 2**60
    whole = [np.array([large, 0]), [large, 0], [large, None], [large, 0.5], [large, 2**70], [large, -1, 2**63]]
    whole += [pyarrow.array([large, 0]), pyarrow.array([large, None]), np.array([large, None], dtype=object)]
    for part in whole:
        (found,) = read_parts(ScoreChunks(lambda part=part: iter([part])), "scores")()
        assert as_doubles(found)[0] == 2.0**53
    for part in [
        np.array([True, False]),
        pyarrow.array([True, None]),
        pyarrow.array([None, None]),
        np.array([1, None]),
    ]:
        mixed = ScoreChunks(lambda part=part: iter([np.zeros(2), part, np.array([900])]))
        assert [select(how, mixed) for how in SELECTORS] == [4, 4, 4]


def test_one_query_and_a_batch_of_queries_are_cut_off_alike():
    for value in (2**64, 10**400, 2**53 + 1, -(10**400)):
        sure = value > 0
        assert answers([value], thresholds=2.0**53 - 1e6).tolist() == [sure]
        assert answers([value], thresholds=2.0**53 + 1e6).tolist() == [False]
        for bar, expected in ((2.0**53 - 1e6, sure), (2.0**53 + 1e6, False)):
            sv = SparseVector(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=5, random=keyed_source(1))
            assert sv.above(value, bar) is expected
