"""Tables of 40 rows in each container, and a pipeline that takes any of them."""

import datetime

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from dpselect.integrations.sklearn import PublicTransformer
from dpselect.learners import DPSGDClassifier
from dpselect.randomness import keyed_source

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
ROWS = 40
NUMBERS = keyed_source("rows").uniform((ROWS, 2))
CITIES = ["Ulm", "Bonn", "Kiel"]
FRAME = pd.DataFrame(
    {
        "age": NUMBERS[:, 0],
        "city": pd.Series([CITIES[k % 3] for k in range(ROWS)], dtype=object),
        "kind": pd.Categorical([CITIES[k % 2] for k in range(ROWS)]),
        "paid": NUMBERS[:, 1] > 0.5,
        "since": pd.to_datetime(["2020-01-02"] * ROWS),
        "visits": pd.array([None, 3] * (ROWS // 2), dtype="Int64"),
        "height": [float("nan"), 1.5] * (ROWS // 2),
    }
)
POLARS = pl.from_pandas(FRAME.drop(columns="kind")).with_columns(
    day=pl.Series([datetime.date(2020, 1, 2)] * ROWS), rank=pl.Series(["a", "b"] * (ROWS // 2), dtype=pl.Enum("ab"))
)
TABLES = {
    "array": NUMBERS,
    "objects": np.array([["Ulm", x] for x in NUMBERS[:, 0]], dtype=object),
    "pandas": FRAME,
    "polars": POLARS,
}
FAST = {"steps": 2, "noise_multiplier": 4.0}


def numeric(table):
    """The columns of numbers as an array, of any of the tables."""
    if isinstance(table, pl.DataFrame):
        table = table.to_pandas()
    if isinstance(table, pd.DataFrame):
        return table.select_dtypes("float").to_numpy(dtype=float)
    return table[:, -1:].astype(float)


def front(function=numeric):
    return PublicTransformer(FunctionTransformer(function))


def learner(**options):
    return make_pipeline(front(), DPSGDClassifier(**{**FAST, **options}))
