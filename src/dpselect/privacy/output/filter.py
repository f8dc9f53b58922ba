"""The output-privacy filter: who may continue, given the costs that occurred so far.

Hartmann et al. (2022), Algorithm 6 and Definition 19. The ledger is the durable form of the additive filter. This one
lives in memory, and takes other filter functions for experiments and tests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from dpselect.errors import BudgetError, StudyError
from dpselect.privacy.adjacency import Adjacency, common_adjacency
from dpselect.privacy.output.amounts import Exact, charged_amount, granted_amount
from dpselect.privacy.output.guarantee import OutputGuarantee
from dpselect.privacy.promises import output_promise
from dpselect.randomness.session import Session, answers

__all__ = ["Costs", "FilterFunction", "OutputFilter", "additive"]

Costs = Sequence[tuple[Fraction, Fraction]]
"""(epsilon, delta) of each mechanism: past ones at the cell that occurred, the last one at its supremum."""

FilterFunction = Callable[[Costs], bool]
"""True to halt."""


def additive(*, epsilon: Exact, delta: Exact = 0) -> FilterFunction:
    """Halt when the sum of the epsilons or of the deltas exceeds its budget, in exact arithmetic.

    Source: Hartmann et al. 2022, Theorem 7.

    >>> halts = additive(epsilon=1)
    >>> halts([(Fraction(1, 2), Fraction(0)), (Fraction(1, 2), Fraction(0))])
    False
    """
    allowed = (granted_amount("epsilon", epsilon), granted_amount("delta", delta))

    def halts(costs: Costs) -> bool:
        return sum(c[0] for c in costs) > allowed[0] or sum(c[1] for c in costs) > allowed[1]

    return halts


class OutputFilter(Session):
    """Algorithm 6: call `start` before a mechanism runs, and `finish` with its outcome. Halting is permanent.

    `halts` must be a valid filter for the budget that is claimed (you must ensure this; `additive` is). No
    sublinear filter on realised costs is known, and feeding them to an advanced composition formula is not one: cheap
    outputs carry a drift that is linear in their cost.

    >>> toss = OutputGuarantee(cell=bool, epsilons={True: 1.0, False: 0.25})
    >>> filter = OutputFilter(additive(epsilon=1.5))
    >>> filter.start(toss); filter.finish(False); filter.start(toss); filter.finish(True)
    >>> filter.costs[0], filter.halted
    ((Fraction(1, 4), Fraction(0, 1)), False)
    """

    def __init__(self, halts: FilterFunction) -> None:
        super().__init__()
        self._halts = halts
        self._costs: list[tuple[Fraction, Fraction]] = []
        self._running: OutputGuarantee | None = None
        self._adjacency: Adjacency | None = None
        self._halted = False

    @property
    def halted(self) -> bool:
        """Whether a request was refused. Then all later ones are."""
        return self._halted

    @property
    def costs(self) -> tuple[tuple[Fraction, Fraction], ...]:
        """The costs that occurred, in order. A mechanism that never finished counts with its supremum."""
        return tuple(self._costs)

    @answers
    def start(self, guarantee: OutputGuarantee) -> None:
        """Admit a mechanism at its supremum. Raises `BudgetError` when the filter halts, or has.

        All mechanisms must be under the adjacency of the first (`AdjacencyError`).
        """
        guarantee = output_promise("guarantee", guarantee)
        if self._running is not None:
            raise StudyError("a mechanism is running: the filter is sequential, finish it first")
        self._adjacency = common_adjacency((guarantee.adjacency, self._adjacency or guarantee.adjacency))
        ask = (charged_amount("epsilon", guarantee.worst_epsilon), charged_amount("delta", guarantee.delta))
        if self._halted or self._halts([*self._costs, ask]):
            self._halted = True
            raise BudgetError("the filter has halted: the supremum of this mechanism does not fit")
        self._costs.append(ask)
        self._running = guarantee

    @answers
    def finish(self, output: Any) -> None:
        """Lower the last cost to that of the cell which occurred, and keep delta.

        Raises `ArgumentError` if the output is outside the partition. The supremum then stays charged.
        """
        if self._running is None:
            raise StudyError("no mechanism is running")
        guarantee, self._running = self._running, None
        price = charged_amount("epsilon", guarantee.price(guarantee.cell(output)))
        self._costs[-1] = (price, self._costs[-1][1])
