"""Maps in operators are the maps of NumPy, and one without operators is refused by name."""

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.learners.fixed_point import STEP
from dpselect.preprocessing import MAPS
from dpselect.study.to_onnx.maps import map_writer
from tests.study.to_onnx.exported_cases import image

RANDOM = np.random.default_rng(4)
ROWS = np.column_stack([RANDOM.uniform(-3, 12, (500, 3)), RANDOM.random((500, 2)) < 0.5]).astype(float)
ROWS[::7, 0], ROWS[::5, 1], ROWS[3] = 10.0, 5.0, 0.0
WAVES = ("cos4", "joint", "log")


@pytest.mark.parametrize("name", [name for name in MAPS if name != "oriented-gradients"])
def test_each_map(name):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    of_tables = {} if name == "standardized" else {"bounds": (0.0, 10.0), "indicators": [[3, 4]]}
    for made in (MAPS[name](**of_tables), MAPS[name]()):
        expected = made.fit(ROWS).transform(ROWS)
        found = image(lambda graph, rows, made=made: map_writer(made)(graph, rows, 5), ROWS)
        assert np.abs(found - expected).max() <= (STEP if name in WAVES else 0.0)
        assert np.mean(found != expected) < 1e-3


def test_edges_of_images_are_refused():
    with pytest.raises(ArgumentError, match=r"the map EdgeDirections has no ONNX operators.*centered"):
        map_writer(MAPS["oriented-gradients"]())
