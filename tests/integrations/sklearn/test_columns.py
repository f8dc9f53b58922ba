"""Columns that a `ColumnTransformer` hands on unchanged: by place, name and type, and by no cell."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.preprocessing import Normalizer

from dpselect.integrations.sklearn.columns import chosen_places, passed_through

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CELLS = {"age": [1.0, 2.0], "city": ["a", "b"], "paid": [0.5, 1.5], "day": ["2020-01-01", "2020-01-02"]}
FRAMES = [pd.DataFrame(CELLS), pl.DataFrame(CELLS)]


@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars"])
def test_names_and_places(frame):
    assert chosen_places(["day", "age"], frame, 4) == [3, 0]
    assert chosen_places([1, 3], frame, 4) == chosen_places([1, 3], frame.to_numpy(), 4) == [1, 3]
    assert chosen_places([1, 3], frame, 3) == [1]
    assert chosen_places(["month"], frame, 4) == []


def test_a_selector_sees_types_and_no_row():
    seen = []

    def by_rows(table):
        seen.append(len(table))
        return ["age"]

    assert chosen_places(make_column_selector(dtype_include="number"), FRAMES[0], 4) == [0, 2]
    assert chosen_places(by_rows, FRAMES[0], 4) == [0]
    assert seen == [0]


@pytest.mark.parametrize(
    ("transformers", "remainder", "expected"),
    [
        ([("a", "passthrough", ["age"])], "drop", {0}),
        ([("a", "drop", ["age"])], "passthrough", {1, 2, 3}),
        ([("a", Normalizer(), ["age", "paid"]), ("b", "passthrough", ["city"])], "passthrough", {1, 3}),
        ([("a", Normalizer(), ["age"]), ("b", "passthrough", ["age"])], "drop", {0}),
        ([("a", "passthrough", ["age"])], Normalizer(), {0}),
        ([], "passthrough", {0, 1, 2, 3}),
    ],
)
@pytest.mark.parametrize("frame", FRAMES, ids=["pandas", "polars"])
def test_what_is_handed_on(frame, transformers, remainder, expected):
    assert passed_through(ColumnTransformer(transformers, remainder=remainder), frame, 4) == expected


def test_an_array_has_places_alone():
    step = ColumnTransformer([("a", Normalizer(), [0])], remainder="passthrough")
    assert passed_through(step, np.zeros((2, 3)), 3) == {1, 2}
