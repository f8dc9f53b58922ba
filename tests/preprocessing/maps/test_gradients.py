"""Images as the directions of their edges."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.preprocessing import (
    OrientedGradients,
)


def test_an_edge_is_found_where_it_is_and_in_its_direction():
    image = np.zeros((6, 8))
    image[:, 5:] = 3.0
    squares = OrientedGradients(image_shape=(6, 8), cell=2, orientations=4)
    across = squares.fit_transform([image.ravel()]).reshape(5, 7, 4)
    assert set(np.argwhere(across > 0)[:, 1]) == {3, 4, 5}, "the columns of squares that touch pixels 4 or 5"
    assert set(np.argwhere(across > 0)[:, 2]) == {0}, "brighter to the right"
    turned = squares.fit_transform([image[:, ::-1].ravel()]).reshape(5, 7, 4)
    assert set(np.argwhere(turned > 0)[:, 2]) == {2}, "brighter to the left"
    assert squares.transform([(image * 1e200).ravel()]) == pytest.approx(across.ravel()[None, :], abs=1e-3)
