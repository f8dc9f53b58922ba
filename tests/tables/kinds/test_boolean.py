"""Booleans: the declared words, and the missing ones."""

import io
import random

import numpy as np
import pytest

from dpselect.tables import Declared


def test_truth_values_and_missing_ones_are_those_of_pandas():
    pd = pytest.importorskip("pandas")
    cells = random.Random(5).choices(["J", "N", "TRUE", "False", "", "k.A."], k=300)
    frame = pd.read_csv(
        io.StringIO("x\n" + "\n".join(f'"{cell}"' for cell in cells)),
        true_values=["J"],
        false_values=["N"],
        na_values=["k.A."],
        dtype={"x": "boolean"},
    )
    declared = Declared(kind="boolean", true_values=["J"], false_values=["N"], missing_values=["k.A."])
    np.testing.assert_array_equal(declared.read(cells), frame["x"].to_numpy(dtype=float, na_value=np.nan))
