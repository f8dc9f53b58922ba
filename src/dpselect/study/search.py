"""Step 5 of a study: charge its price, and search. The first step that draws, and that leaves a mark on the disk."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

from dpselect.errors import BudgetError, StudyError
from dpselect.ledger import Budget, Ledger, LedgerMissingError
from dpselect.privacy import Spender
from dpselect.privacy.output.amounts import charged_amount
from dpselect.randomness import RandomSource
from dpselect.storage.durable import erase
from dpselect.study.price import Priced
from dpselect.study.user_module import importable
from dpselect.study.validate import budget_of
from dpselect.tuning import Execution, SharedRelease, TuneResult, tune
from dpselect.tuning.trial import Objective, TwoStageObjective

__all__ = ["search"]

_BUDGET = "budget.db"
_LOG = logging.getLogger("dpselect.study")


def search(
    priced: Priced,
    run: Objective | SharedRelease | TwoStageObjective,
    *,
    rows_digest: bytes,
    execution: Execution,
    write: Callable[[TuneResult], None],
    random: RandomSource | None,
) -> TuneResult:
    """Reserve the price, run the trials, have the winner written, settle, and destroy the key of the store.

    `write` is called again after a crash, so it must be idempotent. Raises the errors of `tune`, and `StudyError` for a
    folder that cannot be made.
    """
    settled = priced.settled
    study, place = settled.study, settled.place
    try:
        place.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StudyError(f"output.folder {str(place.folder)!r} cannot be made: {error.strerror}") from None
    if settled.modules:
        place.checkpoints.mkdir(mode=0o700, exist_ok=True)
    request = priced.request
    _LOG.info("study %r: the search begins", study.name)
    code = importable(place.base) if settled.modules else nullcontext()  # for the workers
    with _spender(priced) as spender, code:
        result = tune(
            run,
            space=request.space,
            base=request.base,
            repetitions=request.repetitions,
            declare_score=request.declare_score,
            store=replace(priced.store, rows_digest=rows_digest),
            executor=settled.executor,
            execution=execution,
            ledger=spender,
            label=study.name,
            random=random,
            release=write,
        )
    if settled.modules:
        _erase(place.checkpoints)
    _LOG.info("study %r: released", study.name)
    return result


def _erase(folder: Path) -> None:
    """Erase the folder of checkpoints. A training that is done has none, but its worker may have died in the end."""
    for path in folder.iterdir():
        erase(path)
    folder.rmdir()


@contextmanager
def _spender(priced: Priced) -> Iterator[Spender]:
    """The budget that the study names, or one in a ledger in its folder."""
    place, delta = priced.settled.place, priced.price.delta
    with budget_of(priced.settled.study, place) as named:
        if named is not None:
            # a filter is priced as a whole
            yield named[1].at(delta=delta) if named[1].accounting == "output" else named[1]
            return
    with Ledger.open(place.folder / _BUDGET, witness=False) as ledger:
        yield _own_budget(ledger, priced).at(delta=delta)


def _own_budget(ledger: Ledger, priced: Priced) -> Budget:
    """A budget that has room for this search. Raises `BudgetError` if another study was charged."""
    price, name = priced.price, priced.mark
    try:
        there = {budget.name: budget for budget in ledger.budgets()}
    except LedgerMissingError:
        there = {}
    if any(budget.spent().epsilon for other, budget in there.items() if other != name):
        raise BudgetError(f"{ledger!r} has paid for another search: choose another output.folder")
    if name in there:
        return there[name]
    epsilon, delta = charged_amount("epsilon", price.epsilon), charged_amount("delta", price.delta)
    return ledger.create_budget(name, epsilon=epsilon, delta=delta, adjacency=price.search.adjacency)
