"""Tune: run a private algorithm a secret random number of times with random parameters, and release the best run.

Algorithm: Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", section 3.3. What is added
here is the order of durable steps, which makes a crash at any instant harmless:

1. the price of the whole search is reserved, durably, before anything is drawn;
2. the number of runs and one master key are drawn once and sealed before the first trial;
3. every trial's key, parameters, noise and tie-break derive from the master key and the trial's index;
4. the release is written, by the caller's function; 5. the reservation is settled; 6. the key is destroyed.
"""

from __future__ import annotations

import logging
import math
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, SupportsFloat, cast

from dpselect.errors import StartingProcessError, expect, public_text
from dpselect.foreign_names import answer_foreign_names
from dpselect.privacy import Guarantee, Payment, Receipt, Spender
from dpselect.privacy.boundary import result_of
from dpselect.privacy.nothing_found import warn_if_nothing_found
from dpselect.randomness import RandomSource, keyed_source, resolve
from dpselect.randomness.starting import refuse_while_starting
from dpselect.repetitions import Repetitions
from dpselect.selection.rehearsal import Rehearsal
from dpselect.storage import key_place
from dpselect.tuning.designs import Design, NoisyRun, by_design
from dpselect.tuning.executors import Executor, ExecutorLostError, InlineExecutor, RunningExecutor
from dpselect.tuning.machine import Candidate, Search, Stage
from dpselect.tuning.options import Execution, SearchRequest, SearchStore, TuneResult
from dpselect.tuning.plan import Plan, make_plan
from dpselect.tuning.proposals import AdaptiveProposal, observed, trial_token
from dpselect.tuning.rehearsal import rehearse_objective
from dpselect.tuning.sealed_store import MemoryStore, SealedStore, SearchFinishedError, Store
from dpselect.tuning.space import Space
from dpselect.tuning.trial import (
    Followed,
    Job,
    Objective,
    Preparation,
    TrialOutput,
    decode_value,
    preparation_key,
    trial_params,
)

__all__ = ["OperatorProgressWarning", "check_store", "tune"]


# what is logged is public: never a count, a parameter, a score or a key
_LOG = logging.getLogger("dpselect.tuning")


class OperatorProgressWarning(UserWarning):
    """Counts of trials are being shown, which the privacy guarantee does not cover."""


@answer_foreign_names
def tune(
    objective: Objective | NoisyRun | Preparation,
    *,
    space: Space | Mapping[str, Any],
    base: Guarantee | Sequence[Guarantee] | Callable[[float], Guarantee | Sequence[Guarantee]],
    design: Design = "one-stage",
    repetitions: Repetitions | None = None,
    epsilon: SupportsFloat | None = None,
    delta: SupportsFloat | None = None,
    max_runs: int = 100,
    proposal: AdaptiveProposal | None = None,
    store: str | os.PathLike[str] | SearchStore | None = None,
    executor: Executor | None = None,
    execution: Execution | None = None,
    ledger: Spender | None = None,
    label: str = "tune",
    random: RandomSource | None = None,
    release: Callable[[TuneResult], None] | None = None,
    rehearse: Rehearsal = True,
    declare_score: bool = False,
) -> TuneResult:
    """Draw K from a law, run the objective K times with parameters drawn afresh each time, return the best run only.

    `objective(params, random) -> (score, value)` is one run. The larger score wins; a score that is not a number ranks
    below all others, and a run that raises an exception ranks below that. It must draw from `random` only.

    The caller must ensure: `base` covers everything that one run returns, its score and its failure included, whatever
    the parameters, under one adjacency; space, law and options were fixed without looking at the data; the objective
    keeps no state between runs, and nothing it writes or prints leaves the operator's hands. An objective that fails
    every time finds nothing at the full price, and only `NothingFoundWarning` says so: give `rehearse`.

    What all runs share, and is private too, a `Preparation` releases before them; it stands for the objective.

    `base` is the guarantee of one run. Or one for each part of the data, when a row is in one part only, fixed row by
    row: training and validation rows, say. A row then pays the largest of the parts' prices for the whole search.

    `design`: how a total is spent. In "two-stage" (or a `TwoStageDesign`) a share of it pays for a search, the rest for
    one run more with the parameters that won; in a `PortfolioDesign` each of a few settings is tried once. Both choose
    the noise of their runs for `epsilon` and `delta`: `objective(params, random, noise)` takes it then, and
    `base(noise)` says what a run with that noise promises.

    Arguments beside these:

    - `repetitions`: the law of K. Or `epsilon` and `delta` of the whole search: the harmonic law with the largest limit
      that they pay for, `max_runs` at most. Or both, which checks the price.
    - `proposal`: lets later trials learn from earlier ones, within a ratio of the space's law, at a higher price
      (docs/adaptive-search.md). Trials then run one batch after another.
    - `store`: the file of the sealed store, so that a killed search can be resumed; None keeps all in memory. Or a
      `SearchStore`, which says more: to resume, where the key lies, how much room a run's value has.
    - `executor`: where trials run, by default in this process. `execution`: limits of a trial, what hides the number of
      runs from a clock, who is told of progress; see `Execution`.
    - `ledger`: where the price is reserved and settled; None charges nothing anywhere.
    - `random`: where K and the master key are drawn from; a caller's keyed source marks the result `replayable`.
    - `release(result)`: writes the result durably; called again after a crash, so it must be idempotent
      (`dpselect.storage.durable.write_atomically` is). Without it the value exists in what `tune` returns and, once the
      key is destroyed, nowhere else.
    - `rehearse`: the objective bound to made-up or public rows, `rehearse(params, random) -> (score, value)`. It is
      run at both ends of the space before anything is drawn, and what it raises is raised. By default that is what the
      objective's method `rehearsal()` returns, if it has one. The objective's code is searched for names and
      parameters that do not exist. False: none of this. The objective itself is never run for it.
    - `declare_score`: the winner's score is part of the result.

    A trial lost to a dead worker, or to the death of this process, is run again with its own key up to 3 times and then
    counts as failed. `KeyboardInterrupt`, and `ExecutorLostError` when a cluster is gone, leave a store that can be
    resumed and count against no trial.

    Raises, before anything is drawn or charged: `ArgumentError` or `TypeError` for arguments, `BudgetError` if the
    price is above `epsilon` or the ledger refuses it, `StudyError` for a store that is in use, changed, damaged or
    meant for another study, `SearchFinishedError` (a `StudyError`) for one that is done.

    Source of the price: Papernot and Steinke, Theorems 2 and 6, and the bounds of `dpselect.accounting.best_of`.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Harmonic
    >>> from dpselect.tuning import Categorical
    >>> result = tune(lambda params, random: (params["x"] + random.laplace(1)[0], params["x"]),
    ...               space={"x": Categorical([1, 2])}, base=pure_dp(epsilon=1.0), repetitions=Harmonic(limit=4))
    >>> result.value == result.params["x"]
    True
    """
    refuse_while_starting("tune")
    label = public_text("label", label)
    execution = Execution() if execution is None else execution
    expect("execution", execution, Execution)
    if repetitions is not None and not isinstance(repetitions, Repetitions):
        raise TypeError(
            "repetitions must be a distribution of the number of runs, e.g. Harmonic(limit=30), got "
            f"{type(repetitions).__name__}; a fixed number is Fixed(count=10) and costs more"
        )
    request = SearchRequest(
        space=space,
        base=base,
        repetitions=repetitions,
        epsilon=epsilon,
        delta=delta,
        max_runs=max_runs,
        proposal=proposal,
        declare_score=declare_score,
        beside=objective.guarantee if isinstance(objective, Preparation | Followed) else None,
    )
    if not isinstance(design, str) or design != "one-stage":
        return by_design(
            partial(tune, executor=executor, ledger=ledger, label=label, random=random),
            objective,
            design,
            request,
            SearchStore.of(store),
            execution=execution,
            rehearse=rehearse,
            release=release,
        )
    objective = objective.objective if isinstance(objective, Followed) else objective
    plan = make_plan(request, SearchStore.of(store), execution, has_ledger=ledger is not None)
    source = resolve(random)
    if execution.operator_progress is not None:
        warnings.warn(
            "operator_progress shows how many trials there are: no privacy guarantee covers whoever sees it",
            OperatorProgressWarning,
            stacklevel=2,
        )
    if not isinstance(objective, Preparation):
        rehearse_objective(objective, rehearse, plan.space, payload_bytes=plan.shape.payload_bytes)
    started = time.monotonic()
    with _opened(plan) as opened, _ticking(execution.progress):
        _refuse_finished(opened)
        search = opened.load()
        if opened.stage in (Stage.RELEASED, Stage.SETTLED):
            return _told(_close(plan, opened, search, ledger), plan)
        begin = partial(_begin, plan, opened, search, ledger, label, source)
        begun = None
        if isinstance(objective, Preparation):  # its runs are known once it is paid for
            begun = begin()
            objective = _made(objective, keyed_source(preparation_key(begun.master)))
        job = Job(cast(Objective, objective), plan.space, plan.shape.payload_bytes, execution.limits, execution.reads)
        try:
            with (executor or InlineExecutor()).session(job) as session:
                search = _run_trials(plan, begun or begin(), opened, session)
        except StartingProcessError as error:
            paid = "the price is charged, and a store can be resumed: that charges nothing again"
            raise StartingProcessError(
                f"{error}; {'this call has drawn and charged nothing' if begun is None else paid}"
            ) from None
        if execution.pad_seconds is not None:
            _wait_for_a_multiple(float(execution.pad_seconds), since=started)
        if release is not None:
            release(_result(plan, opened, search))
        search = search.release()
        opened.save(search)
        return _told(_close(plan, opened, search, ledger), plan)


def _made(preparation: Preparation, random: RandomSource) -> Objective:
    """The objective of the runs. Whether it can be made is private: where not, every run fails."""
    return result_of(lambda: preparation.objective(random), _nothing)


def _nothing(params: Mapping[str, Any], random: RandomSource) -> TrialOutput:  # noqa: ARG001
    raise RuntimeError("there is nothing to run")


def _told(result: TuneResult, plan: Plan) -> TuneResult:
    warn_if_nothing_found(result.params, no_runs=plan.repetitions.zero_probability)
    return result


def check_store(request: SearchRequest, store: SearchStore, execution: Execution, *, has_ledger: bool) -> None:
    """Raise what `tune` would raise for a store with these arguments, before there is an objective or data."""
    plan = make_plan(request, store, execution, has_ledger=has_ledger)
    if store.path is not None and Path(store.path).exists():
        with _opened(plan):
            pass


def _opened(plan: Plan) -> AbstractContextManager[Store]:
    store = plan.store
    if store.path is None:
        return nullcontext(MemoryStore(plan.shape.slots))
    return SealedStore.open(
        Path(store.path),
        fingerprint=plan.fingerprint,
        shape=plan.shape,
        keys=key_place(store.key_variable),
        resume=store.resume,
    )


def _refuse_finished(store: Store) -> None:
    if store.stage is Stage.SETTLED and not store.has_key():
        store.wipe()  # killed between destroying the key and noting it
    if store.stage is Stage.WIPED:
        raise SearchFinishedError("this search is done: its release was written and its key is destroyed")


def _begin(
    plan: Plan, store: Store, search: Search, ledger: Spender | None, label: str, source: RandomSource
) -> Search:
    """From wherever the search is to RUNNING, with nothing drawn or charged twice."""
    if search.stage is Stage.NEW:
        payment = Payment.open(plan.total, spender=ledger, label=label, identifier=store.identifier)
        search = search.reserve()
        store.reserved(payment.receipt)
        _LOG.info("%r: the price of the whole search is reserved", label)
    if search.stage is Stage.RESERVED:
        store.create_key()
        counted = plan.repetitions.sample(source)
        limit = plan.repetitions.limit
        search = search.seal(
            counted=counted,
            executed=limit if plan.execution.constant_runs and limit is not None else counted,
            master=source.bytes(32),
            replayable=source.replayable,
        )
        _LOG.info("%r: the number of runs is drawn and sealed", label)
    search = _proposed(plan, search.start() if search.stage is Stage.SEALED else search.resume())
    store.save(search)
    return search


def _proposed(plan: Plan, search: Search) -> Search:
    """With the settings of the next batch chosen, where trials learn from earlier ones and those are done.

    Chosen in the commit that precedes the batch, so that a trial that is run again has the setting that it had.
    """
    return search if plan.proposal is None else plan.proposal.propose(plan.space, search)


def _run_trials(plan: Plan, search: Search, store: Store, session: RunningExecutor) -> Search:
    """Every turn of every round, one durable commit each, whether a trial, a lost trial or an empty turn.

    A loss alone is not committed: it goes with the next commit, so that the number of writes does not tell of it.
    """
    watch = plan.execution.operator_progress

    def finish(index: int, candidate: Candidate | None) -> None:
        nonlocal search
        search = _proposed(plan, observed(search, index, candidate).finish(index, candidate))
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


def _wait_for_a_multiple(seconds: float, *, since: float) -> None:
    elapsed = time.monotonic() - since
    time.sleep(max(1, math.ceil(elapsed / seconds)) * seconds - elapsed)


def _trials_done(search: Search) -> int:
    return min(search.executed, search.rounds_done * search.slots + sum(search.done))


def _close(plan: Plan, store: Store, search: Search, ledger: Spender | None) -> TuneResult:
    """Settle, destroy the key, and return what was released."""
    receipt = Payment(ledger, plan.total, store.identifier).close()
    if search.stage is Stage.RELEASED:
        search = search.settle()
        store.save(search)
    key_variable = store.wipe()
    _LOG.info("settled: the store's key is destroyed, or the operator's to drop")
    return _result(plan, store, search, receipt=receipt, key_variable=key_variable)


def _result(
    plan: Plan,
    store: Store,
    search: Search,
    *,
    receipt: Receipt | None = None,
    key_variable: str | None = None,
) -> TuneResult:
    best = search.best
    declared = best is not None and plan.declare_score and best.score == best.score
    return TuneResult(
        value=decode_value(best.payload) if best else None,
        params=trial_params(plan.space, trial_token(search, best.index)) if best else None,
        score=best.score if best and declared else None,
        guarantee=plan.total,
        receipt=receipt or store.receipt,
        replayable=search.replayable,
        key_variable=key_variable,
    )


@contextmanager
def _ticking(progress: Callable[[float], None] | None, interval: float = 1.0) -> Iterator[None]:
    """Call `progress` by the clock, never by the trial: the moments themselves would tell of trials."""
    if progress is None:
        yield
        return
    done = threading.Event()
    start = time.monotonic()

    def tick() -> None:
        while not done.wait(interval):
            progress(time.monotonic() - start)

    thread = threading.Thread(target=tick, name="dpselect-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
