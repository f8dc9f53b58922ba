"""Frames of every library at every door: taken, or refused by name with what to do, and nothing is charged."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.learners import DPSGDClassifier, PrivateBoostingClassifier, PrivateRidge, PrivateRidgeClassifier
from dpselect.ordered import median, quantiles_by_group
from dpselect.randomness import keyed_source
from dpselect.tables.frames import only_column, refuse_engine

ROWS = 60
CELLS = {"a": [index / ROWS for index in range(ROWS)], "b": [0.5] * ROWS}
LABELS = [int(index >= ROWS / 2) for index in range(ROWS)]
X, Y = np.column_stack(list(CELLS.values())), np.array(LABELS)


class Uncharged:
    """Fails if it is asked to pay."""

    def reserve(self, *_, **__):
        raise AssertionError("charged")

    settle = reserve


def polars_lazy():
    pl = pytest.importorskip("polars")
    return pl.LazyFrame(CELLS), "polars LazyFrame", "frame.collect()"


def duckdb_relation():
    duckdb = pytest.importorskip("duckdb")
    pa = pytest.importorskip("pyarrow")
    return duckdb.connect().from_arrow(pa.table(CELLS)), "duckdb DuckDBPyRelation", "frame.df()"


def dask_frame():
    pd = pytest.importorskip("pandas")
    dd = pytest.importorskip("dask.dataframe")
    return dd.from_pandas(pd.DataFrame(CELLS), npartitions=2), "dask DataFrame", "frame.compute()"


def dask_array():
    pytest.importorskip("dask")
    return pytest.importorskip("dask.array").from_array(X), "dask Array", "frame.compute()"


def ibis_table():
    pytest.importorskip("pandas")
    return pytest.importorskip("ibis").memtable(CELLS), "ibis Table", "frame.to_pandas()"


def pretended(module, name):
    """An object as that library's, which takes seconds to start."""
    return type(name, (), {"__module__": module})()


def spark_frame():
    return pretended("pyspark.sql.classic.dataframe", "DataFrame"), "pyspark DataFrame", "frame.toPandas()"


def spark_connect():
    return pretended("pyspark.sql.connect.dataframe", "DataFrame"), "pyspark DataFrame", "frame.toPandas()"


def ray_dataset():
    return pretended("ray.data.dataset", "MaterializedDataset"), "ray MaterializedDataset", "frame.to_pandas()"


QUICK = [polars_lazy, spark_frame, spark_connect, ray_dataset]
SLOW = [duckdb_relation, dask_frame, dask_array, ibis_table]  # to import
ENGINES = [*QUICK, *(pytest.param(made, marks=pytest.mark.full) for made in SLOW)]


def search(rows, labels, groups=None):
    pytest.importorskip("sklearn")
    from dpselect.integrations.sklearn import PrivateSearchCV

    private = PrivateSearchCV(
        PrivateRidgeClassifier(),
        {"row_norm": [1.0, 2.0]},
        epsilon=2.0,
        classes=[0, 1],
        ledger=Uncharged(),
        rows_per_group=None if groups is None else 1,
    )
    private.fit(rows, labels, groups=groups)


def scaled_search(rows, labels):
    pytest.importorskip("sklearn")
    from dpselect.integrations.sklearn import PrivateSearchCV

    learner, space = PrivateRidgeClassifier(), {"row_norm": [1.0]}
    private = PrivateSearchCV(
        learner, space, epsilon=2.0, classes=[0, 1], ledger=Uncharged(), scale="declared", bounds=(0, 1)
    )
    private.fit(rows, labels)


def mapped(rows, _):
    from dpselect.preprocessing import CenteredScale

    CenteredScale(bounds=[(0.0, 1.0)] * 2).fit_transform(rows)


DOORS = {
    "dp-sgd": lambda rows, labels: DPSGDClassifier(classes=[0, 1], nominal_rows=ROWS).fit(rows, labels),
    "ridge": lambda rows, labels: PrivateRidge(label_bounds=(0, 1)).fit(rows, labels),
    "boosting": lambda rows, labels: PrivateBoostingClassifier(classes=[0, 1], bounds=(0, 1)).fit(rows, labels),
    "predict": lambda rows, _: PrivateRidge(label_bounds=(0, 1), random=keyed_source(1)).fit(X, Y).predict(rows),
    "map": mapped,
    "search": search,
    "scaled search": scaled_search,
}
LABEL_DOORS = ["dp-sgd", "ridge", "boosting", "search", "scaled search"]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda made: made.__name__)
def test_rows_of_an_engine_are_refused_by_name(engine, door):
    frame, name, collect = engine()
    with pytest.raises(ArgumentError) as caught:
        DOORS[door](frame, Y)
    assert str(caught.value).startswith(f"X: this {name} is not in memory")
    assert collect in str(caught.value)


@pytest.mark.parametrize("door", LABEL_DOORS)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda made: made.__name__)
def test_labels_of_an_engine_are_refused_by_name(engine, door):
    frame, name, _ = engine()
    with pytest.raises(ArgumentError, match=f"y: this {name} is not in memory"):
        DOORS[door](X, frame)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda made: made.__name__)
def test_groups_of_an_engine_are_refused_by_name(engine):
    frame, name, _ = engine()
    with pytest.raises(ArgumentError, match=f"groups: this {name} is not in memory"):
        search(X, Y, frame)
    terms = {"names": [0, 1], "qs": [0.5], "lower": 0.0, "upper": 1.0, "epsilon": 1.0, "spender": Uncharged()}
    with pytest.raises(ArgumentError, match=f"groups: this {name} is not in memory"):
        quantiles_by_group(CELLS["a"], frame, **terms)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda made: made.__name__)
def test_a_quantile_takes_one_column_of_an_engine_that_counts_and_names_others(engine):
    """A frame of two columns is refused everywhere; see tests/ordered/sources/engines for one column."""
    frame, name, _ = engine()
    reason = f"values: this {name} is not in memory" if engine in (ray_dataset, dask_array) else "column"
    if engine in (spark_frame, spark_connect):
        pytest.skip("the reader asks a real one for its columns")
    with pytest.raises(ArgumentError, match=reason):
        median(frame, lower=0.0, upper=1.0, epsilon=1.0, spender=Uncharged())


def frames_of_one_column(cells):
    pd, pl, pa = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    return [pd.DataFrame({5: cells}), pl.DataFrame({"a": cells}), pa.table({"a": cells})]


def test_a_frame_of_one_column_is_its_column():
    terms = {"lower": 0.0, "upper": 1.0, "epsilon": 1.0}
    expected = median(CELLS["a"], random=keyed_source(3), **terms).value
    for frame in frames_of_one_column(CELLS["a"]):
        assert median(frame, random=keyed_source(3), **terms).value == expected
    whole = {"names": [0, 1], "qs": [0.5], **terms}
    split = quantiles_by_group(CELLS["a"], LABELS, random=keyed_source(3), **whole).value
    for frame, groups in zip(frames_of_one_column(CELLS["a"]), frames_of_one_column(LABELS), strict=True):
        assert quantiles_by_group(frame, groups, random=keyed_source(3), **whole).value == split


@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_labels_may_be_a_frame_of_one_column():
    def predicted(labels):
        return PrivateRidge(label_bounds=(0, 1), random=keyed_source(3)).fit(X, labels).predict(X).tolist()

    for frame in frames_of_one_column(LABELS):
        assert predicted(frame) == predicted(LABELS)


def test_a_frame_of_more_columns_is_refused():
    for frame in frames_of_one_column([1.0]):
        wide = {"pandas": lambda f: f.assign(b=1.0), "polars": lambda f: f.with_columns(b=1.0)}
        change = wide.get(type(frame).__module__.partition(".")[0], lambda f: f.append_column("b", [[1.0]]))
        with pytest.raises(ArgumentError, match="values: a frame must have one column here, got 2"):
            only_column(change(frame), "values")


def test_what_is_in_memory_is_not_touched():
    for values in (X, [1.0], None, "text", {"a": [1]}):
        refuse_engine(values, "X")
        assert only_column(values, "X") is values
