"""Numbers, and the words for missing ones, as pandas reads them."""

import io
import random

import numpy as np
import pytest

from dpselect.tables import Declared


def test_missing_numbers_are_those_of_pandas():
    pd = pytest.importorskip("pandas")
    cells = random.Random(5).choices(["1", "-99", "-99.0", "NA", ".", "2.5", "-999"], k=300)
    frame = pd.read_csv(io.StringIO("x\n" + "\n".join(cells)), na_values=["-99", "."])
    declared = Declared(missing_values=[-99, "."])
    np.testing.assert_array_equal(declared.read(cells), frame["x"].to_numpy(dtype=float))
    np.testing.assert_array_equal(declared.read(np.array([-99.0, 1.0])), [np.nan, 1.0])
