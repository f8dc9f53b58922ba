"""Synthetic rows like those of a table: names and types of its columns, declared categories, and no cell."""

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dpselect.integrations.sklearn import PublicTransformer
from dpselect.integrations.sklearn.synthetic_rows import synthetic_tables, with_holes
from dpselect.learners import DPSGDClassifier
from tests.integrations.sklearn.tables_cases import FRAME, POLARS, ROWS, TABLES, learner, pl


def identity(table):
    return table


# what rows are made of


@pytest.mark.parametrize("table", TABLES)
def test_made_up_rows_know_names_and_types_and_nothing_that_a_row_holds(table):
    X = TABLES[table]
    half = X[: ROWS // 2] if isinstance(X, np.ndarray | pl.DataFrame) else X.iloc[1 : ROWS // 2 : 2]
    made = list(synthetic_tables(X, learner()))
    for one, other in zip(made, synthetic_tables(half, learner()), strict=True):
        assert type(one) is type(X)
        assert len(one) == 32
        assert "Ulm" not in str(np.asarray(one, dtype=object).tolist())
        np.testing.assert_array_equal(np.asarray(one, dtype=object), np.asarray(other, dtype=object))
        holed = with_holes(one)
        assert holed is None or len(holed) == 32
    if table == "pandas":
        plain = [name for name in FRAME if name != "kind"]
        assert all((one.dtypes == FRAME.dtypes)[plain].all() for one in made)
        assert all(one["kind"].dtype == "category" for one in made)
    if table == "polars":
        assert all(one.drop("rank").schema == POLARS.drop("rank").schema for one in made)


def test_words_are_those_that_an_encoder_declares():
    encoder = PublicTransformer(OneHotEncoder().fit(np.array([["Ulm", "x"], ["Rom", "y"]], dtype=object)))
    for estimator in (
        make_pipeline(make_column_transformer((encoder, ["city", "kind"])), DPSGDClassifier()),
        make_pipeline(make_column_transformer(("passthrough", ["age"]), remainder=encoder), DPSGDClassifier()),
    ):
        frame = FRAME[["age", "city", "kind"]]
        (made,) = synthetic_tables(frame, estimator)
        assert set(made["city"]) == {"Ulm", "Rom"}
        assert set(made["kind"]) == {"x", "y"}
