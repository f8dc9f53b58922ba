"""Searches with adaptive proposals on disk: every durable step stays exact, whenever they are interrupted."""

from __future__ import annotations

import contextlib
import math
import sqlite3
from dataclasses import replace

import pytest

from dpselect.errors import StudyError
from dpselect.repetitions import Fixed, Harmonic, Uniform as UniformRuns
from dpselect.storage import durable
from dpselect.tuning import AdaptiveProposal, SearchFinishedError
from dpselect.tuning.machine import REPLAYS, Candidate, Search
from dpselect.tuning.proposals import ENTRY_BYTES, observed
from tests.budgets import budget_at
from tests.tuning.proposers import SPACE, Greedy, Says, greedy, noisy, run

pytestmark = pytest.mark.usefixtures("state")


class TestStore:
    def interrupted(self, tmp_path, at):
        calls = []

        def objective(params, random):
            calls.append(dict(params))
            if len(calls) == at:
                raise KeyboardInterrupt
            return noisy(params, random)

        with pytest.raises(KeyboardInterrupt):
            run(greedy(), Fixed(count=6), objective=objective, store=tmp_path / "s.db")
        return calls

    @pytest.mark.parametrize("at", [1, 2, 4, 6])
    def test_a_resumed_search_is_the_same(self, tmp_path, at):
        expected = run(greedy(), Fixed(count=6))
        tried = self.interrupted(tmp_path, at)
        again = []

        def objective(params, random):
            again.append(dict(params))
            return noisy(params, random)

        result = run(greedy(), Fixed(count=6), objective=objective, store=tmp_path / "s.db", resume=True)
        assert (result.params, result.value) == (expected.params, expected.value)
        assert again[0] == tried[-1]  # the interrupted trial has the setting that it had
        assert len(again) == 6 - at + 1

    @pytest.mark.full
    def test_a_crash_at_any_durable_write_changes_nothing(self, tmp_path, monkeypatch):
        """Before and after every commit of a search of four runs in batches of two; K and keys from a keyed source."""

        class Crash(BaseException):
            pass

        expected, writes, settings = self.attempt(tmp_path / "whole", monkeypatch, None, Crash)
        assert writes > 8
        for at in range(1, writes + 1):
            for after in (False, True):
                folder = tmp_path / f"{at}{after}"
                _, _, first = self.attempt(folder, monkeypatch, (at, after), Crash)
                result, _, second = self.attempt(folder, monkeypatch, None, Crash, resume=True)
                assert all(settings[x] == y for part in (first, second) for x, y in part.items()), (at, after)
                if result is not None:
                    assert (result.params, result.value) == (expected.params, expected.value)

    def attempt(self, folder, monkeypatch, crash, error, *, resume=False):
        """(result, number of commits, setting of each trial by its noise); stops at the commit that `crash` names."""
        folder.mkdir(exist_ok=True)
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))
        count, settings = [0], {}

        def commit(connection, real=durable.commit):
            count[0] += 1
            if crash == (count[0], False):
                raise error
            real(connection)
            if crash == (count[0], True):
                raise error

        def objective(params, random):
            noise = float(random.laplace(1)[0])
            settings[noise] = dict(params)
            return params["x"] + 0.1 * noise, params["x"]

        options = {"objective": objective, "store": folder / "s.db", "resume": resume}
        with monkeypatch.context() as patch, contextlib.suppress(error, SearchFinishedError):
            patch.setattr(durable, "commit", commit)
            return run(greedy(batch=2), Fixed(count=4), **options), count[0], settings
        return None, count[0], settings

    def test_a_trial_run_again_does_not_ask_the_proposer_again(self, tmp_path):
        """Its setting was chosen in the commit before: no rounding in a surrogate can give it another one."""
        tried = self.interrupted(tmp_path, 3)
        other = AdaptiveProposal(Sometimes(), lower_ratio=0.5, upper_ratio=2.0, pool=16)
        seen = []
        run(
            other,
            Fixed(count=6),
            objective=lambda params, random: (seen.append(dict(params)), noisy(params, random))[1],
            store=tmp_path / "s.db",
            resume=True,
        )
        assert seen[0] == tried[-1]
        assert other.proposer.calls == 3

    def test_size_and_number_of_writes_do_not_depend_on_the_runs(self, tmp_path, monkeypatch):
        """What each commit leaves of the sealed record, by the number of runs."""
        written = {}

        def commit(connection, real=durable.commit):
            sizes.append(sealed_bytes(connection))
            real(connection)

        def objective(params, random):
            ran.append(1)
            return noisy(params, random)

        monkeypatch.setattr(durable, "commit", commit)
        for key in range(12):
            sizes, ran = [], []
            run(greedy(), UniformRuns(limit=5), objective=objective, key=key, store=tmp_path / f"{key}.db")
            written.setdefault(len(ran), set()).add(tuple(sizes))
        assert len(written) >= 4
        assert len(set.union(*written.values())) == 1

    def test_the_record_shows_nothing(self, tmp_path):
        """Scores, choices and the number of runs are under encryption; nothing has an informative repr."""
        self.interrupted(tmp_path, 4)
        content = (tmp_path / "s.db").read_bytes()
        assert b"greedy" not in content
        search = greedy().propose(SPACE, Search(slots=6, executed=6, counted=6))
        assert repr(search) == "<Search new>"

    def test_another_proposal_is_another_study(self, tmp_path):
        self.interrupted(tmp_path, 3)
        for other in (None, greedy(upper_ratio=2.5), greedy(pool=17), greedy(batch=2), greedy(proposer=Says([]))):
            with pytest.raises(StudyError, match="the study has changed"):
                run(other, Fixed(count=6), store=tmp_path / "s.db", resume=True)

    def test_ledger(self, tmp_path):
        spender = budget_at(tmp_path / "budget.db")
        result = run(greedy(), Harmonic(limit=5), ledger=spender, store=tmp_path / "s.db")
        assert result.receipt.charged["epsilon"] == pytest.approx(result.guarantee.epsilon(0.0))

    def test_lost_trials(self):
        """A trial lost too often counts as failed, and the search continues from there."""
        proposal = greedy()
        search = Search(slots=4, executed=3, counted=3, master=b"k" * 32)
        search = proposal.propose(SPACE, replace(search, stage="running"))
        assert proposal.runnable(search) == [0]
        for _ in range(REPLAYS + 1):
            search = search.lose(0)
        assert proposal.propose(SPACE, search) == search
        search = proposal.propose(SPACE, observed(search, 0, None).finish(0, None))
        assert proposal.runnable(search) == [1]
        found = Candidate(1, 0.5, b"t" * 16, b"")
        search = proposal.propose(SPACE, observed(search, 1, found).finish(1, found))
        assert [run.score for run in proposal.proposer.seen[-1][0]] == [-math.inf, 0.5]
        assert len(search.history) == 4 * ENTRY_BYTES


class Sometimes(Greedy):
    """Another proposer under the same description."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def __call__(self, history, candidates):
        self.calls += 1
        return [1.0 - candidate["x"] for candidate in candidates]


def sealed_bytes(connection):
    return connection.execute("SELECT length(sealed) FROM search").fetchone()[0]


def test_a_search_on_disk_without_proposals_keeps_its_format(tmp_path):
    """No history in the record of other searches."""
    with pytest.raises(KeyboardInterrupt):
        run(None, objective=interrupt, store=tmp_path / "s.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "s.db")) as connection:
        assert sealed_bytes(connection) == 12 + (57 + 112 + 2 * 6 + 41 + 512) + 16


def interrupt(params, random):
    raise KeyboardInterrupt
