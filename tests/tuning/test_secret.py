"""What shows the number of runs: nothing that lies about after a search does."""

from __future__ import annotations

import contextlib
import itertools
import pickle
import sqlite3
from dataclasses import replace

import pytest

from dpselect.errors import ArgumentError
from dpselect.repetitions import Geometric
from dpselect.storage import durable
from dpselect.tuning import sealed_store
from dpselect.tuning.machine import Search
from tests.tuning.tuner_cases import LIMIT, noisy, search

pytestmark = pytest.mark.usefixtures("state")


def trace_of_k(folder, monkeypatch, drawn, count, **options):
    """All that lies about after a search: file sizes, rows, number of commits and syncs, and the pickled result."""
    folder.mkdir()
    drawn(count)
    writes = {"commit": 0, "sync": 0}
    sizes = set()
    for name in writes:
        real = getattr(durable, name)

        def counted(handle, name=name, real=real):
            writes[name] += 1
            if name == "commit":
                real(handle)
                sizes.add((folder / "s.db").stat().st_size)
            else:
                real(handle)

        monkeypatch.setattr(durable, name, counted)
    result = search(store=folder / "s.db", objective=lambda params, random: (1.0, bytes(40)), **options)
    monkeypatch.undo()
    with contextlib.closing(sqlite3.connect(folder / "s.db")) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: connection.execute(f"SELECT count(*) FROM {name}").fetchone() for name in tables}
        lengths = connection.execute("SELECT length(sealed), stage, receipt FROM search").fetchall()
    files = {file.name: file.stat().st_size for file in folder.iterdir()}
    public = (sorted(vars(result)), result.score, result.receipt, result.guarantee.theorem)
    return writes, sizes, rows, lengths, files, public


def k_shows(tmp_path, monkeypatch, drawn, name, setup=lambda: None, **options):
    traces = []
    for count in (1, LIMIT):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
        setup()
        traces.append(trace_of_k(tmp_path / f"{name}{count}", monkeypatch, drawn, count, **options))
    return traces[0] != traces[1]


def test_k_does_not_show_in_what_is_kept(tmp_path, monkeypatch, drawn):
    assert not k_shows(tmp_path, monkeypatch, drawn, "real")
    assert not k_shows(tmp_path, monkeypatch, drawn, "geometric", repetitions=Geometric(gamma=0.2))


def test_zoo_writes_only_for_real_trials_are_caught(tmp_path, monkeypatch, drawn):
    """Broken: no empty turns. And what the documentation says of too few slots: then K does show."""

    def without_empty_turns():
        monkeypatch.setattr(
            Search, "finished", property(lambda self: self.rounds_done > 0 or sum(self.done) >= self.executed)
        )
        monkeypatch.setattr(Search, "pending", lambda self: [i for i in range(self.executed) if not self.done[i]])

    assert k_shows(tmp_path, monkeypatch, drawn, "eager", without_empty_turns)
    assert k_shows(tmp_path, monkeypatch, drawn, "few", slots=1)


def test_zoo_a_table_of_trials_is_caught(tmp_path, monkeypatch, drawn):
    """Broken: keeps a row for every trial that ran."""
    real = sealed_store.SealedStore.save

    def save(self, search):
        real(self, search)
        self._database.execute("CREATE TABLE IF NOT EXISTS trial (x)")
        if search.best:
            self._database.execute("DELETE FROM trial")
            self._database.execute_all("INSERT INTO trial VALUES (:one)", [{"one": 1}] * search.counted)

    assert k_shows(
        tmp_path, monkeypatch, drawn, "rows", lambda: monkeypatch.setattr(sealed_store.SealedStore, "save", save)
    )


def test_the_size_does_not_depend_on_the_winner(tmp_path, drawn):
    drawn(2)
    sizes = set()
    for length in (0, 1000, 60000):
        path = tmp_path / f"{length}.db"
        search(lambda params, random, length=length: (1.0, bytes(length)), store=path)
        sizes.add(path.stat().st_size)
    assert len(sizes) == 1


def test_k_beyond_the_slots(tmp_path, drawn):
    drawn(11)
    calls = []
    result = search(lambda params, random: (calls.append(1), (len(calls), len(calls)))[1], slots=4)
    assert len(calls) == 11
    assert result.value == 11


def test_constant_runs_hide_k_in_running_time_and_change_nothing_else(drawn):
    for count in (0, 1, 3, LIMIT):
        drawn(count)
        calls = []

        def objective(params, random, calls=calls):
            calls.append(1)
            return noisy(params, random)

        constant = search(objective, constant_runs=True)
        assert len(calls) == LIMIT
        assert constant.params == search().params
    with pytest.raises(ArgumentError, match="constant_runs"):
        search(repetitions=Geometric(gamma=0.2), constant_runs=True)


def test_zoo_released_k_is_caught(drawn):
    """The pickled result is the same for every K when the winner is; one that carries K is not."""

    def shows_k(decorate):
        seen = set()
        for count in (1, LIMIT):
            drawn(count)
            scores = itertools.count(0, -1)  # the first trial wins
            result = decorate(
                search(lambda params, random, scores=scores: (next(scores), 7), declare_score=True), count
            )
            seen.add(pickle.dumps(result))
        return len(seen) > 1

    assert not shows_k(lambda result, count: result)
    assert shows_k(lambda result, count: replace(result, params={**result.params, "runs": count}))
