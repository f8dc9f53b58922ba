"""What `predict` takes: columns by name from anything that has names, an array in order, and nothing else."""

from collections import UserDict
from decimal import Decimal

import numpy as np
import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.study.columns.column import Column
from dpselect.study.containers import table_columns
from dpselect.study.data import encode_columns
from dpselect.tables.categories import category
from tests.study.model_cases import COLUMNS, loaded, written

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
NAMES = list(COLUMNS)
CELLS = {"mango": ["m", "x", "?"], "apple": [0.25, 2.0, 1.0], "zebra": [1.0, 0.0, 0.5]}


@pytest.fixture
def model(tmp_path):
    return loaded(tmp_path, written())


EXPECTED = ["yes", "no", "yes"]


@pytest.mark.parametrize(
    "make",
    [
        dict,
        UserDict,
        pandas.DataFrame,
        polars.DataFrame,
        pyarrow.table,
        pyarrow.RecordBatch.from_pydict,
        lambda cells: {name: tuple(column) for name, column in cells.items()},
        lambda cells: {name: pandas.Series(column, index=[7, 7, 9]) for name, column in cells.items()},
        lambda cells: {name: polars.Series(column) for name, column in cells.items()},
        lambda cells: {name: pyarrow.array(column) for name, column in cells.items()},
        lambda cells: pandas.DataFrame(cells).convert_dtypes(dtype_backend="pyarrow"),
        lambda cells: pandas.DataFrame(cells).astype({"mango": "category"}),
        lambda cells: polars.DataFrame(cells).with_columns(polars.col("mango").cast(polars.Categorical)),
        lambda cells: pyarrow.table({**cells, "mango": pyarrow.array(cells["mango"]).dictionary_encode()}),
        lambda cells: pandas.DataFrame({**cells, 3: 1, ("a", "b"): 2, "label": "yes"}),
        lambda cells: pandas.DataFrame(cells)[["zebra", "mango", "apple"]].to_records(index=False).view(np.recarray),
        lambda cells: [[cells[name][i] for name in NAMES] for i in range(3)],
        lambda cells: np.array([cells[name] for name in NAMES], dtype=object).T,
    ],
)
def test_the_same_cells_in_any_container(model, make):
    X = make(CELLS)
    if isinstance(X, np.recarray):
        with pytest.raises(ArgumentError, match="rows and columns"):
            model.predict(X)
        return
    assert model.predict(X).tolist() == EXPECTED
    assert np.array_equal(model.predict_proba(X), model.predict_proba(CELLS))


def test_a_relation_of_duckdb(model):
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_arrow(pyarrow.table(CELLS))
    assert model.predict(relation).tolist() == EXPECTED


class OnlyAStream:
    def __arrow_c_stream__(self, requested_schema=None):
        return pyarrow.table(CELLS).__arrow_c_stream__(requested_schema)


def test_anything_that_streams_arrow(model):
    assert model.predict(OnlyAStream()).tolist() == EXPECTED


@pytest.mark.parametrize(
    ("X", "said"),
    [
        (pandas.DataFrame(CELLS).drop(columns="apple"), "lacks column 'apple'"),
        (pandas.DataFrame(CELLS).rename(columns=str.upper), "lacks columns 'zebra', 'apple', 'mango'"),
        (pandas.DataFrame(CELLS).rename(columns={"apple": "apple "}), "lacks column 'apple'"),
        (pandas.DataFrame(np.zeros((2, 3))), "lacks columns"),
        (polars.DataFrame(CELLS).drop("zebra"), "lacks column 'zebra'"),
        (pyarrow.table({}), "lacks columns"),
        ({}, "lacks columns"),
        (
            pandas.DataFrame([[1, 0.5, 0.5, "m"]], columns=["zebra", "apple", "apple", "mango"]),
            "more than one column 'ap",
        ),
        (
            pyarrow.table([[1.0], [0.5], [0.5], ["m"]], names=["zebra", "zebra", "apple", "mango"]),
            "more than one column",
        ),
        ({**CELLS, "apple": [1.0]}, "different lengths"),
        ({**CELLS, "apple": 1.0}, "'apple' must hold a sequence"),
        ({**CELLS, "mango": "abc"}, "'mango' must hold a sequence"),
        ({**CELLS, "apple": np.array(1.0)}, "'apple' must"),
        ({**CELLS, "apple": iter([1.0, 2.0, 3.0])}, "'apple' must hold a sequence"),
        ({**CELLS, "apple": np.zeros((3, 2))}, "'apple' must be one-dimensional"),
        (np.zeros((2, 4)), "4 columns where the model has 3"),
        (np.zeros((2, 2)), "2 columns where the model has 3"),
        (np.zeros(3), "rows and columns"),
        (np.zeros((2, 3, 1)), "rows and columns"),
        (np.array(1.0), "rows and columns"),
        ([1.0, 0.5, "m"], "rows and columns"),
        ([], "rows and columns"),
        ([[1.0, 0.5, "m"], [1.0, 0.5]], "rows and columns"),
        ([{"zebra": 1.0, "apple": 0.5, "mango": "m"}], "rows and columns"),
        (pandas.Series([1.0, 0.5, 0.0], index=NAMES), "rows and columns"),
        (polars.DataFrame(CELLS).lazy(), "collect"),
        ("zebra", "must be a data frame"),
        (None, "must be a data frame"),
        (3, "must be a data frame"),
        ((row for row in [[1.0, 0.5, "m"]]), "must be a data frame"),
        (pandas.DataFrame, "class DataFrame"),
    ],
)
def test_anything_else_is_refused_by_name(model, X, said):
    for ask in (model.predict, model.predict_proba):
        with pytest.raises(ArgumentError, match=said):
            ask(X)


def test_a_sparse_matrix_is_refused(model):
    from scipy.sparse import csr_array

    with pytest.raises(ArgumentError, match="sparse"):
        model.predict(csr_array(np.zeros((2, 3))))


@pytest.mark.parametrize(
    "X",
    [
        np.empty((0, 3)),
        pandas.DataFrame({name: [] for name in NAMES}),
        polars.DataFrame({name: [] for name in NAMES}),
        pyarrow.table({name: [] for name in NAMES}),
        {name: [] for name in NAMES},
    ],
)
def test_no_row_is_a_table_too(model, X):
    assert model.predict(X).shape == (0,)
    assert model.predict_proba(X).shape == (0, 2)


@pytest.mark.parametrize("kind", ["int8", "uint64", "float16", "float32", "longdouble", "bool", "object", "str"])
def test_numbers_of_every_type(model, kind):
    table = {"zebra": np.array([1, 0, 1]), "apple": np.array([0, 1, 1]), "mango": ["a", "a", "a"]}
    expected = model.predict_proba(table)
    assert np.array_equal(
        model.predict_proba({**table, **{name: table[name].astype(kind) for name in ("zebra", "apple")}}), expected
    ) or kind in ("bool", "str")
    decimals = [Decimal(1), Decimal("0.0"), True]
    assert np.array_equal(model.predict_proba({**table, "zebra": decimals}), expected)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([1.0, None, 1.0], "'apple' has a cell that is missing or no number"),
        ([1.0, float("nan"), 1.0], "'apple' has a cell that is missing or no number"),
        (pandas.array([1, None, 2], dtype="Int64"), "'apple' has a cell that is missing or no number"),
        ([1.0, "x", 1.0], "'apple' has a cell that is missing or no number"),
        (np.array(["2020-01-01"] * 3, dtype="datetime64[ns]"), "'apple' holds dates"),
        (np.array([1, 2, 3], dtype="timedelta64[s]"), "'apple' holds dates"),
        (np.array([1, 2j, 3]), "'apple' holds complex"),
    ],
)
def test_cells_that_are_no_numbers_are_refused_by_column(model, cells, said):
    with pytest.raises(ContentError, match=said):
        model.predict({**CELLS, "apple": cells})


def test_a_missing_cell_of_a_dictionary_is_no_category():
    """pyarrow itself turns it into the last one."""
    column = pyarrow.chunked_array([pyarrow.array(["x", None, "y"]).dictionary_encode()])
    cells = table_columns(pyarrow.table({"c": column}), ["c"])
    encoded = encode_columns(cells, {"c": Column(categories=("x", "y"))})
    assert encoded.tolist() == [[1, 0], [0, 0], [0, 1]]
    frame = pandas.DataFrame({"c": pandas.Series(pandas.arrays.ArrowExtensionArray(column))})
    assert np.array_equal(encode_columns(table_columns(frame, ["c"]), {"c": Column(categories=("x", "y"))}), encoded)


@pytest.mark.parametrize(
    ("cells", "other"),
    [
        ([1, 0, 1], [1.0, 0.0, 1.0]),
        ([1, 0, 1], ["1", "0", " 1.0 "]),
        ([1, 0, 1], [True, False, np.True_]),
        ([1, 0, 1], ["true", "False", "TRUE"]),
        ([1, 0, 1], np.array([1, 0, 1], dtype=np.float32)),
        ([1, 0, 1], [Decimal("1.00"), Decimal("-0"), np.int8(1)]),
        ([1, 0, 1], np.array([b"1", b"0", b"1"])),
        (["", "a", ""], [None, "a", float("nan")]),
        (["", "a", ""], [pandas.NA, np.str_("a"), np.datetime64("NaT")]),
        (["0.1", "1e3", "7"], [np.float32(0.1), 1000, "007"]),
    ],
)
def test_a_category_is_what_a_cell_says_not_how_it_is_stored(cells, other):
    assert list(map(category, cells)) == list(map(category, other))


@pytest.mark.parametrize(
    ("one", "other"),
    [(2**53, 2**53 + 1), ("1_0", "10"), ("nan", None), ("inf", "1e999"), ("a", "A"), ("1", "l"), ("yes", True)],
)
def test_different_categories_stay_different(one, other):
    assert category(one) != category(other)


def test_what_no_number_can_hold_is_a_text():
    assert category("1e99999999999999999999") == "1e99999999999999999999"
    assert category(10**5000) == Decimal(10**5000)
