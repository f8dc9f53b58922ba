"""Columns whose type says that they hold no numbers are refused; no cell decides, and text and objects are not."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV, PublicTransformer
from dpselect.learners import (
    DPSGDClassifier,
    DPSGDRegressor,
    OutputPerturbationClassifier,
    PrivateRidge,
    PrivateRidgeClassifier,
    PrivateThresholdClassifier,
)
from dpselect.learners.column_types import of_any_type, refuse_other_types
from dpselect.learners.rows import doubles
from dpselect.ledger import Ledger
from dpselect.preprocessing import CenteredScale
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

DAYS = ["2020-01-02", "2021-03-04"] * 4
Y = [0, 1] * 4
MOMENTS, DURATIONS, CATEGORIES = "holds moments", "holds durations", "holds categories"
MANY, PERIODS, INTERVALS = "holds several values a cell", "holds periods", "holds intervals"


def pandas(column):
    return pd.DataFrame({"age": np.arange(8.0), "odd": column})


def polars(cells, kind):
    return pl.DataFrame({"age": np.arange(8.0), "odd": pl.Series(cells).cast(kind)})


def arrow(cells, kind):
    return pa.table({"age": np.arange(8.0), "odd": pa.array(cells).cast(kind)})


REFUSED = {
    "numpy moments": (np.array([DAYS, DAYS], dtype="datetime64[D]").T, MOMENTS),
    "numpy durations": (np.arange(16).reshape(8, 2).astype("timedelta64[s]"), DURATIONS),
    "numpy records": (np.zeros((8, 2), dtype=[("a", "f8")]), "records"),
    "pandas complex numbers": (pandas(np.arange(8) * 1j), "Complex data not supported: take their real part"),
    "pandas moments": (pandas(pd.to_datetime(DAYS)), MOMENTS),
    "pandas moments in a zone": (pandas(pd.to_datetime(DAYS).tz_localize("Asia/Tokyo")), MOMENTS),
    "pandas durations": (pandas(pd.to_timedelta(range(8), unit="h")), DURATIONS),
    "pandas periods": (pandas(pd.PeriodIndex(DAYS, freq="M")), PERIODS),
    "pandas intervals": (pandas(pd.interval_range(0, 8)), INTERVALS),
    "pandas categories": (pandas(pd.Categorical(DAYS)), CATEGORIES),
    "pandas categories that are numbers": (pandas(pd.Categorical(range(8))), CATEGORIES),
    "pandas with a type of Arrow": (pandas(pd.Series(pd.to_datetime(DAYS)).astype("timestamp[ms][pyarrow]")), MOMENTS),
    "polars dates": (polars(DAYS, pl.String).with_columns(pl.col("odd").str.to_date()), MOMENTS),
    "polars times": (polars([0] * 8, pl.Time), MOMENTS),
    "polars durations": (polars(list(range(8)), pl.Duration("ms")), DURATIONS),
    "polars categories": (polars(DAYS, pl.Categorical), CATEGORIES),
    "polars words in an order": (polars(DAYS, pl.Enum(DAYS[:2])), CATEGORIES),
    "polars lists": (polars([[1]] * 8, pl.List(pl.Int64)), MANY),
    "arrow time stamps": (arrow(DAYS, pa.timestamp("us")), MOMENTS),
    "arrow dates": (arrow(DAYS, pa.date32()), MOMENTS),
    "arrow durations": (arrow(list(range(8)), pa.duration("s")), DURATIONS),
    "arrow categories": (arrow(DAYS, pa.dictionary(pa.int32(), pa.string())), CATEGORIES),
    "arrow lists": (arrow([[1.0]] * 8, pa.list_(pa.float64())), MANY),
}
TAKEN = {
    "numpy objects": np.array([[1.0, None], ["x", DAYS]] * 4, dtype=object),
    "numpy text": np.array([["1", "x"]] * 8),
    "pandas objects": pandas(pd.Series(pd.to_datetime(DAYS)).astype(object)),
    "pandas text": pandas(pd.Series(DAYS, dtype="string")),
    "pandas booleans": pandas(pd.array([True, None] * 4, dtype="boolean")),
    "pandas sparse": pandas(pd.arrays.SparseArray(np.arange(8.0))),
    "pandas numbers of Arrow": pandas(pd.Series(range(8), dtype="int64[pyarrow]")),
    "arrow runs of numbers": pa.table({"odd": pa.RunEndEncodedArray.from_arrays([3, 8], [1.0, 2.0])}),
    "polars text": polars(DAYS, pl.String),
    "polars decimals": polars(list(range(8)), pl.Decimal(10, 2)),
    "arrow text": arrow(DAYS, pa.large_string()),
    "arrow nothing": pa.table({"age": np.arange(8.0), "odd": pa.nulls(8)}),
    "lists": [[1.0, "x"]] * 8,
}
LEARNERS = [
    DPSGDClassifier(steps=1, noise_multiplier=4.0, nominal_rows=8, classes=[0, 1]),
    DPSGDRegressor(steps=1, noise_multiplier=4.0, nominal_rows=8, label_bounds=(0, 1)),
    OutputPerturbationClassifier(nominal_rows=8, classes=[0, 1]),
    PrivateRidge(label_bounds=(0, 1)),
    PrivateRidgeClassifier(classes=[0, 1]),
    PrivateThresholdClassifier(classes=[0, 1]),
]


def search(estimator, **options):
    given = {"repetitions": Fixed(count=1), "score_epsilon": 0.1, "nominal_rows": 8, "classes": [0, 1], **options}
    return PrivateSearchCV(estimator, {}, random=keyed_source(1), **given)


def named(table):
    return "X: the type" if isinstance(table, np.ndarray) else "column 'odd' of X: the type"


@pytest.mark.parametrize("name", REFUSED)
def test_a_type_without_numbers_is_refused_and_nothing_is_charged(name, tmp_path):
    table, held = REFUSED[name]
    with pytest.raises(ArgumentError, match=held) as refused:
        refuse_other_types(table)
    assert named(table) in str(refused.value)
    assert "2020" not in str(refused.value).replace("'2020-01-01'", "")  # no cell
    ledger = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=9.0, delta=1e-3)
    for rehearse in (True, False):
        with pytest.raises(ArgumentError, match=held):
            search(LEARNERS[0], ledger=ledger, delta=1e-5, rehearse=rehearse).fit(table, Y)
    assert ledger.spent().epsilon == 0


@pytest.mark.parametrize("learner", [*LEARNERS, CenteredScale(bounds=(0, 8))], ids=lambda each: type(each).__name__)
def test_every_learner_and_map_refuses(learner):
    for name in ("pandas moments", "pandas categories", "arrow durations"):
        table, held = REFUSED[name]
        with pytest.raises(ArgumentError, match=held):
            learner.fit(table, Y)
    with pytest.raises(ArgumentError, match="OneHotEncoder"):
        learner.fit(REFUSED["polars categories"][0], Y)


@pytest.mark.parametrize("name", TAKEN)
def test_text_and_objects_are_taken(name):
    """One cell may give a column these types, so they tell of rows."""
    refuse_other_types(TAKEN[name])


def test_a_released_model_refuses_them_in_new_rows():
    table = pandas(np.arange(8.0))
    fitted = LEARNERS[0].fit(table, Y)
    with pytest.raises(ArgumentError, match="days"):
        fitted.predict(pandas(pd.to_datetime(DAYS)))


def test_an_encoder_in_front_takes_categories_and_a_rehearsal_finds_those_that_reach_the_learner():
    table = REFUSED["pandas categories"][0]
    encoder = OneHotEncoder(categories=[DAYS[:2]], handle_unknown="ignore", sparse_output=False)
    columns = ColumnTransformer([("words", encoder, ["odd"])], remainder="passthrough")
    assert search(make_pipeline(columns, LEARNERS[0])).fit(table, Y).best_estimator_ is not None
    passed_on = make_pipeline(PublicTransformer(FunctionTransformer()), LEARNERS[0])
    with pytest.raises(ArgumentError, match=CATEGORIES) as refused:
        search(passed_on).fit(table, Y)
    assert "nothing was drawn or charged" in str(refused.value.__notes__)


def test_a_run_refuses_no_type():
    """A step in front may give its table a type that depends on the rows."""
    with of_any_type():
        refuse_other_types(REFUSED["pandas moments"][0])
    passed_on = make_pipeline(PublicTransformer(FunctionTransformer()), LEARNERS[0])
    found = search(passed_on, rehearse=False).fit(REFUSED["pandas moments"][0], Y)
    assert found.best_estimator_ is not None
    assert np.isnan(doubles(REFUSED["pandas moments"][0])[:, 1]).all()


@pytest.mark.parametrize("name", ["pandas moments", "pandas durations", "polars dates", "numpy moments"])
@pytest.mark.parametrize(
    "parts", [([("age", "passthrough", [0])], "passthrough"), ([("odd", "passthrough", [1])], "drop")]
)
def test_dates_that_a_column_transformer_hands_on_are_refused(name, parts, tmp_path):
    """It makes objects of them beside numbers, and a learner would count each as zero."""
    (table, held), (transformers, remainder) = REFUSED[name], parts
    ledger = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=9.0, delta=1e-3)
    columns = ColumnTransformer(transformers, remainder=remainder)
    for rehearse in (True, False):
        asked = search(make_pipeline(columns, LEARNERS[0]), ledger=ledger, delta=1e-5, rehearse=rehearse)
        with pytest.raises(ArgumentError, match=held):
            asked.fit(table, Y)
    assert ledger.spent().epsilon == 0


def test_dates_that_are_dropped_or_encoded_are_taken():
    table = REFUSED["pandas moments"][0]
    days = FunctionTransformer(days_since_2020)
    for columns in (
        ColumnTransformer([("age", "passthrough", ["age"])]),
        ColumnTransformer([("odd", PublicTransformer(days), ["odd"])], remainder="passthrough"),
    ):
        assert search(make_pipeline(columns, LEARNERS[0])).fit(table, Y).best_estimator_ is not None


def days_since_2020(table):
    return (table - np.datetime64("2020-01-01")) / np.timedelta64(1, "D")


def test_only_the_places_that_are_asked_for_are_refused():
    for name in ("pandas moments", "arrow dates", "polars categories"):
        refuse_other_types(REFUSED[name][0], {0})
        with pytest.raises(ArgumentError, match="column 'odd'"):
            refuse_other_types(REFUSED[name][0], {0, 1})
    refuse_other_types(REFUSED["numpy moments"][0], set())
