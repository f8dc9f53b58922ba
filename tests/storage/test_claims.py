"""Copies of a search, restored backups, two machines on one ledger: one reservation pays for one release."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys

import pytest

from dpselect.errors import ClaimError, StudyError, UnwitnessedSearchWarning
from dpselect.ledger import Ledger
from dpselect.privacy import paying, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic
from dpselect.storage import durable
from dpselect.tuning import SearchFinishedError, SearchStore, TwoStageDesign, Uniform, sealed_store, tune
from dpselect.tuning.supervised import perform
from tests.budgets import budget_at, charges
from tests.ledger.test_contract import POSTGRES, empty_schema
from tests.storage import kill_copies

MODES = ("ledger", "folder", "plain", "none")


# -- histories


@pytest.fixture
def checker(monkeypatch):
    """`tests.storage.kill_copies` in this process, whose changes to the library are taken back."""
    for name in ("commit", "sync", "sync_content"):
        monkeypatch.setattr(durable, name, getattr(durable, name))
    monkeypatch.setattr(sealed_store.SealedStore, "__init__", sealed_store.SealedStore.__init__)
    for name in ("claim", "settle"):
        monkeypatch.setattr(paying.BoundPayment, name, getattr(paying.BoundPayment, name))
    for name in ("XDG_STATE_HOME", "COPIES_KEY"):
        monkeypatch.setenv(name, "")
    return kill_copies.reports


@pytest.mark.filterwarnings("ignore::dpselect.errors.NothingFoundWarning")
@pytest.mark.parametrize("mode", MODES)
def test_at_most_one_release_whatever_is_copied_killed_and_resumed(checker, tmp_path, mode):
    reports = list(checker(tmp_path, mode, 6, seed=3))
    assert [report["wrong"] for report in reports] == [[]] * 6


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::dpselect.errors.NothingFoundWarning")
@pytest.mark.parametrize("mode", [f"broken-{mode}" for mode in MODES])
def test_zoo_a_tuner_that_asks_nobody_is_caught(checker, tmp_path, mode):
    assert any(report["wrong"] for report in checker(tmp_path, mode, 60, seed=1))


def checked(folder, *arguments) -> tuple[int, int]:
    """How many histories ended well and how many kills there were; arguments of `tests.storage.kill_copies`."""
    command = [sys.executable, "-m", "tests.storage.kill_copies", str(folder), *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    reports = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [report for report in reports if report["wrong"]] == []
    return len(reports), sum(report["kills"] for report in reports)


@pytest.mark.full
@pytest.mark.parametrize("mode", [*MODES, "real-ledger"])
def test_a_hundred_histories(tmp_path, mode):
    assert checked(tmp_path, mode, 100, 5)[0] == 100


@pytest.mark.full
@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
@pytest.mark.parametrize("mode", ["ledger", "real-ledger"])
def test_a_hundred_histories_on_a_server(tmp_path, mode):
    with empty_schema() as server:
        assert checked(tmp_path, mode, 100, 6, server)[0] == 100


@pytest.mark.slow
@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_a_thousand_histories_on_a_server(tmp_path):
    with empty_schema() as server:
        assert checked(tmp_path, "ledger", 1000, 2028, server)[0] == 1000


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "count"), [("ledger", 5000), ("none", 2500), ("folder", 1500), ("plain", 1000)])
def test_ten_thousand_histories(tmp_path, mode, count):
    assert checked(tmp_path, mode, count, 2026)[0] == count


@pytest.mark.slow
def test_a_thousand_kills(tmp_path):
    _, kills = checked(tmp_path, "real-ledger", 1000, 2027)
    assert kills >= 1000


# -- one search, step by step


class Stopped(BaseException):
    """Stands in for a kill inside one process."""


def search(folder, *, ledger=None, released=None, rows=None, objective=None, **options):
    """A search in a folder that is begun or resumed; what it releases is added to `released`."""
    keep = [] if released is None else released

    def noisy(params, random):
        return float(random.laplace(1)[0]), (params["x"], random.bytes(8))

    folder.mkdir(exist_ok=True)
    return tune(
        objective or noisy,
        space={"x": Uniform(0.0, 1.0)},
        base=pure_dp(epsilon=0.25),
        repetitions=Harmonic(limit=3),
        store=SearchStore(
            path=folder / "s.db", resume=True, key_variable="COPIES_KEY", payload_bytes=200, rows_digest=rows
        ),
        ledger=ledger,
        release=lambda result: keep.append((result.params, result.value)),
        rehearse=False,
        **options,
    )


@pytest.fixture
def kept_key(monkeypatch, state):
    """A key that never goes, as that of a backup: calling this puts it back."""

    def put_back():
        monkeypatch.setenv("COPIES_KEY", base64.b64encode(b"k" * 32).decode())

    put_back()
    return put_back


def copies_at_every_write(tmp_path, monkeypatch, run) -> list:
    """Copies of the folder `tmp_path / "out"` from after every commit of `run()`."""
    made = []

    def commit(connection, real=durable.commit):
        real(connection)
        if (tmp_path / "out").exists():
            made.append(shutil.copytree(tmp_path / "out", tmp_path / f"copy{len(made)}"))

    with monkeypatch.context() as patch:
        patch.setattr(durable, "commit", commit)
        run()
    return made


@pytest.mark.parametrize("named", [True, False])
def test_copies_that_are_made_while_it_runs_release_nothing_more(tmp_path, monkeypatch, kept_key, named):
    """The output folder is copied again and again; the search ends; every copy is resumed."""
    budget, released = budget_at(tmp_path / "budget.db") if named else None, []
    made = copies_at_every_write(
        tmp_path, monkeypatch, lambda: search(tmp_path / "out", ledger=budget, released=released)
    )
    assert len(made) > 5
    spent = budget and budget.spent().epsilon
    ended = []
    for copy in made:
        kept_key()
        try:
            ended.append(search(copy, ledger=budget, released=released).value)
        except (ClaimError, SearchFinishedError) as error:
            ended.append(type(error))
    assert len(set(map(repr, released))) == 1
    assert {ClaimError, SearchFinishedError, released[0][1]} <= set(ended)
    if budget:
        assert budget.spent().epsilon == spent
        assert charges(tmp_path / "budget.db") == [True]


def killed_in_trial(folder, *, number=1, **options):
    """A search that is killed in its trial of this number."""
    begun = []

    def deadly(job, index, key):
        begun.append(index)
        if len(begun) == number:
            raise Stopped
        return perform(job, index, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpselect.tuning.executors.perform", deadly)
        with pytest.raises(Stopped):
            search(folder, **options)


@pytest.mark.usefixtures("kept_key")
def test_of_two_copies_that_run_at_once_the_one_that_was_resumed_last_releases(tmp_path, drawn):
    drawn(1)
    budget, released = budget_at(tmp_path / "budget.db"), []

    def overtaken(job, index, key):
        shutil.copytree(tmp_path / "out", tmp_path / "copy")
        killed_in_trial(tmp_path / "copy", ledger=budget)
        return perform(job, index, key)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("dpselect.tuning.executors.perform", overtaken)
        with pytest.raises(ClaimError, match="that copy alone may release"):
            search(tmp_path / "out", ledger=budget, released=released)
    assert released == []
    search(tmp_path / "copy", ledger=budget, released=released)
    assert len(released) == 1
    assert charges(tmp_path / "budget.db") == [True]


@pytest.mark.usefixtures("kept_key")
def test_two_machines_on_one_ledger(tmp_path, drawn, monkeypatch):
    """The state folder of the second knows nothing of the search."""
    drawn(1)
    budget, released = budget_at(tmp_path / "budget.db"), []
    killed_in_trial(tmp_path / "out", ledger=budget)
    shutil.copytree(tmp_path / "out", tmp_path / "copy")
    search(tmp_path / "out", ledger=budget, released=released)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("COPIES_KEY", base64.b64encode(b"k" * 32).decode())
    with pytest.raises(ClaimError, match="has released already"):
        search(tmp_path / "copy", ledger=budget, released=released)
    assert len(released) == 1


@pytest.mark.usefixtures("kept_key")
def test_a_ledger_without_the_reservation_is_refused_by_name(tmp_path, drawn):
    drawn(1)
    killed_in_trial(tmp_path / "out", ledger=budget_at(tmp_path / "budget.db"))
    with pytest.raises(ClaimError, match="its own ledger"):
        search(tmp_path / "out", ledger=budget_at(tmp_path / "other.db"))
    assert charges(tmp_path / "other.db") == []


@pytest.mark.usefixtures("kept_key")
def test_a_reservation_that_was_closed_by_hand_releases_nothing(tmp_path, drawn):
    drawn(1)
    budget = budget_at(tmp_path / "budget.db")
    killed_in_trial(tmp_path / "out", ledger=budget)
    budget.settle(reservation(budget, tmp_path)["identifier"])
    with pytest.raises(ClaimError, match="closed for good"):
        search(tmp_path / "out", ledger=budget)


def test_a_winner_that_is_settled_is_written_again_and_nothing_is_run(tmp_path, kept_key):
    """Killed between settling and writing; a copy from then may write the same release, and that alone."""
    budget, released = budget_at(tmp_path / "budget.db"), []

    def broken(result):
        released.append((result.params, result.value))
        shutil.copytree(tmp_path / "out", tmp_path / "copy")
        raise Stopped

    with pytest.raises(Stopped):
        tune_with_release(tmp_path / "out", budget, broken)
    for folder in ("out", "copy"):
        kept_key()
        search(tmp_path / folder, ledger=budget, released=released, objective=lambda *_: pytest.fail("run"))
    assert len(set(map(repr, released))) == 1
    assert len(released) == 3


def tune_with_release(folder, budget, release):
    folder.mkdir(exist_ok=True)
    return tune(
        lambda params, random: (float(random.laplace(1)[0]), (params["x"], random.bytes(8))),
        space={"x": Uniform(0.0, 1.0)},
        base=pure_dp(epsilon=0.25),
        repetitions=Harmonic(limit=3),
        store=SearchStore(path=folder / "s.db", resume=True, key_variable="COPIES_KEY", payload_bytes=200),
        ledger=budget,
        release=release,
        rehearse=False,
    )


@pytest.mark.usefixtures("kept_key")
def test_a_run_after_the_search_is_sealed_before_anything_is_settled(tmp_path):
    """Two stages: the last run is not made again for a copy, which may look at other rows."""
    made, released = [], []

    def run(rows, kill):
        def last(params, random, noise):
            made.append(rows)
            return rows, random.bytes(8)

        def release(result):
            released.append(result.value)
            if kill:
                raise Stopped

        return tune(
            lambda params, random, noise: (float(random.laplace(1)[0]), None),
            space={"x": Uniform(0.0, 1.0)},
            base=lambda noise: pure_dp(epsilon=0.5 / noise),
            design=TwoStageDesign(last=last, price=lambda noise: pure_dp(epsilon=0.5 / noise)),
            epsilon=1.0,
            delta=0.0,
            store=SearchStore(path=tmp_path / "s.db", resume=True, key_variable="COPIES_KEY"),
            release=release,
            rehearse=False,
        )

    with pytest.raises(Stopped):
        run("these", kill=True)
    assert run("others", kill=False).value[0] == "these"
    assert made == ["these"]
    assert released[0] == released[1]


# -- other rows


@pytest.mark.usefixtures("kept_key")
def test_noise_is_never_used_on_two_sets_of_rows(tmp_path, drawn):
    """Nothing is refused; all runs are made again, and their number stays. The same rows have the same noise."""
    drawn(3)
    seen = []

    def objective(params, random):
        seen.append((params["x"], tuple(random.bytes(8))))
        return 0.0, None

    for rows in (b"a", b"a", b"b", b"a", b"a"):
        seen.append(rows)
        killed_in_trial(tmp_path / "out", number=2, rows=rows, objective=objective)
    seen.append(b"a")
    search(tmp_path / "out", rows=b"a", objective=objective)
    assert [each for each in seen if isinstance(each, bytes)] == [b"a", b"a", b"b", b"a", b"a", b"a"]
    drawn_for = {}
    for each in seen:
        if isinstance(each, bytes):
            rows = each
        else:
            drawn_for.setdefault(each, set()).add(rows)
    assert all(len(used) == 1 for used in drawn_for.values())
    assert len(drawn_for) == 2 + 1 + 3  # of the first rows two, of the others one, then all three again


@pytest.mark.usefixtures("kept_key")
def test_a_store_with_a_digest_of_rows_is_not_resumed_without_one(tmp_path, drawn):
    drawn(1)
    killed_in_trial(tmp_path / "out", rows=b"a")
    with pytest.raises(StudyError, match="rows_digest"):
        search(tmp_path / "out")
    assert "'a'" not in repr(SearchStore(rows_digest=b"a"))


# -- what the ledger and the state folder know


def reservation(budget, tmp_path) -> dict:
    with Ledger.open(tmp_path / "budget.db", witness=False) as ledger:
        return next(body for _, _, body in ledger.entries() if body["kind"] == "reserve")


def test_nothing_of_the_draws_can_be_read_from_the_ledger(tmp_path, drawn, kept_key):
    """Two searches with the same draws look as unlike as any."""
    drawn(1)
    entries = []
    for name in ("one", "two"):
        kept_key()
        budget = budget_at(tmp_path / name)
        search(tmp_path / f"{name}-out", ledger=budget, random=keyed_source(1))
        with Ledger.open(tmp_path / name, witness=False) as ledger:
            entries.append([body for _, _, body in ledger.entries()][2:])
    for (kind, *_), of in (("reserve",), ("binding", "claim")), (("settle",), ("claim", "release")):
        one, two = (next(body for body in bodies if body["kind"] == kind) for bodies in entries)
        assert all(one[name] != two[name] for name in of)
        assert all(len(bytes.fromhex(one[name])) in (16, 32) for name in of)


def test_a_state_folder_that_cannot_be_written_is_told(tmp_path, drawn, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("COPIES_KEY", base64.b64encode(b"k" * 32).decode())
    drawn(1)
    with pytest.warns(UnwitnessedSearchWarning, match="could again"):
        search(tmp_path / "out")
