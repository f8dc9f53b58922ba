"""Sessions that ask of one candidate after another whether it passes its threshold often enough."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Protocol, SupportsFloat

from dpselect.errors import BudgetError, integer
from dpselect.mechanisms import SparseVector
from dpselect.privacy import Guarantee, OutputGuarantee, Release, Spender
from dpselect.privacy.nothing_found import warn_if_nothing_found
from dpselect.privacy.paying import PaidSession, Payment
from dpselect.randomness import RandomSource, resolve

__all__ = ["PassingSession"]


class _Price(Protocol):
    @property
    def guarantee(self) -> Guarantee: ...
    @property
    def by_output(self) -> OutputGuarantee: ...


class PassingSession(PaidSession):
    """A sparse vector on a statistic of the candidate's passing probability. It ends with the first positive.

    `guarantee` prices the session by its output: epsilon/2 if nothing was found. `BudgetError`: asked after the session
    has ended. Not copied, not pickled, not shared with a fork.
    """

    def __init__(
        self,
        price: _Price,
        *,
        target: float,
        epsilon: SupportsFloat,
        sensitivity: float,
        max_queries: int | None,
        spender: Spender | None,
        label: str,
        random: RandomSource | None,
    ) -> None:
        super().__init__()
        self._price, self._target, self._source = price, target, resolve(random)
        self._left = None if max_queries is None else integer("max_queries", max_queries, at_least=1, at_most=1 << 1000)
        self._pay(Payment.open(self.guarantee, spender=spender, label=label))
        half = float(epsilon) / 2.0
        self._test = SparseVector(
            epsilon_threshold=half,
            epsilon_queries=half,
            max_positives=1,
            sensitivity=sensitivity,
            adjacency=price.guarantee.adjacency,
            random=self._source,
        )

    @property
    def guarantee(self) -> OutputGuarantee:
        """The price of what the session found: an index, say, or None."""
        return replace(self._price.by_output, interactive=True)

    @property
    def worst(self) -> Guarantee:
        """The price when something is found."""
        return replace(self._price.guarantee, interactive=True)

    @property
    def halted(self) -> bool:
        """Whether a positive was given or no query is left."""
        return self._test.halted or self._left == 0

    def first(self, queries: Iterable[Any]) -> Release:
        """The index of the first positive in a stream of queries for `above`, or None at its end. It closes the
        session.

        The stream is read one query at a time, no further than the answer, and may be endless. Its length must not
        depend on the data (you must ensure this).
        """
        found = None
        with self:
            for index, query in enumerate(queries):
                if self._asked(query):
                    found = index
                if self.halted:
                    break
        warn_if_nothing_found(found)
        return Release(
            value=found,
            guarantee=self.worst,
            receipt=self.receipt,
            replayable=self._source.replayable,
            realised=self.guarantee.observed(found),
        )

    @abstractmethod
    def _asked(self, query: Any) -> bool:
        """The answer to one query of a stream."""

    def _count_one(self) -> None:
        """Before anything is drawn for an answer."""
        self._refuse_when_closed()
        if self.halted:
            raise BudgetError("this search has ended; open and charge a new one")
        if self._left is not None:
            self._left -= 1

    def _outcome(self) -> bool | None:
        return True if self._test.halted else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {'halted' if self.halted else 'open'}>"
