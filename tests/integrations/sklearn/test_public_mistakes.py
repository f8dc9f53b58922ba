"""Public mistakes in a search, on each container: refused on synthetic rows, before anything is charged."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV, PublicTransformer, RowScore
from dpselect.learners import DPSGDClassifier, DPSGDRegressor, OutputPerturbationClassifier
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from tests.integrations.sklearn.tables_cases import FAST, FRAME, NUMBERS, ROWS, TABLES, front, learner, numeric, pd

Y = (NUMBERS[:, 0] > 0.5).astype(int)


def centred(table):
    return table - table.mean(axis=0)


def filled_with_the_mean(table):
    return table.fillna(table.mean())


class AsksForNothing(ClassifierMixin, BaseEstimator):
    """Declares a guarantee and fails in fit, in predict, or has an answer too few."""

    def __init__(self, how="fit", random=None):
        self.how = how
        self.random = random

    def guarantee(self):
        return pure_dp(epsilon=0.1)

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        if self.how == "fit":
            raise RuntimeError("no such solver")
        if self.how == "lock":
            self.kept = lambda: 1
        return self

    def predict(self, X):
        if self.how == "predict":
            raise RuntimeError("not implemented")
        return np.zeros(1 if self.how == "shape" else len(X))


def search(estimator, space=None, **options):
    defaults = {"repetitions": Fixed(count=1), "score_epsilon": 0.1, "nominal_rows": ROWS, "classes": [0, 1]}
    return PrivateSearchCV(estimator, space or {}, random=keyed_source(1), **{**defaults, **options})


EVERYWHERE = {
    "a lambda in the pipeline": lambda: search(
        make_pipeline(front(lambda table: numeric(table)), DPSGDClassifier(**FAST))
    ),
    "learning_rate": lambda: search(learner(learning_rate=-1.0)),
    "activation": lambda: search(learner(activation="gelu", hidden_units=2)),
    "hidden_units": lambda: search(learner(hidden_units=-3)),
    "class_weights": lambda: search(learner(class_weights={"2": 3.0})),
    "searched learning_rate": lambda: search(learner(), {"dpsgdclassifier__learning_rate": [0.5, -1.0]}),
    "searched activation": lambda: search(
        learner(hidden_units=2), {"dpsgdclassifier__activation": ["relu", "soft", "tanh"]}
    ),
    "fails in fit": lambda: search(make_pipeline(front(), AsksForNothing("fit"))),
    "fails in predict": lambda: search(make_pipeline(front(), AsksForNothing("predict"))),
    "one answer for all": lambda: search(make_pipeline(front(), AsksForNothing("shape"))),
    "a model that is not pickled": lambda: search(make_pipeline(front(), AsksForNothing("lock"))),
    "rows centred by themselves": lambda: search(make_pipeline(front(), front(centred), DPSGDClassifier(**FAST))),
    "a score of other arguments": lambda: search(learner(), scoring=RowScore(lambda y: y)),
    "a score that fails": lambda: search(learner(), scoring=RowScore(lambda y, answers: y.missing)),
    "a score by the mean": lambda: search(
        learner(), scoring=RowScore(lambda y, answers: (y == answers) - np.mean(y == answers), lower=-1.0)
    ),
    "a parameter that is not there": lambda: search(learner(), {"dpsgdclassifier__rate": [1.0]}),
    "a scorer for regressions": lambda: search(learner(), scoring="r2"),
    "clip_norm": lambda: search(learner(clip_norm=0.0)),
    "averaged_share": lambda: search(learner(averaged_share=2.0)),
    "more class_weights than classes": lambda: search(learner(class_weights=[1.0, 2.0, 3.0])),
    "fit_intercept": lambda: search(learner(intercept_scale=-1.0)),
    "a response that is not there": lambda: search(
        learner(), scoring=RowScore(lambda y, a: y == a, response="answers")
    ),
    "a public scorer that fails": lambda: search(
        learner(), scoring=lambda model, X, y: model.rates, public_validation=(FRAME, Y), score_epsilon=None
    ),
    "a candidate that fails": lambda: search(
        learner(),
        {"dpsgdclassifier__learning_rate": [1.0, -1.0]},
        design="portfolio",
        epsilon=8.0,
        delta=1e-4,
        repetitions=None,
        score_epsilon=None,
    ),
    "bounds of labels": lambda: search(
        make_pipeline(front(), DPSGDRegressor(label_bounds=(1.0, 0.0), **FAST)),
        classes=None,
        scoring="neg_mean_absolute_error",
    ),
    "momentum": lambda: search(learner(momentum=1.5)),
    "row_norm": lambda: search(learner(row_norm=-1.0)),
}
FRAMES = {
    "a column that is not there": lambda: search(
        make_pipeline(make_column_transformer(("passthrough", ["agee"])), OutputPerturbationClassifier(epsilon=1.0))
    ),
    "text for a learner": lambda: search(
        make_pipeline(
            PublicTransformer(OneHotEncoder(handle_unknown="ignore").fit([["Ulm"], ["Bonn"]])),
            OutputPerturbationClassifier(epsilon=1.0),
        )
    ),
    "sparse output": lambda: search(
        make_pipeline(
            ColumnTransformer(
                [("city", PublicTransformer(OneHotEncoder(handle_unknown="ignore").fit([["Ulm"]])), ["city"])],
                sparse_threshold=1.0,
            ),
            AsksForNothing("fit"),
        )
    ),
    "a method of another library": lambda: search(
        make_pipeline(front(lambda table: table.no_such_method()), OutputPerturbationClassifier(epsilon=1.0))
    ),
}
PANDAS = {
    "filled with the mean of the others": lambda: search(
        make_pipeline(front(numeric_frame), front(filled_with_the_mean), DPSGDClassifier(**FAST))
    ),
}


def numeric_frame(table):
    return table.select_dtypes("float")


CASES = [
    *((table, mistake) for mistake in EVERYWHERE for table in TABLES),
    *((table, mistake) for mistake in FRAMES for table in ("pandas", "polars")),
    *(("pandas", mistake) for mistake in PANDAS),
]
FEW = {"a lambda in the pipeline", "learning_rate", "class_weights", "rows centred by themselves", *FRAMES, *PANDAS}


@pytest.mark.parametrize(
    ("table", "mistake"),
    [pytest.param(*case, marks=() if case[1] in FEW and case[0] != "array" else pytest.mark.full) for case in CASES],
)
def test_a_public_mistake_costs_nothing(table, mistake, tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=1000, delta=1e-3)
    made = {**EVERYWHERE, **FRAMES, **PANDAS}[mistake]().set_params(ledger=budget)
    with pytest.raises(Exception) as caught:
        made.fit(TABLES[table], Y)
    assert budget.spent().epsilon == 0, caught
    assert "Ulm" not in str(caught.value)


@pytest.mark.parametrize("table", TABLES)
def test_without_a_mistake_each_table_is_searched(table, tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=1000, delta=1e-3)
    assert search(learner(), ledger=budget).fit(TABLES[table], Y).best_estimator_ is not None
    assert budget.spent().epsilon > 0


def test_text_that_made_up_words_do_not_stand_for_takes_public_rows(tmp_path):
    table = pd.DataFrame({"share": [f"~{k} %" for k in range(ROWS)]})
    made = search(make_pipeline(front(strict_percentages), DPSGDClassifier(**FAST)))
    with pytest.raises(ValueError, match="percent") as caught:
        made.fit(table, Y)
    assert any("pass rehearse=" in note for note in caught.value.__notes__)
    made.set_params(rehearse=pd.DataFrame({"share": ["~3 %", "~4 %"]}))
    assert made.fit(table, Y).best_estimator_ is not None
    with pytest.raises(ArgumentError, match="columns of X"):
        made.set_params(rehearse=pd.DataFrame({"part": ["~3 %"]})).fit(table, Y)


def strict_percentages(table):
    if not all(cell.startswith("~") and cell.endswith(" %") for cell in table["share"]):
        raise ValueError("no percentage")
    return np.array([[float(cell[1:-2])] for cell in table["share"]])


def test_fit_parameters_are_rehearsed_with_ones_in_their_place(tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=1000)

    class Weighted(AsksForNothing):
        def fit(self, X, y, sample_weight=None):
            assert len(sample_weight) == len(X)
            return super().fit(X, y)

    for how in ("fit", "shape", "predict"):
        with pytest.raises(Exception):  # noqa: B017
            search(Weighted(how), base=pure_dp(epsilon=0.1), ledger=budget).fit(
                NUMBERS, Y, sample_weight=np.full(ROWS, 2.0)
            )
    assert budget.spent().epsilon == 0
