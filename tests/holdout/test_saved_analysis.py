"""An adaptive analysis on disk: the same answers in every process, an exposure that never goes back."""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest

from dpselect.adaptive import AdaptiveAnalysis
from dpselect.errors import ArgumentError, BudgetError, ContentError, ForkedSourceError, StudyError
from dpselect.holdout import SavedAnalysis
from dpselect.ledger import Ledger
from dpselect.storage import durable

ROWS = np.random.default_rng(1).normal(0.3, 1.0, 60_000)
TERMS = {"queries": 4, "subsample_size": 10, "failure_probability": 0.1, "grid_size": 2001}
FINE = {**TERMS, "subsample_size": 2, "verifications": 20, "refusals": 3}
GRID = {"lower": -10, "upper": 10, "granularity": 0.01}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "rows.analysis"


def opened(path, **options):
    return SavedAnalysis.open(path, ROWS, **options)


@pytest.mark.full
def test_answers_last(path):
    first = SavedAnalysis.create(path, ROWS, **TERMS)
    mean = first.estimate("mean", np.mean, **GRID)
    assert opened(path).estimate("mean", np.mean, **GRID).value == mean.value
    other = opened(path).estimate("median", np.median, **GRID)
    assert first.estimate("median", np.median, **GRID).value == other.value
    assert first.remaining == opened(path).remaining == 2
    assert abs(mean.value - 0.3) < 3 / 10**0.5
    assert not mean.replayable
    assert first.certificate.statement == AdaptiveAnalysis(ROWS, **TERMS).certificate.statement


@pytest.mark.full
def test_a_choice_is_a_question(path):
    analysis = SavedAnalysis.create(path, ROWS, **TERMS)
    candidates = {"low": lambda part: -1.0, "high": lambda part: 1.0 + np.mean(part) * 0}
    assert analysis.choose("which", candidates).value == "high"
    assert opened(path).choose("which", candidates).value == "high"
    assert analysis.remaining == 3
    with pytest.raises(ArgumentError, match="texts as keys"):
        analysis.choose("other", {1: np.mean})


@pytest.mark.full
def test_it_stops(path):
    analysis = SavedAnalysis.create(path, ROWS, **TERMS)
    for name in "abcd":
        analysis.estimate(name, np.mean, **GRID)
    with pytest.raises(BudgetError):
        opened(path).estimate("e", np.mean, **GRID)
    assert opened(path).estimate("a", np.mean, **GRID).value == analysis.estimate("a", np.mean, **GRID).value


@pytest.mark.full
def test_a_restart_closes_the_run_of_verifications(path):
    analysis = SavedAnalysis.create(path, ROWS, **FINE)
    assert analysis.refusals_left == 3
    assert analysis.verify("mean", np.mean, 0.3, axis=True).value
    assert analysis.verify("mean", np.mean, 0.31, axis=True).value
    assert analysis.refusals_left == 3  # its own run is still open
    again = opened(path)
    assert again.refusals_left == 2
    assert again.verify("mean", np.mean, 0.3, axis=True).value  # from the record, no run
    assert again.refusals_left == 2
    assert again.verify_or_correct("mean", np.mean, 5.0, axis=True, **GRID).value.agrees is False
    assert again.refusals_left == 1
    assert analysis.verify("far", np.mean, 5.0, axis=True).value is False  # in the first process's run, already counted
    assert opened(path).verify("near", np.mean, 0.29, axis=True).value
    with pytest.raises(BudgetError, match="runs of verifications"):
        analysis.verify("near", np.mean, 0.28, axis=True)


@pytest.mark.full
def test_the_number_of_verifications_is_counted_over_processes(path):
    analysis = SavedAnalysis.create(path, ROWS, **{**FINE, "verifications": 2})
    analysis.verify("a", np.mean, 0.3, axis=True)
    opened(path).verify("b", np.mean, 0.3, axis=True)
    with pytest.raises(BudgetError, match="all 2 verifications"):
        analysis.verify("c", np.mean, 0.3, axis=True)


@pytest.mark.full
def test_a_crash_before_the_record_costs_nothing_and_changes_nothing(path, monkeypatch):
    analysis = SavedAnalysis.create(path, ROWS, **TERMS)
    shown = []

    def estimator(part):
        return np.mean(part)

    def full(connection):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(durable, "commit", full)
        with pytest.raises(KeyboardInterrupt):
            shown.append(analysis.estimate("mean", estimator, **GRID))
    assert shown == []
    assert opened(path).remaining == 4
    twin = path.with_name("twin.analysis")
    shutil.copy2(path, twin)
    value = opened(path).estimate("mean", estimator, **GRID).value
    assert opened(path).estimate("mean", estimator, **GRID).value == value


@pytest.mark.full
def test_a_crash_during_a_verification_ends_its_run(path, monkeypatch):
    analysis = SavedAnalysis.create(path, ROWS, **FINE)
    analysis.verify("a", np.mean, 0.3, axis=True)

    count = []

    def full(connection):
        count.append(1)
        if len(count) == 2:  # the first is of looking for the answer
            raise KeyboardInterrupt
        connection.execute("COMMIT")

    with monkeypatch.context() as patch:
        patch.setattr(durable, "commit", full)
        with pytest.raises(KeyboardInterrupt):
            analysis.verify("b", np.mean, 0.31, axis=True)
    assert analysis.refusals_left == 2
    assert analysis.verify("b", np.mean, 0.31, axis=True).value


@pytest.mark.full
def test_an_older_copy_cannot_lower_the_exposure(path):
    analysis = SavedAnalysis.create(path, ROWS, **FINE)
    analysis.estimate("a", np.mean, axis=True, **GRID)
    old = path.with_suffix(".old")
    shutil.copy2(path, old)
    analysis.estimate("b", np.mean, axis=True, **GRID)
    analysis.verify("c", np.mean, 0.3, axis=True)
    shutil.copy2(old, path)
    again = opened(path)
    assert again.remaining == 2  # as before
    assert again.refusals_left == 2


@pytest.mark.full
def test_a_ledger_is_charged_question_by_question(path):
    with Ledger.open(path.with_name("ledger.db")) as record:
        budget = record.create_budget("rows", epsilon=100, delta="1e-4", delta_each="1e-6", adjacency="replace_one")
        analysis = SavedAnalysis.create(path, ROWS, **FINE, spender=budget)
        analysis.estimate("a", np.mean, axis=True, **GRID)
        one = float(budget.spent().epsilon)
        assert one == pytest.approx(analysis.certificate.answer.epsilon(1e-6), rel=1e-6)
        opened(path, spender=budget).estimate("a", np.mean, axis=True, **GRID)
        assert float(budget.spent().epsilon) == one
        analysis.verify("a", np.mean, 0.3, axis=True)
        analysis.verify("a", np.mean, 0.31, axis=True)
        run = analysis.certificate.verification.epsilon
        assert float(budget.spent().epsilon) == pytest.approx(one + run, rel=1e-6)


@pytest.mark.full
def test_a_file_and_a_state_folder_that_are_put_back_pay_for_another_run(path, tmp_path):
    """The answers of a run of verifications are in no file: another run has a charge of its own."""
    with Ledger.open(tmp_path / "ledger.db", witness=False) as record:
        budget = record.create_budget("rows", epsilon=100, delta="1e-4", delta_each="1e-6", adjacency="replace_one")
        SavedAnalysis.create(path, ROWS, **FINE, spender=budget)
        shutil.copytree(tmp_path / "state", tmp_path / "old-state")
        shutil.copy2(path, tmp_path / "old")
        opened(path, spender=budget).verify("a", np.mean, 0.3, axis=True)
        one = budget.spent().epsilon
        shutil.rmtree(tmp_path / "state")
        shutil.copytree(tmp_path / "old-state", tmp_path / "state")
        shutil.copy2(tmp_path / "old", path)
        opened(path, spender=budget).verify("b", np.mean, 0.31, axis=True)
        assert budget.spent().epsilon == 2 * one


def test_other_data_are_refused(path):
    SavedAnalysis.create(path, ROWS, **TERMS)
    with pytest.raises(ContentError, match="the same rows"):
        SavedAnalysis.open(path, ROWS[::-1])


def test_wrong_use(path):
    with pytest.raises(TypeError, match="has no argument colour"):
        SavedAnalysis.create(path, ROWS, **TERMS, colour="red")
    with pytest.raises(ArgumentError, match="blocks"):
        SavedAnalysis.create(path, ROWS[:100], **TERMS)
    assert not path.exists()
    analysis = SavedAnalysis.create(path, ROWS, **TERMS)
    with pytest.raises(ArgumentError, match="no verification"):
        analysis.verify("a", np.mean, 0.3, axis=True)
    with pytest.raises(ArgumentError, match="grid has"):
        analysis.estimate("a", np.mean, lower=-100, upper=100, granularity=0.01)
    with pytest.raises(ArgumentError, match="question must be a text"):
        analysis.estimate(3, np.mean, **GRID)
    assert analysis.remaining == 4
    with pytest.raises(StudyError, match="exists already"):
        SavedAnalysis.create(path, ROWS, **TERMS)
    assert b"0x" not in repr(analysis).encode()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_must_open_it_again(path):
    analysis = SavedAnalysis.create(path, ROWS, **TERMS)
    child = os.fork()
    if child == 0:
        try:
            analysis.estimate("a", np.mean, **GRID)
        except ForkedSourceError:
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
