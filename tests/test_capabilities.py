"""What objects of other libraries can do: each library's own objects, and those that only look alike."""

from dataclasses import dataclass

import numpy as np
import pytest

import dpselect.capabilities as able
from dpselect.capabilities import array_of, dtype_of, field_values


def of_pandas() -> dict[str, object]:
    pandas = pytest.importorskip("pandas")
    return {
        "frame": pandas.DataFrame({"a": [1.0]}),
        "column": pandas.Series([1.0]),
        "array": pandas.array([1, None], dtype="Int64"),
        "moment": pandas.Timestamp(0),
        "span": pandas.Timedelta(1),
    }


def of_arrow() -> dict[str, object]:
    arrow = pytest.importorskip("pyarrow")
    whole = arrow.array([1, None])
    return {
        "array": whole,
        "chunked": arrow.chunked_array([whole]),
        "table": arrow.table({"a": [1]}),
        "words": arrow.array(["a"]).dictionary_encode(),
    }


def of_polars() -> dict[str, object]:
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": [1]})
    return {"frame": frame, "column": frame["a"], "query": frame.lazy()}


ALL = {"pandas": of_pandas, "arrow": of_arrow, "polars": of_polars}
HAVE = {
    able.Columnar: {"pandas": "frame", "arrow": "table", "polars": "frame query"},
    able.PandasRows: {"pandas": "frame column"},
    able.PandasCells: {"pandas": "frame column array"},
    able.PandasColumn: {"pandas": "column"},
    able.PandasMoment: {"pandas": "moment"},
    able.PandasSpan: {"pandas": "span"},
    able.ArrowTable: {"arrow": "table"},
    able.ArrowValues: {"arrow": "array chunked words"},
    able.ArrowNumbers: {"arrow": "array chunked words"},
    able.ArrowDictionary: {"arrow": "words"},
    able.Chunked: {"arrow": "chunked"},
    able.ToArrow: {"polars": "column"},
    able.WithSchema: {"arrow": "table", "polars": "frame query"},
    able.Query: {"polars": "query"},
}


@pytest.mark.parametrize("library", ALL)
def test_each_ability_is_found_in_the_objects_that_have_it_and_in_no_others(library: str) -> None:
    objects = ALL[library]()
    for ability, holders in HAVE.items():
        found = {name for name, thing in objects.items() if isinstance(thing, ability)}
        assert found >= set(holders.get(library, "").split()), ability
        if ability is not able.PandasColumn and ability is not able.ArrowDictionary:
            assert found == set(holders.get(library, "").split()), ability


def test_arrays_and_plain_values() -> None:
    whole = np.arange(3)
    assert isinstance(whole, able.NumPyArray)
    assert isinstance(whole, able.Shaped)
    assert isinstance(whole, able.Typed)
    assert not isinstance([1], (able.NumPyArray, able.Shaped, able.Typed, able.Columnar))
    assert isinstance([1], able.Indexable)
    assert not isinstance({1}, able.Indexable)
    assert dtype_of(whole) == whole.dtype
    assert dtype_of("text") is None


def test_the_array_in_a_column_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([1, None], dtype="Int64")
    assert array_of(column) is column.array
    assert array_of(column.array) is column.array
    assert array_of([1]) == [1]


def test_field_values_are_those_of_a_dataclass_in_order() -> None:
    @dataclass
    class Pair:
        b: int
        a: list[int]

    made = Pair(1, [2])
    assert list(field_values(made).items()) == [("b", 1), ("a", [2])]
    assert field_values(made)["a"] is made.a
    assert field_values(made, ("a",)) == {"a": [2]}
