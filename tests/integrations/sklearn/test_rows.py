"""Reading rows and labels: which rows train, which labels are refused by type, warnings before anything is spent."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.utils import get_tags

from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.guarantee import private_steps
from dpselect.integrations.sklearn.rows import nominal_rows
from dpselect.learners import (
    DPSGDClassifier,
    DPSGDRegressor,
    OutputPerturbationClassifier,
    PrivateRectangleClassifier,
    PrivateRidgeClassifier,
    PublicRowCountWarning,
)
from dpselect.ledger import Ledger
from dpselect.privacy import Adjacency, pure_dp
from dpselect.randomness import keyed_source
from tests.integrations.sklearn import attacks_cases as attacks
from tests.integrations.sklearn.attacks_cases import Seen, SeenReplaceOne, seen
from tests.integrations.sklearn.declarations_cases import ROWS, search


def test_a_score_that_is_not_released_is_not_scaled_by_the_private_number_of_rows():
    """Divided by it, different scores could round to equal ones, and which ones would depend on it."""
    steps = private_steps(LogisticRegression(), pure_dp(epsilon=1.0))
    scales = {nominal_rows(None, count, Adjacency.ADD_OR_REMOVE_ONE, steps, used=False) for count in (3, 1000)}
    assert len(scales) == 1


CELLS = ["SECRET", None, 1e300, float("nan"), float("inf")]
LABELS = ["SECRET", 2, None, float("nan")]
ALL = np.column_stack([attacks.X, attacks.Y]).tolist()


@pytest.mark.parametrize(("cell", "label"), [*((cell, 0) for cell in CELLS), *((0.5, label) for label in LABELS)])
def test_a_row_that_a_learner_of_others_cannot_take_trains_nothing_and_raises_nothing(cell, label):
    """Text in one row makes the whole table one of objects."""
    table, labels = attacks.X.tolist(), attacks.Y.tolist()
    table[3][1], labels[3] = cell, label
    assert seen(Seen, table, labels) == ALL[:3] + ALL[4:]
    other = seen(SeenReplaceOne, table, labels)
    assert other[:3] + other[4:] == ALL[:3] + ALL[4:]
    # a public row in its place: the same regardless of the row, and at another place
    table[3], labels[3] = [float("nan")] * 3, 1
    assert seen(SeenReplaceOne, table, labels) == other
    assert attacks.search().fit(table, labels).best_estimator_ is not None


def test_every_label_of_a_regression_is_taken():
    target = attacks.X @ [1.0, 2.0, 3.0]
    holed = [*target[:-1].tolist(), "SECRET"]
    options = {
        "classes": None,
        "validation_fraction": None,
        "public_validation": (attacks.X, target),
        "random": keyed_source(2),
    }
    own = DPSGDRegressor(noise_multiplier=4.0, steps=2, label_bounds=(0, 6))
    found = attacks.search(own, scoring="r2", score_epsilon=None, **options).fit(attacks.X, holed)
    assert found.best_estimator_ is not None
    model = (
        attacks.search(Ridge(), base=pure_dp(epsilon=1.0), scoring="r2", score_epsilon=None, **options)
        .fit(attacks.X, holed)
        .best_estimator_
    )
    assert np.allclose(model.coef_, Ridge().fit(attacks.X[:-1], target[:-1]).coef_)


def test_without_a_public_count_a_part_has_its_share_of_the_rows_and_not_its_own_count():
    with pytest.warns(PublicRowCountWarning):
        fitted = attacks.search(nominal_rows=None).fit(attacks.X, attacks.Y)
    assert fitted.best_estimator_.nominal_rows == pytest.approx(0.8 * 120)


NUMBERS = keyed_source("rows").uniform((ROWS, 2))
Y = (NUMBERS[:, 0] > 0.5).astype(int)


# labels of no class, and missing cells: one rule


LEARNERS = (
    OutputPerturbationClassifier(epsilon=1.0, nominal_rows=ROWS),
    DPSGDClassifier(steps=2, noise_multiplier=1.0, nominal_rows=ROWS),
    PrivateRidgeClassifier(noise_multiplier=1.0),
    PrivateRectangleClassifier(epsilon=1.0, lower=0, upper=1, granularity=0.1),
)
OTHER_TYPES = [
    (Y, ["0", "1"]),
    (Y.astype(bool), [2, 3]),
    (Y.astype(np.uint8), [-1, 300]),
    (Y, [0.5, 1.5]),
    (Y.astype(str), [0, 1]),
    (Y.astype(float), ["0", "1"]),
]


@pytest.mark.parametrize(("labels", "classes"), OTHER_TYPES)
def test_labels_whose_type_is_that_of_no_class_are_refused(labels, classes, tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=100, delta=1e-5)
    for learner in LEARNERS:
        with pytest.raises(ArgumentError, match="nothing in common"):
            learner.set_params(classes=classes).fit(NUMBERS, labels)
    with pytest.raises(ArgumentError, match="nothing in common"):
        search(classes=classes, ledger=budget).fit(NUMBERS, labels)
    assert budget.spent().epsilon == 0


@pytest.mark.parametrize(
    ("labels", "classes"), [(Y, [0, 1, 2]), (Y.astype(bool), [0, 1]), (Y.astype(float), [0, 1]), (Y, [0.0, 7.5])]
)
def test_labels_of_another_type_that_can_be_equal_are_taken(labels, classes):
    assert search(classes=classes).fit(NUMBERS, labels).best_estimator_ is not None


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_cells_that_are_no_number_and_labels_of_no_class_follow_the_rule_that_is_printed(value, capsys):
    table, labels = NUMBERS.copy(), np.array(Y.tolist(), dtype=object)
    table[3, 1], labels[5] = value, "yes"
    zeros = table.copy()
    zeros[3, 1] = 0.0
    options = {"validation_fraction": None, "verbose": 1}
    found = [search(**options).fit(each, labels).predict_proba(NUMBERS).tolist() for each in (table, zeros)]
    assert found[0] == found[1]
    told = capsys.readouterr().err
    assert "count as zero" in told
    assert "labels other than [0, 1] train nothing" in told


# sparse tables


def test_a_search_on_a_sparse_table_is_that_on_the_dense_one():
    dense = np.where(NUMBERS > 0.4, NUMBERS, 0.0)
    found = [search(cv=2).fit(table, Y) for table in (dense, sparse.csr_matrix(dense), sparse.coo_array(dense))]
    chances = [each.predict_proba(dense).tolist() for each in found]
    assert chances[0] == chances[1] == chances[2] == found[0].predict_proba(sparse.csc_array(dense)).tolist()
    assert get_tags(found[0]).input_tags.sparse
