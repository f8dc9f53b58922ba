"""Holdouts and gates in PostgreSQL, asked by several servers."""

import base64
import json
import multiprocessing
import os
from contextlib import contextmanager

import pytest

from dpselect.errors import ArgumentError, BudgetError, StudyError
from dpselect.holdout import Gate, GateRules, Holdout
from dpselect.holdout.server.boards import open_boards
from dpselect.holdout.server.uploads import Upload
from tests.holdout.server.serving import POSTGRES, fresh_database, invited, make_gate, make_holdout, served

pytestmark = pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
KEY = "DPSELECT_SHARED_KEY"


@pytest.fixture
def url(monkeypatch):
    """An empty database, and a key that all servers have."""
    pytest.importorskip("psycopg")
    monkeypatch.setenv(KEY, base64.b64encode(bytes(range(32))).decode())
    with fresh_database() as found:
        yield found


@contextmanager
def statements(url):
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        yield connection.execute


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """To be another machine: one with a state folder of its own."""

    def at(name):
        folder = tmp_path / "machines" / name
        folder.mkdir(parents=True, exist_ok=True)
        monkeypatch.setenv("XDG_STATE_HOME", str(folder))

    at("first")
    return at


def test_machines_take_turns_on_one_gate(url, machine):
    better = make_gate(f"{url}#my", key_variable=KEY, consultations=4)
    worse = dict.fromkeys(better, 0)
    first = Gate.open(f"{url}#my")
    machine("second")
    second = Gate.open(f"{url}#my")
    assert not first.ask(worse)
    assert not second.ask(worse)
    assert second.ask(better, candidate="b")
    assert first.ask(better, candidate="b"), "from the record"
    assert first.status() == second.status()
    assert first.certificate() == Gate.open(f"{url}#my").certificate()
    assert [ask["verdict"] for ask in first.status()["asks"]] == ["rejected", "rejected", "accepted"]
    with pytest.raises(ArgumentError, match="stake"):
        second.ask(better, 0.5)
    assert first.purse == second.purse


def test_machines_take_turns_on_one_holdout(url, machine):
    guesses = make_holdout(f"{url}#pets", questions=3, answers=3, key_variable=KEY)
    first = Holdout.open(f"{url}#pets")
    machine("second")
    second = Holdout.open(f"{url}#pets")
    ids, values = list(guesses), list(guesses.values())
    for number, holdout in enumerate((first, second, first)):
        found = holdout.score(ids=ids, predictions=values, claim=0.9 + number * 1e-3)
        assert (found.repeated, found.questions_left) == (False, 2 - number)
    assert first.score(ids=ids, predictions=values, claim=0.901).repeated
    for holdout in (first, second):
        with pytest.raises(BudgetError):
            holdout.score(ids=ids, predictions=values, claim=0.8999)


def test_nothing_is_in_the_clear(url, machine):
    make_gate(f"{url}#my", key_variable=KEY)
    with statements(url) as execute:
        (terms, sealed), *_ = execute("SELECT terms, sealed FROM holdout_record").fetchall()
    assert "task 1" not in terms
    assert b"task 1" not in bytes(sealed)


def test_an_older_database_is_refused(url, machine):
    better = make_gate(f"{url}#my", key_variable=KEY)
    gate = Gate.open(f"{url}#my")
    gate.ask(dict.fromkeys(better, 0))
    with statements(url) as execute:
        kept = execute("DELETE FROM holdout_entry WHERE sequence = 2 RETURNING identifier, sequence, sealed").fetchone()
    for known in (gate, Gate.open(f"{url}#my")):  # one that has read it, and one that reads it for the first time
        with pytest.raises(StudyError, match="older copy"):
            known.ask(better)
    machine("second")  # which has given no answer yet
    assert Gate.open(f"{url}#my").status()["asked"] == 1
    machine("first")
    with statements(url) as execute:
        execute("INSERT INTO holdout_entry VALUES (%s, %s, %s)", kept)
    assert gate.ask(better)


def test_entries_that_were_changed_or_moved_are_refused(url, machine):
    better = make_gate(f"{url}#my", key_variable=KEY)
    make_gate(f"{url}#other", key_variable=KEY)
    for name in ("my", "other"):
        Gate.open(f"{url}#{name}").ask(dict.fromkeys(better, 0))
    mine, other = (Gate.open(f"{url}#{name}").identifier for name in ("my", "other"))
    with statements(url) as execute:
        execute(
            "UPDATE holdout_entry SET sealed = (SELECT sealed FROM holdout_entry WHERE identifier = %s "
            "AND sequence = 1) WHERE identifier = %s AND sequence = 1",
            (other, mine),
        )
    with pytest.raises(StudyError, match="cannot be opened"):
        Gate.open(f"{url}#my").ask(better)
    with statements(url) as execute:
        execute("UPDATE holdout_record SET terms = replace(terms, '0.05', '0.5') WHERE name = 'other'")
    with pytest.raises(StudyError, match="cannot be opened"):
        Gate.open(f"{url}#other")


def test_names_and_keys(url, machine, monkeypatch):
    make_gate(f"{url}#my", key_variable=KEY)
    with pytest.raises(StudyError, match="exists already"):
        make_gate(f"{url}#my", key_variable=KEY)
    with pytest.raises(StudyError, match="does not exist"):
        Gate.open(f"{url}#none")
    with pytest.raises(StudyError, match="another thing"):
        Holdout.open(f"{url}#my")
    for where in (url, f"{url}#", f"{url}#a/b"):
        with pytest.raises(ArgumentError, match="#NAME"):
            Gate.open(where)
    monkeypatch.delenv(KEY)
    with pytest.raises(StudyError):
        Gate.open(f"{url}#my")
    with pytest.raises((StudyError, ArgumentError)) as refused:
        Gate.open("postgresql://ada:capybara@127.0.0.1:1/x#my")
    assert "capybara" not in str(refused.value)


def ask_often(where, folder, said):
    os.environ["XDG_STATE_HOME"] = folder
    gate = Gate.open(where)
    for _ in range(10):
        said.put(gate.ask(dict.fromkeys((f"task {task}" for task in range(100)), 0)))


@pytest.mark.full
def test_servers_that_ask_at_once_are_counted_once_each(url, machine, tmp_path):
    make_gate(f"{url}#my", key_variable=KEY, consultations=1000)
    context = multiprocessing.get_context("spawn")
    said = context.Queue()
    folders = [tmp_path / name for name in ("a", "b", "c")]
    for folder in folders:
        folder.mkdir()
    servers = [context.Process(target=ask_often, args=(f"{url}#my", str(folder), said)) for folder in folders]
    for server in servers:
        server.start()
    assert [said.get(timeout=100) for _ in range(30)] == [False] * 30
    for server in servers:
        server.join()
    status = Gate.open(f"{url}#my").status()
    assert status["asked"] == 30
    assert [ask["verdict"] for ask in status["asks"]] == ["rejected"] * 30


def test_a_process_that_dies_while_it_grades_keeps_nobody_waiting(url, machine):
    """Its connection ends, and with it its turn; what it was charged stays charged."""
    better = make_gate(f"{url}#my", key_variable=KEY)
    gate, other = Gate.open(f"{url}#my"), Gate.open(f"{url}#my")

    def dies():
        with statements(url) as execute:
            execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid()"
            )
        return better

    with pytest.raises(StudyError, match="cannot be used now"):
        gate.ask(dies)
    assert [ask["verdict"] for ask in Gate.open(f"{url}#my").status()["asks"]] == ["interrupted"]
    assert other.ask(better)
    assert gate.ask(better, "all") is False


@pytest.mark.full
def test_two_servers_over_one_database(url, machine, tmp_path):
    pytest.importorskip("uvicorn")
    guesses = make_holdout(f"{url}#pets", questions=50, key_variable=KEY)
    make_gate(f"{url}#my", key_variable=KEY, rules=GateRules(answer_seconds=0))
    from dpselect.holdout.server.submitters import Submitters

    with Submitters(url) as people:
        token = people.invite("Ada", questions=3)
    people_flags = ("--submitters", url)
    first, second = tmp_path / "one", tmp_path / "two"
    for folder in (first, second):
        folder.mkdir()
        invited(folder)
    with served(first, url, flags=people_flags) as one:
        machine("second")
        with served(second, url, flags=people_flags) as two:
            statuses = []
            for number, server in enumerate((one, two, one, two)):
                fields = {"predictions": guesses, "claim": 0.9 + number * 1e-3}
                status, found = server.submit("pets", fields, token)
                statuses.append((status, found.get("questions_left")))
            assert statuses == [(200, 49), (200, 48), (200, 47), (409, None)]
            boards = [server.ask("GET", "/api/boards/pets")[2]["leaderboard"] for server in (one, two)]
            assert boards[0] == boards[1]
            assert boards[0][0]["submitter"] == "Ada"
            assert {board["name"] for board in one.ask("GET", "/api/boards")[2]} == {"pets", "my"}


def test_boards_of_a_database(url, machine):
    guesses = make_holdout(f"{url}#pets", questions=5, key_variable=KEY)
    make_gate(f"{url}#my", key_variable=KEY)
    assert {name: board.kind for name, board in open_boards([url]).items()} == {"pets": "holdout", "my": "gate"}
    (board,) = open_boards([f"{url}#pets"]).values()
    upload = Upload(json.dumps({"predictions": guesses, "claim": 0.9}).encode(), "application/json", {})
    assert board.question(upload, "Ada", own_stakes=False).ask().body["agrees"]
