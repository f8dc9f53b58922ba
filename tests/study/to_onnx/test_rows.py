"""Rows in operators are the rows of NumPy, to the last bit where neither has a sine or a logarithm."""

import numpy as np
import pytest

from dpselect.learners import encoding, fixed_point, rows as learner_rows, waves as learner_waves
from dpselect.study.to_onnx import rows as written
from tests.study.to_onnx.exported_cases import image

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
RANDOM = np.random.default_rng(2)
ROWS = np.vstack(
    [RANDOM.uniform(-1, 1, (300, 5)), RANDOM.normal(size=(300, 5)) * 1e-9, np.zeros((1, 5)), np.full((1, 5), 1e6)]
)


@pytest.mark.parametrize(("row_norm", "intercept"), [(1.0, 0.3), (2.5, 1.0), (2.0**-1000, 0.0), (1e-7, 0.0)])
def test_unit_rows(row_norm, intercept):
    once = learner_rows.unit_rows(ROWS, row_norm, intercept=intercept)
    for given in (ROWS, once[:, :5]):  # rows in fixed point come to the edges of its steps
        found = image(lambda graph, rows: written.unit_rows(graph, rows, row_norm, intercept=intercept), given)
        assert np.array_equal(found, learner_rows.unit_rows(given, row_norm, intercept=intercept))


def test_truncated_and_clipped():
    assert np.array_equal(image(written.truncated, ROWS), fixed_point.truncate(ROWS))
    found = image(lambda graph, rows: written.clipped(graph, rows, -0.5, np.arange(5) / 4), ROWS)
    assert np.array_equal(found, np.clip(ROWS, -0.5, np.arange(5) / 4))


def test_waves():
    facts = encoding.TableEncoding(bounds=(-1.0, 1.0), indicators=[[1, 3]])
    expected = learner_waves.cosines(facts.encoded(ROWS), 4)
    found = image(lambda graph, rows: written.waves(graph, written.encoded(graph, rows, 5, facts), 4), ROWS)
    assert np.abs(found - expected).max() <= fixed_point.STEP


def test_logarithms():
    values = np.abs(ROWS)
    assert np.allclose(image(written.log1p, values), np.log1p(values), rtol=1e-15, atol=0)
    assert np.allclose(image(written.log, values + 0.1), np.log(values + 0.1), rtol=1e-15, atol=1e-16)


def test_the_first_flag_that_is_set():
    flags = np.array([[0, 1, 1], [1, 0, 0], [0, 0, 0]], dtype=np.float64)

    def write(graph, rows):
        return graph.cast(written.first_set(graph, [graph.cast(rows, "bool")]), "float64")

    assert image(write, flags).ravel().tolist() == [1, 0, 3]
