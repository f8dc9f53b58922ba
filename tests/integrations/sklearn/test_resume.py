"""PrivateSearchCV with a sealed store and a ledger: interrupted, resumed in another process, charged once."""

import json
import os
import subprocess
import sys

import pytest

from dpselect.errors import BudgetError
from dpselect.learners import OutputPerturbationClassifier
from dpselect.ledger import Ledger
from dpselect.tuning import SearchFinishedError
from tests.integrations.sklearn.test_search import X, Y, fit, own_state, search, weights
from tests.root import ROOT

__all__ = ["own_state"]


def test_a_search_is_resumed_and_releases_what_it_would_have(tmp_path):
    """Interrupted in its first run, and later between its last run and the release, with a further run to make."""
    options = {"estimator": _Interrupted(epsilon=2.0), "refit": True, "score_epsilon": 1.0}
    whole = search(**options).fit(X, Y)
    written = []

    def release(result):
        if not written:
            written.append(result.value)
            raise KeyboardInterrupt
        written.append(result.value)

    stored = {**options, "store": tmp_path / "search.sealed", "rehearse": False}
    _Interrupted.times = 1
    with pytest.raises(KeyboardInterrupt):
        search(**stored).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        search(**stored, resume=True, release=release, key=2).fit(X, Y)
    resumed = search(**stored, resume=True, release=release, key=3).fit(X, Y)
    assert resumed.best_params_ == whole.best_params_
    assert weights(resumed.best_estimator_) == weights(whole.best_estimator_) == weights(written[0])
    assert len(written) == 2
    with pytest.raises(SearchFinishedError):
        search(**stored, resume=True).fit(X, Y)


class _Interrupted(OutputPerturbationClassifier):
    times = 0

    def fit(self, X, y):
        if _Interrupted.times:
            _Interrupted.times -= 1
            raise KeyboardInterrupt
        return super().fit(X, y)


def test_a_changed_search_is_not_resumed(tmp_path):
    stored = {"store": tmp_path / "search.sealed", "estimator": _Interrupted(epsilon=2.0), "rehearse": False}
    _Interrupted.times = 1
    with pytest.raises(KeyboardInterrupt):
        fit(**stored)
    with pytest.raises(ValueError, match=r"another|changed"):
        fit(**stored, resume=True, validation_fraction=0.3)


FINGERPRINT = """
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from dpselect.integrations.sklearn import PublicTransformer, RowScore
from tests.integrations.sklearn.search_cases import LEARNER
from tests.integrations.sklearn.test_distributions import OnlyRvs
from tests.integrations.sklearn.test_search import X, Y, minus_absolute_error, search
from dpselect.integrations.sklearn.request import request_of
from dpselect.tuning.plan import _digest
public = PublicTransformer(StandardScaler().fit(X))
model = make_pipeline(ColumnTransformer([("a", public, [0])]), LEARNER)
laws = (stats.norm(1, 2), OnlyRvs(), [(1, 2), LEARNER])
space = [{"outputperturbationclassifier__regularization": law} for law in laws]
given = search(model, space, store="s", public_validation=(X, Y), scoring=RowScore(minus_absolute_error))
print(given._fingerprint(), _digest(list(request_of(given, 3).space.describe().items())))
"""


@pytest.mark.full
def test_the_fingerprint_of_a_search_is_the_same_in_another_process():
    """A search resumed after a kill is another process: nothing in its description may hold an address or a state."""
    texts = {
        subprocess.run(
            [sys.executable, "-W", "ignore", "-c", FINGERPRINT],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(texts) == 1
    assert len(texts.pop()) > 500


@pytest.mark.full
def test_the_ledger_is_charged_for_all_that_is_released(tmp_path):
    budget = Ledger.open(tmp_path / "budget.db").create_budget("b", epsilon=10, delta=1e-6)
    fitted = fit(ledger=budget, refit=True, score_epsilon=1.0)
    total = fitted.guarantee_.epsilon(0)
    assert float(budget.spent().epsilon) == pytest.approx(total, rel=1e-9)
    assert json.dumps(fitted.guarantee_.describe(delta=0.0))
    assert fitted.receipt_ is not None
    with pytest.raises(BudgetError):
        [fit(ledger=budget) for _ in range(3)]
