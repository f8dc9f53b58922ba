"""A search that is killed and continues, or is refused: one draw, one charge, one released value."""

from __future__ import annotations

import base64

import pytest

from dpselect.errors import StudyError
from dpselect.privacy import pure_dp
from dpselect.repetitions import Harmonic
from dpselect.tuning import (
    SearchFinishedError,
    Uniform,
)
from dpselect.tuning.supervised import perform
from tests.budgets import budget_at
from tests.tuning.tuner_cases import LIMIT, noisy, search

pytestmark = pytest.mark.usefixtures("state")


class Stopped(BaseException):
    """Stands in for a kill inside one process."""


def search_killed_at(count, monkeypatch, **options):
    calls = []

    def killed(job, index, key):
        calls.append(index)
        if len(calls) == count:
            raise Stopped
        return perform(job, index, key)

    with monkeypatch.context() as patch:
        patch.setattr("dpselect.tuning.executors.perform", killed)
        with pytest.raises(Stopped):
            search(**options)


@pytest.mark.parametrize("count", [1, 2, LIMIT])
def test_resume_gives_the_same_release(tmp_path, drawn, monkeypatch, count):
    drawn(LIMIT)
    budget = budget_at(tmp_path / "b.db")
    options = {"store": tmp_path / "s.db", "ledger": budget}
    search_killed_at(count, monkeypatch, **options)
    monkeypatch.setattr(Harmonic, "sample", lambda *_, **__: pytest.fail("drawn again"))
    result = search(resume=True, random=None, **options)
    monkeypatch.undo()
    drawn(LIMIT)
    assert result.params == search().params
    assert result.replayable
    assert float(budget.spent().epsilon) == result.guarantee.epsilon(0.0)


def test_a_trial_that_kills_the_process_is_replayed_three_times(tmp_path, drawn, monkeypatch):
    drawn(1)
    attempts = []

    def deadly(job, index, key):
        attempts.append(key)
        raise Stopped

    monkeypatch.setattr("dpselect.tuning.executors.perform", deadly)
    for resume in (False, True, True, True):
        with pytest.raises(Stopped):
            search(store=tmp_path / "s.db", resume=resume)
    result = search(store=tmp_path / "s.db", resume=True)
    assert result.params is None
    assert len(attempts) == 4
    assert len(set(attempts)) == 1


def test_an_interruption_counts_against_no_trial(tmp_path, drawn):
    drawn(1)
    attempts = []

    def interrupted(params, random):
        attempts.append(params["x"])
        if len(attempts) < 7:
            raise KeyboardInterrupt
        return noisy(params, random)

    for number in range(6):
        with pytest.raises(KeyboardInterrupt):
            search(interrupted, store=tmp_path / "s.db", resume=number > 0)
    assert search(interrupted, store=tmp_path / "s.db", resume=True).params["x"] == attempts[0]
    assert len(set(attempts)) == 1


def test_a_failed_release_is_tried_again_with_the_same_result(tmp_path, state):
    seen = []

    def release(result):
        seen.append((result.params, result.value))
        if len(seen) < 3:
            raise OSError("disk full")

    for resume in (False, True):
        with pytest.raises(OSError, match="disk full"):
            search(store=tmp_path / "s.db", release=release, resume=resume)
    assert len(list(state.iterdir())) == 1
    search(store=tmp_path / "s.db", release=release, resume=True)
    assert seen[0] == seen[1] == seen[2]
    assert list(state.iterdir()) == []


def test_a_finished_search_says_so(tmp_path):
    search(store=tmp_path / "s.db")
    with pytest.raises(SearchFinishedError, match="done"):
        search(store=tmp_path / "s.db", resume=True)
    with pytest.raises(StudyError, match="already holds"):
        search(store=tmp_path / "s.db")


@pytest.mark.parametrize(
    "change",
    [
        {"space": {"x": Uniform(0.0, 2.0)}},
        {"base": pure_dp(epsilon=0.4)},
        {"base": pure_dp(epsilon=0.5, adjacency="replace_one")},
        {"repetitions": Harmonic(limit=LIMIT + 1)},
        {"payload_bytes": 1000},
        {"declare_score": True},
        {"constant_runs": True},
        {"slots": 9},
        {"fingerprint": "other"},
        {"key_variable": "TUNER_TEST_KEY"},
        {"ledger": True},
    ],
)
def test_a_changed_study_is_not_resumed(tmp_path, drawn, monkeypatch, change):
    monkeypatch.setenv("TUNER_TEST_KEY", base64.b64encode(b"k" * 32).decode())
    drawn(2)
    search_killed_at(1, monkeypatch, store=tmp_path / "s.db")
    if "ledger" in change:
        change = {"ledger": budget_at(tmp_path / "b.db")}
    named = {"payload_bytes": "shape", "slots": "shape", "ledger": "options", "declare_score": "options"}
    named |= {"constant_runs": "options"}
    changes = ", ".join(sorted({named.get(name, name) for name in change}))
    with pytest.raises(StudyError, match=f"changed .* was begun: {changes}"):
        search(store=tmp_path / "s.db", resume=True, **change)


def test_of_several_fingerprints_the_one_that_changed_is_named(tmp_path, drawn, monkeypatch):
    drawn(2)
    marks = {"code": "1", "table": "people"}
    search_killed_at(1, monkeypatch, store=tmp_path / "s.db", fingerprint=marks)
    with pytest.raises(StudyError, match="was begun: code; it"):
        search(store=tmp_path / "s.db", resume=True, fingerprint={**marks, "code": "2"}, base=pure_dp(epsilon=0.4))


def test_a_key_in_a_variable(tmp_path, monkeypatch, state):
    with pytest.raises(StudyError, match="TUNER_TEST_KEY"):
        search(store=tmp_path / "s.db", key_variable="TUNER_TEST_KEY")
    assert not (tmp_path / "s.db").exists()
    monkeypatch.setenv("TUNER_TEST_KEY", base64.b64encode(b"k" * 32).decode())
    assert search(store=tmp_path / "s.db", key_variable="TUNER_TEST_KEY").key_variable == "TUNER_TEST_KEY"
    assert not state.exists()
    with pytest.raises(SearchFinishedError):
        search(store=tmp_path / "s.db", key_variable="TUNER_TEST_KEY", resume=True)
