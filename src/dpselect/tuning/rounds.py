"""The rounds of a search: every turn is one durable commit, whether it had a trial, lost one or was empty."""

from __future__ import annotations

from collections import deque

from dpselect.tuning.executors import ExecutorLostError, RunningExecutor
from dpselect.tuning.machine import Candidate, Search
from dpselect.tuning.plan import Plan
from dpselect.tuning.proposals import observed, trial_token
from dpselect.tuning.sealed_store import Store

__all__ = ["propose_next", "run_rounds"]


def propose_next(plan: Plan, search: Search) -> Search:
    """With the settings of the next batch chosen, where trials learn from earlier ones and those are done.

    Chosen in the commit that precedes the batch, so that a trial that is run again has the setting that it had.
    """
    return search if plan.proposal is None else plan.proposal.propose(plan.space, search)


def run_rounds(plan: Plan, search: Search, store: Store, session: RunningExecutor) -> Search:
    """Every turn of every round, one durable commit each, whether a trial, a lost trial or an empty turn.

    A loss alone is not committed: it goes with the next commit, so that the number of writes does not tell of it.
    """
    watch = plan.execution.operator_progress

    def finish(index: int, candidate: Candidate | None) -> None:
        nonlocal search
        search = propose_next(plan, observed(search, index, candidate).finish(index, candidate))
        store.save(search)
        if watch is not None and index < search.executed:
            watch(_trials_done(search), search.executed)

    try:
        while not search.finished:
            turns = search.pending()
            runnable = [index for index in turns if index < search.executed and not search.exhausted(index)]
            idle = sorted(set(turns) - set(runnable))
            if plan.proposal is not None:
                proposed = set(plan.proposal.runnable(search))
                runnable = [index for index in runnable if index in proposed]
                idle = [index for index in idle if index in proposed or not proposed]
            trials = deque((index, trial_token(search, index)) for index in runnable)
            for outcome in session.run(trials):
                if outcome.lost:
                    search = search.lose(outcome.index)
                if not outcome.lost or search.exhausted(outcome.index):
                    finish(outcome.index, outcome.candidate)
                else:
                    trials.append((outcome.index, trial_token(search, outcome.index)))
            for index in idle:
                finish(index, None)
    except (KeyboardInterrupt, ExecutorLostError):
        store.save(search.interrupt())
        raise
    return search


def _trials_done(search: Search) -> int:
    return min(search.executed, search.rounds_done * search.slots + sum(search.done))
