"""A holdout as its users see it: answers, budgets, files that do not fit, what is never said."""

from __future__ import annotations

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BudgetError, ContentError, StudyError
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest
from dpselect.holdout.scores import area_under_curve
from dpselect.ledger import Ledger

ROWS = 2000


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def classes(seed=0):
    return np.random.default_rng(seed).integers(0, 2, ROWS)


def spoiled(labels, share, seed=1):
    """Predictions that are wrong on about this share of the rows."""
    return np.where(np.random.default_rng(seed).random(len(labels)) < share, 1 - labels, labels)


COLUMNS = ("ids", "labels", "positive", "id_column", "label_column")


def make(folder, **changes):
    public = {
        "ids": range(ROWS),
        "labels": classes(),
        "metric": "accuracy",
        "questions": 20,
        "answers": 4,
        "failure_probability": 0.05,
    }
    folder.mkdir(exist_ok=True)
    given = {**public, **changes}
    labels = HoldoutLabels(**{name: given.pop(name) for name in COLUMNS if name in given})
    paying = {name: given.pop(name) for name in ("spender", "label", "key_variable") if name in given}
    return Holdout.create(folder / "labels.holdout", labels, HoldoutRequest(**given), **paying)


def ask(holdout, predictions, claim=None, ids=range(ROWS)):
    return holdout.score(ids=ids, predictions=predictions, claim=claim)


def test_claims_and_scores(folder):
    holdout = make(folder)
    predictions = spoiled(classes(), 0.2)
    exact = np.mean(predictions == classes())
    good = ask(holdout, predictions, claim=exact + 0.5 * holdout.terms.plan.tolerance)
    assert good.agrees
    assert not good.repeated
    assert (good.questions_left, good.answers_left) == (19, 4)
    bad = ask(holdout, predictions, claim=exact + 2 * holdout.terms.plan.tolerance)
    assert bad.agrees is False
    assert abs(bad.value - exact) <= holdout.terms.plan.tolerance
    assert (bad.questions_left, bad.answers_left) == (18, 3)
    none = ask(holdout, predictions)
    assert none.agrees is None
    assert none.value == bad.value
    assert none.answers_left == 2
    assert all(found.interval[0] < 0.8 < found.interval[1] for found in (good, bad, none))


def test_the_same_question_is_answered_once_and_charged_once(folder):
    holdout = make(folder, mechanism="gaussian", answers=20)
    predictions = spoiled(classes(), 0.3)
    first = ask(holdout, predictions)
    order = np.random.default_rng(2).permutation(ROWS)
    again = ask(Holdout.open(folder / "labels.holdout"), predictions[order], ids=order)  # rows are matched by id
    assert again.repeated
    assert again.value == first.value
    assert again.questions_left == 19
    # another claim is another question about the same noisy score: no average over claims removes the noise
    other = ask(holdout, predictions, claim=0.1)
    assert not other.repeated
    assert other.value == first.value
    assert other.questions_left == 18


def test_it_stops(folder):
    holdout = make(folder, questions=6, answers=2)
    wrong = ask(holdout, spoiled(classes(), 0.5), claim=0.9)
    right = ask(holdout, spoiled(classes(), 0.5), claim=0.5)
    assert (wrong.agrees, right.agrees, right.questions_left) == (False, True, 4)
    assert ask(holdout, spoiled(classes(), 0.4)).questions_left == 0
    with pytest.raises(BudgetError, match="all its answers"):
        ask(holdout, spoiled(classes(), 0.1), claim=0.9)
    assert ask(holdout, spoiled(classes(), 0.5), claim=0.9).value == wrong.value  # what was said stays said
    assert holdout.status()["open"] is False


def test_confirmed_claims_use_up_questions(folder):
    holdout = make(folder, questions=3, answers=2)
    for share in (0.1, 0.2, 0.3):
        predictions = spoiled(classes(), share)
        assert ask(holdout, predictions, claim=float(np.mean(predictions == classes()))).agrees
    with pytest.raises(BudgetError, match="all its questions"):
        ask(holdout, spoiled(classes(), 0.5), claim=0.5)


def text_ids(ids):
    return [f"person-{number}" for number in ids]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (text_ids(range(ROWS - 1)), "column 'id' lacks ids"),
        (text_ids([*range(ROWS - 1), 0]), "column 'id' has an id more than once"),
        (text_ids([*range(ROWS - 1), ROWS]), "column 'id' has ids that the holdout does not have"),
        (text_ids(range(ROWS + 1)), "column 'id' has ids that the holdout does not have"),
        ([*text_ids(range(ROWS - 1)), ""], "column 'id' has rows without an id"),
    ],
)
def test_ids_that_do_not_fit_cost_nothing(folder, ids, message):
    holdout = make(folder, ids=text_ids(range(ROWS)))
    with pytest.raises(ContentError, match=message) as caught:
        holdout.score(ids=ids, predictions=np.zeros(len(ids)))
    assert "person" not in str(caught.value)
    with pytest.raises(ContentError, match="differ in length"):
        holdout.score(ids=ids, predictions=[1])
    assert holdout.status()["asked"] == 0


def test_predictions_that_do_not_fit_cost_nothing(folder):
    labels = np.random.default_rng(0).normal(size=ROWS)
    holdout = make(folder, labels=labels, metric="squared-error", bound=4.0)
    for bad in ("a secret", "nan", "inf", ""):
        with pytest.raises(ContentError, match="column 'prediction' must hold finite numbers only") as caught:
            holdout.score(ids=range(ROWS), predictions=[bad, *labels[1:]])
        assert "secret" not in str(caught.value)
    for claim in (-0.1, 4.1, float("nan")):
        with pytest.raises(ArgumentError, match="claim"):
            ask(holdout, labels, claim=claim)
    assert holdout.status()["asked"] == 0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"labels": ["SECRET", *classes()[1:]], "metric": "absolute-error", "bound": 1}, ContentError, "'label'"),
        ({"labels": ["", *classes()[1:]]}, ContentError, "rows without a label"),
        ({"ids": [7] * ROWS}, ContentError, "'id' has an id more than once"),
        ({"labels": classes()[1:]}, ContentError, "differ in length"),
        ({"labels": [1] * ROWS, "metric": "auc", "positive": 1}, ContentError, "two classes"),
        ({"metric": "auc"}, ArgumentError, "positive is needed"),
        ({"positive": 1}, ArgumentError, "positive is not taken"),
        ({"metric": "squared-error"}, ArgumentError, "bound is needed"),
        ({"bound": 1.0}, ArgumentError, "bound is not taken"),
        ({"metric": "f2"}, ArgumentError, "metric must be one of"),
        ({"questions": 10**6, "answers": 10**6}, ArgumentError, "no mechanism is certified"),
        ({"answers": 21}, ArgumentError, "answers"),
        ({"failure_probability": 0.0}, ArgumentError, "failure_probability"),
        ({"tolerance": 0.0}, ArgumentError, "tolerance"),
    ],
)
def test_what_cannot_be_made(folder, changes, error, message):
    with pytest.raises(error, match=message) as caught:
        make(folder, **changes)
    assert "SECRET" not in str(caught.value)
    assert not (folder / "labels.holdout").exists()


def test_classes_are_numbers_or_texts(folder):
    numeric = make(folder)
    exact = [f"{label}.0" if place % 2 else label for place, label in enumerate(classes())]
    assert ask(numeric, exact).value == 1.0
    assert ask(numeric, ["elephant"] * ROWS).value == 0.0  # an unknown class is wrong, and no error tells which exist
    texts = make(folder / "state", labels=np.where(classes() == 1, "dog", "cat"))
    assert ask(texts, np.where(classes() == 1, "dog", "Cat")).value == pytest.approx(
        np.mean(classes() == 1), abs=texts.terms.plan.tolerance
    )


def test_how_a_row_is_read_does_not_depend_on_the_others(folder):
    """One row of another kind changes the score by that row only; noise for one row must be enough."""
    for number, odd in enumerate(["1", "abc", "nan", "1_0", "1e400", str(2**60)]):
        holdout = make(folder / str(number), labels=[odd, *["1"] * (ROWS - 1)])
        scored = holdout._scored(holdout.terms.metric, holdout._places, ["1.0", *["True"] * (ROWS - 1)], "prediction")
        assert scored.total() >> 30 == ROWS - (odd != "1")


@pytest.mark.cases(1)
@pytest.mark.parametrize("epsilon", [None, 1.0])
def test_what_is_in_the_clear_does_not_depend_on_labels(folder, epsilon):
    seen = []
    rows = 8000
    for name, share in (("a", 0.3), ("b", 0.4)):
        labels = np.where(np.random.default_rng(0).random(rows) < share, "cat", "a long name of a class")
        for metric, positive in (("accuracy", None), ("auc", "cat")):
            if metric == "auc" and epsilon is None:
                continue  # how many rows the rarer class has is public then
            where = folder / f"{name}-{metric}"
            holdout = make(where, ids=range(rows), labels=labels, metric=metric, positive=positive, epsilon=epsilon)
            with closing(sqlite3.connect(where / "labels.holdout")) as file:
                seen.append((metric, holdout.status(), file.execute("SELECT length(sealed) FROM about").fetchone()))
    half = len(seen) // 2
    assert seen[:half] == seen[half:]


@pytest.mark.full
def test_privacy_is_told_at_the_delta_that_was_asked_for(folder):
    make(folder, epsilon=1.0, delta=1e-9, failure_probability=0.2)
    told = Holdout.open(folder / "labels.holdout").status()["row_privacy"]
    assert told["delta"] == 1e-9
    assert 0.0 < told["epsilon"] <= 1.0


def test_a_perfect_score_is_shown_as_one(folder):
    assert ask(make(folder), classes()).value == 1.0


def test_bounded_errors_are_in_their_unit(folder):
    labels = np.random.default_rng(0).normal(size=ROWS)
    holdout = make(folder, labels=labels, metric="absolute-error", bound=5.0)
    predictions = labels + np.where(np.arange(ROWS) < 100, 1000.0, 0.5)
    exact = np.mean(np.minimum(np.abs(labels - predictions), 5.0))
    found = ask(holdout, predictions)
    assert found.value == pytest.approx(exact, abs=5 * holdout.terms.plan.tolerance)
    assert found.interval[0] < exact < found.interval[1] <= 5.0
    assert ask(holdout, predictions, claim=round(exact, 2)).agrees


@pytest.mark.cases(1)
@pytest.mark.parametrize("epsilon", [None, 2.0])
def test_areas_under_the_curve(folder, epsilon):
    rows = 20_000
    generator = np.random.default_rng(4)
    labels = generator.random(rows) < 0.3
    scores = generator.normal(size=rows) + labels
    holdout = make(
        folder, ids=range(rows), labels=np.where(labels, "sick", "well"), metric="auc", positive="sick", epsilon=epsilon
    )
    found = holdout.score(ids=range(rows), predictions=scores)
    if epsilon is None:
        assert found.value == pytest.approx(0.7602, abs=0.02)  # Phi(1/sqrt 2); four deviations
    else:
        size = holdout.terms.plan.subsample_size
        fresh = [
            area_under_curve(part < 0.3, generator.normal(size=size) + (part < 0.3))
            for part in generator.random((4000, size))
        ]
        assert np.quantile(fresh, 0.25) <= found.value <= np.quantile(fresh, 0.75)
    assert holdout.terms.plan.mechanism == ("counting" if epsilon is None else "blocks")
    assert (found.interval is None) == (epsilon is not None)
    assert holdout.score(ids=range(rows), predictions=scores, claim=found.value).agrees


@pytest.mark.full
def test_private_checks(folder):
    """Each answer is within its bound but for the stated chance of a thirtieth of 1e-6."""
    rows = 50_000
    labels = np.random.default_rng(0).integers(0, 2, rows)
    public = {"ids": range(rows), "labels": labels, "epsilon": 1.0, "questions": 200, "answers": 3}
    holdout = make(folder, **public, failure_probability=1e-6)
    plan = holdout.terms.plan
    assert plan.mechanism == "checked"
    assert plan.row_privacy.delta(1.0) <= 1e-6
    left = 200
    for share in (0.1, 0.2, 0.3, 0.4):
        predictions = spoiled(labels, share)
        exact = float(np.mean(predictions == labels))
        for shift in (-0.9, 0.0, 0.9):
            found = holdout.score(ids=range(rows), predictions=predictions, claim=exact + shift * plan.slack)
            left -= 1
            assert (found.agrees, found.questions_left, found.answers_left) == (True, left, 3)
            assert found.interval[0] < 1 - share < found.interval[1]
        holdout = Holdout.open(folder / "labels.holdout")  # the run continues, in another process or in this
    for lefts, claim in ((2, exact + 1.01 * plan.claim_error), (1, exact - 1.01 * plan.claim_error), (0, None)):
        found = holdout.score(ids=range(rows), predictions=predictions, claim=claim)
        assert not found.agrees
        assert found.answers_left == lefts
        assert abs(found.value - exact) <= plan.answer_error
        assert found.interval[0] < 0.6 < found.interval[1]


def test_many_threads_on_one_holdout(folder):
    holdout = make(folder)
    asked = [spoiled(classes(), 0.5, seed=number % 4) for number in range(12)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda predictions: ask(holdout, predictions, claim=0.5), asked))
    assert sum(not one.repeated for one in found) == holdout.status()["asked"] == 4


@pytest.mark.full
def test_a_ledger_is_charged_for_all_of_it_before_there_is_a_file(folder):
    with Ledger.open(folder / "ledger.db") as record:
        budget = record.create_budget("labels", epsilon=1, delta="1e-5", delta_each="1e-6", adjacency="replace_one")
        holdout = make(folder, spender=budget, epsilon=0.6)
        spent = float(budget.spent().epsilon)
        assert spent == pytest.approx(holdout.terms.plan.row_privacy.epsilon(1e-6), rel=1e-6)
        assert 0.0 < spent <= 0.6
        with pytest.raises(BudgetError):
            Holdout.create(
                folder / "second.holdout",
                HoldoutLabels(ids=range(ROWS), labels=classes()),
                HoldoutRequest(metric="accuracy", questions=400, answers=400, failure_probability=0.25, epsilon=0.9),
                spender=budget,
            )
        assert not (folder / "second.holdout").exists()
        with pytest.raises(ArgumentError, match="a ledger needs epsilon"):
            Holdout.create(
                folder / "third.holdout",
                HoldoutLabels(ids=range(ROWS), labels=classes()),
                HoldoutRequest(metric="accuracy", questions=4, answers=4, failure_probability=0.05),
                spender=budget,
            )


def test_nothing_in_the_clear(folder):
    labels = [f"CLASS-{label}" for label in classes()]
    holdout = make(folder, labels=labels, ids=[f"PERSON-{number}" for number in range(ROWS)])
    holdout.score(ids=[f"PERSON-{number}" for number in range(ROWS)], predictions=["CLASS-1"] * ROWS)
    everything = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"CLASS" not in everything
    assert b"PERSON" not in everything
    assert repr(holdout) == "<Holdout accuracy, counting>"


def test_a_restored_file_tells_the_same_and_has_less_left(folder):
    holdout = make(folder, mechanism="gaussian", answers=20)
    ask(holdout, spoiled(classes(), 0.1))
    shutil.copy2(folder / "labels.holdout", folder / "old")
    second = ask(holdout, spoiled(classes(), 0.2))
    shutil.copy2(folder / "old", folder / "labels.holdout")
    again = ask(Holdout.open(folder / "labels.holdout"), spoiled(classes(), 0.2))
    assert again.value == second.value  # the noise is a function of the question
    assert (second.questions_left, again.questions_left) == (18, 17)


def test_what_is_no_holdout(folder):
    (folder / "x").write_text("id,label\n")
    for name in ("x", "missing"):
        with pytest.raises(StudyError):
            Holdout.open(folder / name)
