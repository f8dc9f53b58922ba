"""How estimators are evaluated on blocks; effective rounds, means and multiplicative weights as sessions."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.adaptive.subsamples import cut_into_blocks, evaluate
from dpselect.errors import ArgumentError, ContentError
from dpselect.randomness import keyed_source
from tests.adaptive.adaptive_sessions import normal_rows


def test_evaluation_of_blocks() -> None:
    data = np.arange(23.0)
    blocks = cut_into_blocks(data, subsample_size=5, order="given", random=keyed_source(1))
    assert (blocks.count, blocks.size) == (4, 5)  # three rows are left out
    expected = [2.0, 7.0, 12.0, 17.0]
    assert evaluate(np.mean, blocks).tolist() == expected
    assert evaluate(np.mean, blocks, axis=True).tolist() == expected

    def moody(rows: np.ndarray, axis: int) -> np.ndarray:
        if np.any(rows == 7.0):
            raise ValueError
        return rows.mean(axis=axis)

    found = evaluate(moody, blocks, axis=True)
    assert np.isnan(found[1])
    assert found[[0, 2, 3]].tolist() == [2.0, 12.0, 17.0]
    # a shape may depend on the data too: it tells nothing
    assert np.isnan(evaluate(lambda rows, axis: rows, blocks, axis=True)).all()
    dropping = evaluate(lambda rows, axis: rows[rows[:, 0] != 5.0].mean(axis=axis), blocks, axis=True)
    assert np.isnan(dropping[1])
    assert dropping[[0, 2, 3]].tolist() == [2.0, 12.0, 17.0]
    shuffled = cut_into_blocks(data, subsample_size=5, order="random", random=keyed_source(1))
    assert len(np.unique(shuffled.rows)) == 20
    with pytest.raises(ContentError, match="subsample_size"):
        cut_into_blocks(data, subsample_size=24, order="given", random=keyed_source(1))
    with pytest.raises(ArgumentError, match="order"):
        cut_into_blocks(data, subsample_size=4, order="sorted", random=keyed_source(1))  # type: ignore[arg-type]


def test_parallel_evaluation_gives_the_same_values() -> None:
    blocks = cut_into_blocks(normal_rows(2000), subsample_size=20, order="given", random=keyed_source(1))
    assert evaluate(np.median, blocks, jobs=2).tolist() == evaluate(np.median, blocks).tolist()


def test_frames_tuples_and_lists() -> None:
    pandas = pytest.importorskip("pandas")
    rows = normal_rows(400)
    expected = evaluate(np.mean, cut_into_blocks(rows, subsample_size=20, order="random", random=keyed_source(2)))
    frame = pandas.DataFrame({"x": rows, "y": 1.0})
    source = keyed_source(2)
    of_frame = evaluate(
        lambda part: part["x"].mean(), cut_into_blocks(frame, subsample_size=20, order="random", random=source)
    )
    pair = cut_into_blocks((rows, rows), subsample_size=20, order="random", random=keyed_source(2))
    listed = cut_into_blocks(rows.tolist(), subsample_size=20, order="random", random=keyed_source(2))
    assert np.allclose(of_frame, expected)
    assert np.allclose(evaluate(lambda part: part[0].mean(), pair), expected)
    assert np.allclose(evaluate(lambda part, axis: part[1].mean(axis=axis), pair, axis=True), expected)
    assert np.allclose(evaluate(np.mean, listed), expected)
    with pytest.raises(ArgumentError, match="tuple"):
        cut_into_blocks((rows, rows[1:]), subsample_size=20, order="given", random=keyed_source(2))
    with pytest.raises(ArgumentError, match="axis"):
        evaluate(np.mean, cut_into_blocks(frame, subsample_size=20, order="given", random=source), axis=True)


def test_an_estimator_cannot_change_what_the_next_question_sees() -> None:
    blocks = cut_into_blocks(np.arange(20.0), subsample_size=5, order="given", random=keyed_source(1))

    def greedy(rows: np.ndarray, axis: int) -> np.ndarray:
        rows += 100.0
        return rows.mean(axis=axis)

    assert evaluate(greedy, blocks, axis=True).tolist() == [102.0, 107.0, 112.0, 117.0]
    assert evaluate(np.mean, blocks, axis=True).tolist() == [2.0, 7.0, 12.0, 17.0]
