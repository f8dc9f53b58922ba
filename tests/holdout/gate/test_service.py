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
from dpselect.holdout.gate import service
from dpselect.holdout.gate.outcomes import Layout

TASKS = 200
QUICK = GateRules(answer_seconds=0)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def half():
    return {f"t{i}": i % 2 for i in range(TASKS)}


def better(share=10):
    """Solves all tasks but one of each `share`."""
    return {f"t{i}": int(i % share > 0) for i in range(TASKS)}


def worse():
    return {f"t{i}": 0 for i in range(TASKS)}


def make(folder, outcomes=None, name="my.gate", **options):
    rules = options.pop("rules", {})
    rules = GateRules(**{"answer_seconds": 0, **rules})
    return Gate.create(folder / name, half() if outcomes is None else outcomes, rules=rules, **options)


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
    with pytest.raises(BudgetError, match="purse of this gate is empty"):
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


# ---- 2: the form alone makes a submission valid ----------------------------------------------------------------------

NO_OUTCOMES = [None, "", "nan", float("nan"), float("inf"), -1, 1.5, "solved", "1_0", b"1", [], {}, object(), 10**400]


@pytest.mark.cases(12)
@pytest.mark.parametrize("value", NO_OUTCOMES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("test", ["sign", "bet"])
def test_what_is_no_outcome_is_a_failure_and_charged(folder, value, test):
    gate = make(folder, rules={"test": test})
    given = dict.fromkeys(half(), value if value != [] else [None])
    assert not gate.ask(given, candidate="a")
    assert gate.purse < 0.05
    assert not gate.ask(lambda: given, candidate="b")
    assert gate.status()["asked"] == 2


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


@pytest.mark.parametrize("wrong", [None, 5, [0, 1], "outcomes"])
def test_outcomes_that_are_no_mapping(folder, wrong):
    with pytest.raises(TypeError, match="outcomes"):
        make(folder).ask(wrong)
    with pytest.raises((TypeError, ContentError), match="outcomes"):
        Gate.create(folder / "b.gate", wrong)


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


# ---- 6: declared when the gate is made -------------------------------------------------------------------------------


def test_clusters_count_once(folder):
    """Twenty clusters of ten tasks each: what wins in three clusters has won three times, not thirty."""
    names = [f"t{i}" for i in range(TASKS)]
    candidate = {name: int(i < 30) for i, name in enumerate(names)}
    nothing = dict.fromkeys(names, 0)
    assert make(folder, nothing, name="a.gate").ask(candidate)
    clusters = {name: f"c{i // 10}" for i, name in enumerate(names)}
    gate = make(folder, nothing, name="b.gate", clusters=clusters)
    assert (gate.terms.tasks, gate.terms.units, gate.terms.test) == (200, 20, "bet")
    assert not gate.ask(candidate)
    assert gate.ask(dict.fromkeys(names, 1))


def test_a_margin(folder):
    gate = make(folder, rules={"margin": 0.3})
    assert gate.terms.test == "bet"
    assert not gate.ask({name: 1 if i % 4 < 2 or value else 0 for i, (name, value) in enumerate(half().items())})
    assert gate.ask(dict.fromkeys(half(), 1))


def test_the_order_is_random_and_secret(folder):
    orders = [make(folder, name=f"{number}.gate")._layout.units for number in range(2)]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted((name,) for name in half())


def test_a_bet_in_the_order_of_the_file_would_be_void(folder, monkeypatch):
    """Equal systems on a sorted file of tasks: first those that the candidate wins. The gate's order saves it."""
    names = [f"t{i}" for i in range(TASKS)]
    incumbent = {name: 0.75 * (i >= 100) for i, name in enumerate(names)}
    candidate = {name: 0.75 * (i < 100) for i, name in enumerate(names)}
    assert not make(folder, incumbent).ask(candidate)  # by chance with probability 0.0025

    def as_given(ids, clusters, repeats, random):
        return Layout(tuple((name,) for name in ids), repeats)

    monkeypatch.setattr(service.Layout, "shuffled", staticmethod(as_given))
    assert make(folder, incumbent, name="sorted.gate").ask(candidate)


def test_what_is_declared_is_public_and_sealed(folder):
    gate = make(folder, consultations=7, rules={"margin": 0.1})
    status = gate.status()
    assert (status["margin"], status["test"], status["consultations"], status["tasks"]) == (0.1, "bet", 7, TASKS)
    assert status["purse"] == gate.purse == pytest.approx(0.05)
    with closing(sqlite3.connect(folder / "my.gate")) as file:
        (terms,) = file.execute("SELECT terms FROM about").fetchone()
        file.execute("UPDATE about SET terms = ?", (terms.replace('"margin": 0.1', '"margin": 0.0'),))
        file.commit()
    with pytest.raises(StudyError, match="was changed"):
        Gate.open(folder / "my.gate")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"rules": {"test": "sign", "margin": 0.1}}, "margin"),
        ({"rules": {"test": "guess"}}, "test"),
        ({"rules": {"margin": 1.0}}, "margin"),
        ({"rules": {"answer_seconds": -1}}, "answer_seconds"),
        ({"rules": {"id_column": "outcome"}}, "id_column"),
        ({"rules": {"outcome_columns": ()}}, "outcome_columns"),
        ({"rules": {"bound_failure_probability": 0}}, "bound_failure_probability"),
        ({"consultations": 0}, "consultations"),
        ({"failure_probability": 1.0}, "failure_probability"),
        ({"clusters": {"t1": "a"}}, "clusters"),
        ({"outcomes": {"a": 1}}, "outcomes"),
        ({"outcomes": {"a": 2, "b": 1}}, "outcomes"),
        ({"outcomes": {}}, "outcomes"),
        ({"outcomes": {"a": [0, 1], "b": 1}}, "outcomes"),
    ],
)
def test_a_gate_that_cannot_be_is_not_made(folder, options, named):
    with pytest.raises((ArgumentError, ContentError), match=named):
        make(folder, **options)
    assert not (folder / "my.gate").exists()


def test_so_few_tasks_that_nothing_could_be_accepted(folder):
    with pytest.raises(ArgumentError, match="it takes 5"):
        make(folder, dict.fromkeys("abcd", 0))
    assert make(folder, dict.fromkeys("abcde", 0)).ask(dict.fromkeys("abcde", 1), "all")


# ---- repeats and graders ---------------------------------------------------------------------------------------------


def test_repeats_are_means_and_claim_a_higher_mean(folder):
    outcomes = {name: [value, 0, 0.5] for name, value in half().items()}
    gate = make(folder, outcomes)
    assert (gate.terms.repeats, gate.terms.test) == (3, "bet")
    assert "mean" in gate.terms.claim
    assert gate.ask({name: np.array([1, 0.5, 0.5]) for name in outcomes})
    with pytest.raises(ContentError, match="3 of each task"):
        gate.ask(better())


def test_the_sign_test_on_repeats_has_another_claim(folder):
    outcomes = {name: [0.5, 0.5] for name in half()}
    gate = make(folder, outcomes, rules={"test": "wins"})
    assert "more likely to do better" in gate.terms.claim
    few_losses = {name: [0.6, 0.5] if i % 10 else [0, 0] for i, name in enumerate(outcomes)}
    assert gate.ask(few_losses)  # wins 180 small ones and loses 20 large ones: the mean is lower
    assert not make(folder, outcomes, name="b.gate").ask(few_losses)
    with pytest.raises(ArgumentError, match="sign"):
        make(folder, outcomes, name="c.gate", rules={"test": "sign"})


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
