"""The gate on disk: what it answers, and each thing that it must enforce, with what would happen without it."""

from __future__ import annotations

import json
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from dpselect.errors import ArgumentError, BudgetError, ContentError, StudyError
from dpselect.holdout import Gate, GateRules
from tests.holdout.gate.service_cases import TASKS, better, half, make


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


QUICK = GateRules(answer_seconds=0)


def worse():
    return {f"t{i}": 0 for i in range(TASKS)}


def test_what_is_better_is_accepted_and_is_then_the_incumbent(folder):
    gate = make(folder)
    assert gate.ask(better())
    assert not gate.ask(better())  # a tie
    assert not gate.ask(half())
    assert Gate.open(folder / "my.gate").ask(better(100), "all")
    assert gate.status()["accepted"] == 2


def test_default_stakes_and_own_stakes(folder):
    gate = make(folder, consultations=4, failure_probability=0.04)
    assert not gate.ask(worse())
    assert gate.purse == pytest.approx(0.03, rel=1e-12)
    assert not gate.ask(worse(), stake=0.02)
    assert gate.purse == pytest.approx(0.01, rel=1e-12)
    assert gate.ask(better(), 0.004)
    assert gate.purse == pytest.approx(0.004, rel=1e-12)
    assert gate.ask(better(50), "all")
    assert gate.purse == pytest.approx(0.004, rel=1e-12)
    assert not gate.ask(worse(), "all")
    with pytest.raises(BudgetError, match="error budget of this gate is empty"):
        gate.ask(better(200))
    assert [ask["verdict"] for ask in gate.status()["asks"]] == ["rejected"] * 2 + ["accepted"] * 2 + ["rejected"]


def test_more_than_the_planned_consultations(folder):
    gate = make(folder, consultations=2)
    assert gate.ask(better(5), "all")
    assert gate.ask(better(50), "all")
    assert gate.ask(dict.fromkeys(half(), 1), "all") is (0.5**4 <= 0.05)
    assert gate.status()["asked"] == 3


# ---- 1: charged first, then opened -----------------------------------------------------------------------------------


def test_an_ask_is_charged_on_disk_before_a_grader_is_called(folder):
    gate = make(folder)
    before = gate.purse
    found = []

    def grade():
        with closing(sqlite3.connect(f"file:{folder / 'my.gate'}?mode=ro", uri=True)) as file:
            found.append(file.execute("SELECT count(*) FROM entry").fetchone()[0])
        return better()

    assert gate.ask(grade)
    assert found == [1]
    assert gate.purse < before


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, SystemExit])
def test_whatever_ends_a_grader_refunds_nothing(folder, error):
    gate = make(folder)
    before, called = gate.purse, []

    def grade():
        called.append(1)
        raise error("secret")

    try:
        assert not gate.ask(grade, candidate="a")
    except KeyboardInterrupt:
        assert error is KeyboardInterrupt
        assert gate.status()["asks"][0]["verdict"] == "interrupted"
    assert called
    assert gate.purse < before
    left = gate.purse
    gate.ask(worse(), candidate="b")
    assert gate.purse < left


def test_an_interrupted_ask_is_not_answered_from_the_record(folder):
    gate = make(folder)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate.ask(interrupted, candidate="a")
    left = gate.purse
    assert gate.ask(better(), candidate="a")
    assert gate.purse < left


def test_the_pending_charge_is_in_the_counter(folder):
    """An older copy, restored amid an ask, does not bring the stake back."""
    gate = make(folder, consultations=2)
    shutil.copy2(folder / "my.gate", folder / "old")

    def restored():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gate.ask(restored)
    shutil.copy2(folder / "old", folder / "my.gate")
    assert Gate.open(folder / "my.gate").purse <= 0.025


def test_no_error_tells_which_outcomes_there_were(folder):
    """A hundred asks that fail on tasks that are solved: charged, so that the purse ends them."""
    gate = make(folder, consultations=5)
    for number in range(5):
        spoiled = {name: (value or "error") for name, value in better(2 + number).items()}
        gate.ask(lambda spoiled=spoiled: {name: float(value) for name, value in spoiled.items()})
    with pytest.raises(BudgetError):
        gate.ask(better())


def ids_changed():
    lacking = better()
    lacking.pop("t7")
    strange = {**lacking, "t200": 1}
    return {
        "lacking": lacking,
        "strange": strange,
        "more": {**better(), "t200": 1},
        "empty": {},
        "none": {**lacking, "": 1},
    }


@pytest.mark.parametrize("kind", ids_changed())
def test_a_malformed_submission_is_not_charged(folder, kind):
    gate = make(folder)
    with pytest.raises(ContentError, match="outcomes"):
        gate.ask(ids_changed()[kind])
    assert gate.status()["asked"] == 0
    assert gate.purse == pytest.approx(0.05)


def test_a_grader_that_leaves_tasks_out_is_charged_and_they_count_as_failures(folder):
    gate = make(folder)
    assert not gate.ask(lambda: {"t1": 1, "elsewhere": 1})
    assert gate.ask(lambda: {name: 1 for name in better() if name != "t7"})
    assert gate.status()["asked"] == 2


# ---- 3: one constant answer ------------------------------------------------------------------------------------------


def test_nothing_but_a_bit_comes_back_and_nothing_is_printed(folder, capfd):
    gate = make(folder)

    def loud():
        print("SHIBBOLETH")
        return better()

    assert gate.ask(loud) is True
    assert gate.ask(worse()) is False
    assert capfd.readouterr() == ("", "")
    assert "SHIBBOLETH" not in json.dumps(gate.status()) + json.dumps(gate.certificate()) + repr(gate)


@pytest.mark.parametrize("rules", [{"test": "sign"}, {"test": "bet"}, {"bound_failure_probability": 0.05}])
def test_accepted_and_rejected_leave_records_of_one_size(folder, rules):
    sizes = []
    for number, outcomes in enumerate((better(), worse(), half())):
        gate = make(folder, name=f"{number}.gate", rules=rules)
        gate.ask(outcomes)
        with closing(sqlite3.connect(folder / f"{number}.gate")) as file:
            sizes.append(file.execute("SELECT sequence, length(sealed) FROM entry").fetchall())
    assert len(sizes[0]) == 2
    assert sizes[0] == sizes[1] == sizes[2]


def test_nothing_of_the_outcomes_is_in_the_clear(folder):
    gate = make(folder, {f"SHIBBOLETH {i}": i % 2 for i in range(TASKS)})
    gate.ask({f"SHIBBOLETH {i}": 1 for i in range(TASKS)}, candidate="SHIBBOLETH")
    assert b"SHIBBOLETH" not in b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_answers_come_at_multiples_of_the_declared_time(folder):
    gate = make(folder, rules={"answer_seconds": 0.25})
    for outcomes in (better(), worse(), lambda: time.sleep(0.1) or worse()):
        begun = time.monotonic()
        gate.ask(outcomes, candidate="a" if outcomes is worse else None)
        taken = time.monotonic() - begun
        assert taken >= 0.25
        assert taken % 0.25 < 0.1


def test_all_tasks_are_graded_whatever_the_first_ones_say(folder, monkeypatch):
    read = []

    class Counted(float):
        def __float__(self):
            read.append(1)
            return float.__float__(self)

    gate = make(folder)
    for value in (0.0, 1.0):
        read.clear()
        gate.ask(dict.fromkeys(half(), Counted(value)))
        assert len(read) == TASKS


def test_no_ask_is_refused_for_the_discordance_that_was_seen(folder):
    gate = make(folder)
    assert not gate.ask(half())  # no discordant task at all
    assert gate.status()["asked"] == 1


# ---- 4: pairs by content ---------------------------------------------------------------------------------------------


def test_the_same_candidate_against_the_same_incumbent_is_answered_from_the_record(folder):
    gate = make(folder)
    assert not gate.ask(worse(), candidate="a")
    left = gate.purse
    assert not gate.ask(better(), candidate="a")  # no matter what its outcomes are said to be now

    def never():
        raise AssertionError

    assert not Gate.open(folder / "my.gate").ask(never, candidate=b"a")
    assert gate.purse == left
    assert gate.ask(better(), candidate="b")
    assert gate.ask(never, candidate="b")
    left = gate.purse
    gate.ask(worse(), candidate="a")  # another incumbent
    assert gate.purse < left


def test_equal_outcomes_without_a_name_are_charged(folder):
    """Whether an ask is charged is public, so it must not depend on outcomes (docs/theory/gate.md)."""
    gate = make(folder)
    for number in range(3):
        left = gate.purse
        assert not gate.ask(worse(), candidate=None if number < 2 else "another name")
        assert gate.purse < left


# ---- 5: drift of the grader ------------------------------------------------------------------------------------------


def test_a_declared_gate_needs_the_incumbent_graded_again(folder):
    gate = make(folder, rules={"regraded": True})
    with pytest.raises(ArgumentError, match="incumbent is needed"):
        gate.ask(better())
    assert gate.purse == pytest.approx(0.05)
    assert not gate.ask(better(), incumbent=better())  # the grader has become kinder to both
    assert gate.ask(better(), incumbent=lambda: half())
    with pytest.raises(ArgumentError, match="incumbent is not taken"):
        make(folder, name="b.gate").ask(better(), incumbent=half())


def test_the_order_is_random_and_secret(folder):
    orders = [make(folder, name=f"{number}.gate")._layout.units for number in range(2)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted((name,) for name in half())


def test_so_few_tasks_that_nothing_could_be_accepted(folder):
    with pytest.raises(ArgumentError, match="it takes 5"):
        make(folder, dict.fromkeys("abcd", 0))
    assert make(folder, dict.fromkeys("abcde", 0)).ask(dict.fromkeys("abcde", 1), "all")


# ---- state -----------------------------------------------------------------------------------------------------------


def test_a_restored_copy_does_not_bring_the_purse_back(folder):
    gate = make(folder, consultations=5)
    shutil.copy2(folder / "my.gate", folder / "old")
    for _ in range(3):
        gate.ask(worse())
    left = gate.purse
    for _ in range(3):
        shutil.copy2(folder / "old", folder / "my.gate")
        restored = Gate.open(folder / "my.gate")
        assert restored.purse <= left
        assert restored.status()["restored"] == 1
        assert restored.status()["asked"] == 3
    assert restored.purse == pytest.approx(left, rel=1e-5)


def test_a_restored_copy_of_a_retired_gate_stays_closed(folder):
    gate = make(folder, rules={"bound_failure_probability": 0.05})
    shutil.copy2(folder / "my.gate", folder / "old")
    gate.ask(better())
    gate.retire()
    shutil.copy2(folder / "old", folder / "my.gate")
    with pytest.raises(BudgetError):
        Gate.open(folder / "my.gate").ask(better(100))


def test_bounds_in_the_end(folder):
    gate = make(folder, rules={"bound_failure_probability": 0.05})
    assert gate.ask(better(), 0.03)
    assert gate.ask(better(100), "all")
    assert not gate.ask(worse(), 0.001)
    first, second = gate.retire()
    assert 0.2 < first < 0.4  # 0.4 was observed
    assert 0.0 <= second < 0.09
    assert Gate.open(folder / "my.gate").retire() == [first, second]
    with pytest.raises(BudgetError, match="retired"):
        gate.ask(better())
    assert gate.purse == 0.0
    with pytest.raises(ArgumentError, match="bound_failure_probability"):
        make(folder, name="b.gate").retire()


def test_tiny_purses(folder):
    gate = make(folder, half(), failure_probability=1e-12)
    assert gate.ask(better(), 1e-12)
    for _ in range(5):
        gate.ask(better(), gate.purse * 1e-9 or "all", candidate=None)
    assert gate.status()["log_purse"] < np.log(1e-12)


def test_another_kind_of_record_is_refused(folder):
    Path(folder / "x").write_text("no gate")
    with pytest.raises(StudyError):
        Gate.open(folder / "x")
