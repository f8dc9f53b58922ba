"""Names, labels and identifiers: what cannot be printed or stored is refused by name, before anything is charged."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.adaptive import AdaptiveAnalysis
from dpselect.errors import ArgumentError, StudyError, public_text
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest, SavedAnalysis
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.repetitions import Harmonic
from dpselect.study import parse_study
from dpselect.study.schema import Study
from dpselect.tuning import Categorical, tune

WRONG = ["", "a\0b", "\ud800", "\udfff tail", "two\nlines", "\x1b[31m", "x" * 201, "x" * 10**6]
RIGHT = ["a", "x" * 200, "März 2026: visits (north)", "日本", "naïve café"]


@pytest.mark.parametrize("text", RIGHT)
def test_ordinary_names_pass_and_come_back(text, tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        ledger.create_budget(text, epsilon=1, partition="by region").reserve(
            pure_dp(epsilon=0.5), label=text, identifier=text, part=text
        )
        assert [budget.name for budget in ledger.budgets()] == [text]
        assert ledger.verify()


@pytest.mark.parametrize("text", WRONG)
def test_the_ledger_refuses_other_names(text, tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        budget = ledger.create_budget("b", epsilon=1, partition="by region")
        before = ledger.head()
        step = pure_dp(epsilon=0.5)
        calls = [
            lambda: ledger.create_budget(text, epsilon=1),
            lambda: ledger.create_budget("c", epsilon=1, parent=text),
            lambda: ledger.create_budget("c", epsilon=1, parent="b", part=text),
            lambda: ledger.create_budget("c", epsilon=1, partition=text * 10),
            lambda: ledger.budget(text),
            lambda: budget.reserve(step, label=text),
            lambda: budget.reserve(step, label="s", identifier=text),
            lambda: budget.reserve(step, label="s", part=text),
            lambda: budget.reserve(step, label="s", after=text),
            lambda: budget.settle(text),
        ]
        for call in calls:
            refused(call)
        assert ledger.head() == before


def refused(call, error=ArgumentError):
    with pytest.raises(error, match="printable characters") as caught:
        call()
    said = [line for line in str(caught.value).splitlines() if "printable characters" in line]
    assert all(len(line) < 400 for line in said)
    str(caught.value).encode("utf-8")


@pytest.mark.parametrize("text", WRONG)
def test_labels_of_what_spends(text, tmp_path):
    rows = np.zeros(4000)
    with Ledger.open(tmp_path / "budget.db") as ledger:
        budget = ledger.create_budget("b", epsilon=9)
        space = {"x": Categorical([1])}
        refused(
            lambda: tune(
                lambda params, random: (1.0, 1),
                space=space,
                base=pure_dp(epsilon=0.5),
                repetitions=Harmonic(limit=3),
                ledger=budget,
                label=text,
            )
        )
        assert budget.spent().epsilon == 0
    labels = HoldoutLabels(ids=range(9), labels=[0] * 9)
    request = HoldoutRequest(metric="accuracy", questions=2, answers=1, failure_probability=0.05)
    refused(lambda: Holdout.create(tmp_path / "h", labels, request, label=text))
    terms = {"queries": 2, "subsample_size": 10, "failure_probability": 0.05}
    refused(lambda: AdaptiveAnalysis(rows, **terms, label=text))
    refused(lambda: SavedAnalysis.create(tmp_path / "s", rows, **terms, label=text))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["budget.db"]


@pytest.mark.parametrize("text", WRONG)
def test_names_in_a_study_file(text):
    refused(lambda: parse_study({"name": text}), StudyError)
    refused(lambda: parse_study({"privacy": {"ledger": "b.db", "budget": text}}), StudyError)
    assert Study.model_fields["name"].default == "study"


@pytest.mark.parametrize("wrong", [None, 3, b"bytes", ["a"]])
def test_what_is_no_text(wrong):
    with pytest.raises(TypeError, match="label must be text"):
        public_text("label", wrong)
