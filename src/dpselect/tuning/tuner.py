"""Tune: run a private algorithm a secret random number of times with random parameters, and release the best run.

Algorithm: Papernot and Steinke, "Hyperparameter Tuning with Renyi Differential Privacy", section 3.3. This module adds
the order of durable steps, which makes a crash at any instant harmless:

1. The number of runs and one master key are drawn once and sealed.
2. The price of the whole search is reserved, durably, for these draws, before the first trial.
3. Every trial's key, parameters, noise and tie-break derive from the master key and the trial's index.
4. The winner is sealed.
5. The reservation is settled with a hash of it.
6. The caller's function writes the release.
7. The key is destroyed.

A store can be copied between any two of these. So anyone who starts or resumes one claims its reservation. The latest
claim alone can settle it, once. Of all copies one releases, and after that the same release only.
"""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, SupportsFloat, cast

from dpselect.cures import write_instance
from dpselect.errors import StartingProcessError, expect, levels_to_the_caller, public_text
from dpselect.privacy import Guarantee, Spender
from dpselect.privacy.boundary import run_confined
from dpselect.privacy.nothing_found import warn_if_nothing_found
from dpselect.privacy.paying import BoundPayment, asked_at
from dpselect.privacy.release import Receipt
from dpselect.randomness import RandomSource, keyed_source, resolve
from dpselect.randomness.process_start import refuse_while_starting
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import expect_law
from dpselect.selection.rehearsal import Rehearsal
from dpselect.steps import unwatched
from dpselect.storage.keys import key_place
from dpselect.tuning.bond import bond_of, fresh_claim, new_master, release_hash
from dpselect.tuning.clock import ticking, wait_for_a_multiple
from dpselect.tuning.designs import AnyDesign, NoisyRun, designed_search
from dpselect.tuning.executors import Executor, InlineExecutor
from dpselect.tuning.machine import Candidate, Search, Stage
from dpselect.tuning.options import Execution, SearchRequest, SearchStore, TuneResult
from dpselect.tuning.plan import Plan, make_plan
from dpselect.tuning.proposals import AdaptiveProposal, trial_token
from dpselect.tuning.rehearsal import rehearse_objective
from dpselect.tuning.rounds import propose_next, run_rounds
from dpselect.tuning.sealed_store import MemoryStore, SealedStore, SearchFinishedError, Store
from dpselect.tuning.space import Space
from dpselect.tuning.trial import (
    Job,
    Objective,
    SharedRelease,
    T,
    TrialOutput,
    TwoStageObjective,
    decode_value,
    encode_value,
    preparation_key,
    trial_params,
)

__all__ = ["OperatorProgressWarning", "check_store", "tune"]


# what is logged is public: never a count, a parameter, a score or a key
_LOG = logging.getLogger("dpselect.tuning")

_BEFORE_THE_CHOICE: Final = (Stage.NEW, Stage.SEALED, Stage.RESERVED, Stage.RUNNING)


class OperatorProgressWarning(UserWarning):
    """Counts of trials are being shown, which the privacy guarantee does not cover."""


def tune(  # noqa: PLR0913
    objective: Objective[T] | NoisyRun | SharedRelease[T] | TwoStageObjective[T],
    *,
    space: Space | Mapping[str, Any],
    base: Guarantee | Sequence[Guarantee] | Callable[[float], Guarantee | Sequence[Guarantee]],
    design: AnyDesign = "one-stage",
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
    release: Callable[[TuneResult[T]], None] | None = None,
    rehearse: Rehearsal = True,
    declare_score: bool = False,
) -> TuneResult[T]:
    """Run an objective K times with random parameters, where K is random too, and return the best run only.

    The larger score wins. A score that is not a number ranks below all others, and a run that raises an exception ranks
    below that. An objective that fails every time finds nothing at the full price, and only `NothingFoundWarning` says
    so: give `rehearse`.

    You must ensure three things. `base` covers everything that one run returns, its score and its failure included,
    regardless of the parameters and under one adjacency. Space, distribution and options were fixed without looking at
    the data. The objective keeps no state between runs, and nothing it writes or prints leaves the operator's hands.

    A trial lost to a dead worker, or to the death of this process, is run again with its own key. After 3 such repeats
    it counts as failed. `KeyboardInterrupt`, and `ExecutorLostError` when a cluster is gone, leave a store that can be
    resumed and count against no trial.

    Args:
        objective: `objective(params, random) -> (score, value)` is one run. It must draw from `random` only. With a
            design that chooses the noise, `objective(params, random, noise)`. A `SharedRelease` in its place first
            releases what all runs share, and is private too.
        space: the distribution of the parameters, public: a `Space`, or a mapping from names to distributions.
        base: the guarantee of one run. Or one for each part of the data, when a row is in one part only, fixed row by
            row: training and validation rows, say. A row then pays the largest of the parts' prices for the whole
            search. With a design that chooses the noise, `base(noise)` returns the guarantee of a run with that noise.
        design: how the total is spent. "one-stage": K runs. "two-stage" (or a `TwoStageDesign`): a share pays for a
            search, the rest for one more run with the parameters that won. A `PortfolioDesign` tries each of a few
            settings once. "one-run" is one run. You can register more names (`dpselect.searching.search_design`). All
            but "one-stage" choose the noise of their runs for `epsilon` and `delta`.
        repetitions: the distribution of K. Without it, `epsilon` and `delta` choose it. With both, the price is
            checked.
        epsilon: the epsilon of the whole search. Without `repetitions` it pays for the harmonic distribution with the
            largest limit that fits.
        delta: the delta of the whole search. The ledger's charge is at this delta.
        max_runs: the largest limit that `epsilon` and `delta` may choose, 100 by default.
        proposal: lets later trials learn from earlier ones, within a ratio of the space's distribution, at a higher
            price (docs/how-to/adaptive-search.md). Trials then run one batch after another.
        store: the file of the sealed store, so that a killed search can be resumed. None keeps all in memory. Or a
            `SearchStore`, which also says whether to resume, where the key is and how much room a run's value has.
        executor: where trials run, by default in this process.
        execution: the limits of a trial, how to hide the number of runs from a clock, and the observers of progress.
            See `Execution`.
        ledger: where the price is reserved and settled, at `delta` if that is given. None charges nothing anywhere.
        label: the public text of the charge.
        random: where K and the master key are drawn from. If you pass a keyed source, the result is marked
            `replayable`.
        release: `release(result)` writes the result durably, once it is settled. It is called again after a crash, so
            it must be idempotent (`dpselect.storage.durable.write_atomically` is). Without it the value exists in what
            `tune` returns and, once the key is destroyed, nowhere else.
        rehearse: the objective bound to synthetic or public rows, `rehearse(params, random) -> (score, value)`. It is
            run at both ends of the space before anything is drawn, and what it raises is raised. By default it is what
            the objective's method `rehearsal()` returns, if it has one. The objective's code is searched for names and
            parameters that do not exist. False: none of this. The objective itself is never run for it.
        declare_score: the winner's score is part of the result.

    Returns:
        A `TuneResult`: the parameters and the value of the best run, and one guarantee for the whole search.

    Raises:
        ArgumentError: for arguments out of range. This error and the next four come before a run is made or anything is
            charged.
        TypeError: for arguments of another type.
        BudgetError: if the price is above `epsilon` or the ledger refuses it.
        StudyError: for a store that is in use, changed, damaged or meant for another study.
        SearchFinishedError: (a `StudyError`) for a store that is done.
        ClaimError: (a `BudgetError`) for a copy of a store: when the search has released already, and, before anything
            is released, when another copy was resumed later. Only the resumed copies decide that, never what they
            found.
        ExecutorLostError: when a cluster is gone. You can resume the store.
        StartingProcessError: if a script without the `__main__` guard calls this in a worker, see `ProcessExecutor`.

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
    _expect_parts(executor, ledger, repetitions)
    request = SearchRequest(
        space=space,
        base=base,
        repetitions=repetitions,
        epsilon=epsilon,
        delta=delta,
        max_runs=max_runs,
        proposal=proposal,
        declare_score=declare_score,
        beside=_beside(objective),
    )
    ledger, designed = asked_at(ledger, delta), None
    if not isinstance(design, str) or design != "one-stage":
        designed = designed_search(
            objective, design, request, SearchStore.of(store), execution=execution, rehearse=rehearse
        )
        objective, request, store = designed.objective, designed.request, designed.store
        rehearse = False
    last = objective.last if isinstance(objective, TwoStageObjective) else None
    objective = objective.objective if isinstance(objective, TwoStageObjective) else objective
    plan = make_plan(request, SearchStore.of(store), execution, has_ledger=ledger is not None)
    source = resolve(random)
    if execution.operator_progress is not None:
        warnings.warn(
            "operator_progress shows how many trials there are: no privacy guarantee covers anyone who sees it",
            OperatorProgressWarning,
            stacklevel=levels_to_the_caller(),
        )
    if not isinstance(objective, SharedRelease):
        rehearse_objective(objective, rehearse, plan.space, payload_bytes=plan.shape.payload_bytes)
    started = time.monotonic()
    with _opened(plan) as opened, ticking(execution.progress):
        _refuse_finished(opened)
        search = opened.load()
        if search.stage in _BEFORE_THE_CHOICE:
            begin = partial(_begin, plan, opened, search, ledger, label, source)
            begun = None
            try:
                if isinstance(objective, SharedRelease):  # its runs are known once it is paid for
                    if executor is not None and search.stage is Stage.NEW:
                        _reach(executor, plan)
                    begun = begin()
                    objective = _made(objective, keyed_source(preparation_key(begun.master)))
                runs = cast(Objective, objective)
                job = Job(runs, plan.space, plan.shape.payload_bytes, execution.limits, execution.reads)
                with _watch(plan), (executor or InlineExecutor()).session(job) as session:
                    search = run_rounds(plan, begun or begin(), opened, session)
            except StartingProcessError as error:
                paid = "the price is charged, and a store can be resumed: that charges nothing again"
                raise StartingProcessError(
                    f"{error}; {'this call has drawn and charged nothing' if begun is None else paid}"
                ) from None
            search = search.choose(_winner(plan, search, last))
            opened.save(search)
        elif search.stage is Stage.CHOSEN:
            search = _claimed(opened, search)
            _payment(opened, search, ledger).claim(search.bond.claim.hex(), release=release_hash(search))
        if execution.pad_seconds is not None and search.stage is Stage.CHOSEN:
            wait_for_a_multiple(float(execution.pad_seconds), since=started)
        shown = designed.released if designed is not None else (lambda result: result)
        write = None if release is None else (lambda result: release(shown(result)))
        return _told(shown(_close(plan, opened, search, ledger, write)), plan)


def _expect_parts(executor: object, ledger: object, repetitions: object) -> None:
    if executor is not None and not hasattr(executor, "session"):
        cure = write_instance("executor", Executor)
        raise TypeError(f"executor must be an executor, got {type(executor).__name__}{cure}")
    if ledger is not None:
        expect("ledger", ledger, Spender)
    if repetitions is not None:
        expect_law(repetitions)


def _watch(plan: Plan) -> AbstractContextManager[None]:
    """A watcher of steps sees the trials only if their number is public."""
    return nullcontext() if plan.repetitions.minimum == plan.repetitions.limit else unwatched()


def _beside(objective: Any) -> Guarantee | None:
    """The guarantee of what an objective brings along in addition to its runs."""
    if isinstance(objective, TwoStageObjective):
        return objective.guarantee or _beside(objective.objective)
    return objective.guarantee if isinstance(objective, SharedRelease) else None


def _made(preparation: SharedRelease, random: RandomSource) -> Objective:
    """The objective of the runs. Whether it can be made is private: where not, every run fails."""
    return run_confined(lambda: preparation.objective(random), _nothing)


def _reach(executor: Executor, plan: Plan) -> None:
    """Find workers that cannot be reached before anything is charged."""
    with executor.session(Job(_nothing, plan.space, plan.shape.payload_bytes, plan.execution.limits)):
        pass


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
    if store.stage is Stage.RELEASED and not store.has_key():
        store.wipe()  # killed between destroying the key and noting it
    if store.stage is Stage.WIPED:
        raise SearchFinishedError("this search is done: its release was written and its key is destroyed")


def _begin(
    plan: Plan, store: Store, search: Search, ledger: Spender | None, label: str, source: RandomSource
) -> Search:
    """From wherever the search is to RUNNING, with nothing drawn or charged twice."""
    rows = plan.store.rows_digest
    if search.stage is Stage.NEW:
        if store.outside is not None:
            store.outside.check_unclaimed()  # a copy that draws would put its key in the place of the other one's
        store.create_key()
        counted, limit = plan.repetitions.sample(source), plan.repetitions.limit
        draws: dict[str, Any] = {
            "counted": counted,
            "executed": limit if plan.execution.constant_runs and limit is not None else counted,
            "master": source.bytes(32),
        }
        bond = bond_of(store.identifier, **draws, rows=rows)
        search = search.seal(**draws, replayable=source.replayable, bond=bond)
        store.save(search)
        _LOG.info("%r: the number of runs is drawn and sealed", label)
    else:
        other = new_master(search, rows)
        search = _claimed(store, search if other is None else search.begin_anew(master=other[0], rows=other[1]))
    payment, claim = _payment(store, search, ledger), search.bond.claim.hex()
    if search.stage is Stage.SEALED:
        store.reserved(payment.reserve(plan.total, label=label, claim=claim))
        search = search.reserve()
        _LOG.info("%r: the price of the whole search is reserved", label)
    else:
        payment.claim(claim, release=None)
    search = propose_next(plan, search.start() if search.stage is Stage.RESERVED else search.resume())
    store.save(search)
    return search


def _claimed(store: Store, search: Search) -> Search:
    """With a claim that this store alone has, which is durable before anyone else sees it."""
    search = search.claimed(fresh_claim())
    store.save(search)
    return search


def _payment(store: Store, search: Search, ledger: Spender | None) -> BoundPayment:
    return BoundPayment(ledger, store.identifier, search.bond.binding.hex(), store.outside)


def _winner(plan: Plan, search: Search, last: Callable[[Mapping[str, Any], Any], Any] | None) -> Candidate | None:
    """The output to release: the best run, or what the run after it gives. That run's failure is private output."""
    best = search.best
    if best is None or last is None:
        return best
    params = trial_params(plan.space, trial_token(search, best.index))

    def run() -> bytes:
        payload = encode_value(last(params, decode_value(best.payload)))
        decode_value(payload)
        return payload

    payload = run_confined(run, None)
    return None if payload is None else replace(best, payload=payload)


def _close(
    plan: Plan,
    store: Store,
    search: Search,
    ledger: Spender | None,
    release: Callable[[TuneResult], None] | None,
) -> TuneResult:
    """Settle, have the release written, destroy the key, and return what was released.

    A search that is sealed as settled or released stays so no matter what copies there are, so no one is asked again.
    """
    receipt = None
    if search.stage is Stage.CHOSEN:
        payment = _payment(store, search, ledger)
        receipt = payment.settle(search.bond.claim.hex(), release_hash(search))
        search = search.settle()
        store.save(search)
    if search.stage is Stage.SETTLED:
        if release is not None:
            release(_result(plan, store, search))
        search = search.release()
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
