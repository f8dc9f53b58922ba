"""An accountant for programs that use dp-accounting: it prices a search by dpselect's bound, and all else as well.

```python
accountant = dp_accounting.rdp.RdpAccountant()  # before
accountant = SelectionAccountant()  # after
```
"""

from __future__ import annotations

import math
from copy import deepcopy
from typing import Any, Final, NamedTuple

from dp_accounting import dp_event
from dp_accounting.privacy_accountant import NeighboringRelation, PrivacyAccountant

from dpselect.accounting import best_of
from dpselect.errors import ArgumentError, integer, number
from dpselect.privacy import Adjacency, Guarantee, compose, from_dp_event, pure_dp
from dpselect.repetitions import Geometric, Logarithmic, Poisson, Repetitions, TruncatedNegativeBinomial

__all__ = ["SelectionAccountant"]

_ADJACENCIES: Final = {
    NeighboringRelation.ADD_OR_REMOVE_ONE: Adjacency.ADD_OR_REMOVE_ONE,
    NeighboringRelation.REPLACE_ONE: Adjacency.REPLACE_ONE,
    NeighboringRelation.REPLACE_SPECIAL: Adjacency.ADD_OR_REMOVE_ONE,
}
_LIKE_REMOVAL: Final = (dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent, dp_event.DiscreteLaplaceDpEvent)
"""Noise on a sum, to which a zero record adds nothing: replacing a row by it costs what removing the row does."""
_MOST_SEARCHES: Final = 10_000


class _CountedEvent(NamedTuple):
    """An event that is no composition, the guarantee of one run if it is a search, and how often it runs."""

    event: Any
    search: Guarantee | None
    times: int


class SelectionAccountant(PrivacyAccountant):  # type: ignore[misc]
    """A `PrivacyAccountant` of dp-accounting whose bounds are dpselect's.

    It takes the events that either accountant of dp-accounting takes, in any composition, and `RepeatAndSelectDpEvent`
    of all of them. A search costs what `best_of` says, mostly 20 to 35 % less than by `RdpAccountant`. Other events
    cost the smaller of their loss distribution and their Renyi divergence.

    Under REPLACE_ONE it refuses Laplace noise, whose sensitivity its event leaves open. Under REPLACE_SPECIAL it takes
    Gaussian, Laplace and discrete Laplace noise, Poisson samples of the first two, and searches of these. Replacing a
    row by a zero record then costs as much as removing it.

    Args:
        neighboring_relation: the neighbours for which noise and clipping were set up; ADD_OR_REMOVE_ONE unless given.

    Raises:
        ArgumentError: if `neighboring_relation` is not a `NeighboringRelation`.

    Source: docs/theory/optimal-selection.md, Theorem 1, for searches.

    >>> from dp_accounting import GaussianDpEvent
    >>> from dp_accounting.dp_event import RepeatAndSelectDpEvent
    >>> accountant = SelectionAccountant().compose(RepeatAndSelectDpEvent(GaussianDpEvent(4.0), mean=10, shape=1))
    >>> round(accountant.get_epsilon(1e-6), 3)
    1.557
    """

    def __init__(self, neighboring_relation: NeighboringRelation = NeighboringRelation.ADD_OR_REMOVE_ONE) -> None:
        if not isinstance(neighboring_relation, NeighboringRelation):
            raise ArgumentError(
                f"neighboring_relation must be a dp_accounting.NeighboringRelation, got {neighboring_relation!r}"
            )
        super().__init__(neighboring_relation)
        self._parts: list[_CountedEvent] = []
        self._private = True
        self._whole: Guarantee | None = None

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        """As the base class says: compose, or find out whether it can be done, and return why not."""
        if isinstance(event, dp_event.NoOpDpEvent):
            return None
        try:
            if isinstance(event, dp_event.NonPrivateDpEvent) or _is_without_noise(event):
                self._private = self._private and not do_compose
                return None
            if isinstance(event, dp_event.ComposedDpEvent) and isinstance(event.events, (list, tuple)):
                found = (self._maybe_compose(part, count, do_compose) for part in event.events)
                return next((details for details in found if details is not None), None)
            if isinstance(event, dp_event.SelfComposedDpEvent):
                times = count * integer("count", event.count, at_least=0)
                return self._maybe_compose(event.event, times, do_compose)
            if isinstance(event, dp_event.RepeatAndSelectDpEvent):
                return self._maybe_search(event, count, do_compose)
            self._add(event, count, do_compose)
        except ArgumentError as error:
            return PrivacyAccountant.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        return None

    def _add(self, event: Any, count: int, do_compose: bool) -> None:
        """Compose an event that is neither a composition nor a search."""
        sampled = isinstance(event, dp_event.PoissonSampledDpEvent)
        special = self.neighboring_relation is NeighboringRelation.REPLACE_SPECIAL
        if special and not isinstance(event.event if sampled else event, _LIKE_REMOVAL):
            raise ArgumentError("under REPLACE_SPECIAL only Gaussian and Laplace noise cost as much as a removal")
        from_dp_event(event, adjacency=_ADJACENCIES[self.neighboring_relation])
        self._append(_CountedEvent(deepcopy(event), None, integer("count", count, at_least=0)), do_compose)

    def _maybe_search(self, event: Any, count: int, do_compose: bool) -> Any:
        """Compose a search, whose base is what an accountant of its own says."""
        base = SelectionAccountant(self.neighboring_relation)
        details = base._maybe_compose(event.event, 1, do_compose=True)
        if details is not None:
            return details
        count = integer("count", count, at_least=0, at_most=_MOST_SEARCHES)
        law = _law(event.mean, event.shape)
        if not base._private:
            self._private = self._private and not do_compose
        elif base._parts:
            guarantee = base._composed() if law is None else best_of(base._composed(), law)
            self._append(_CountedEvent(deepcopy(event), guarantee, count), do_compose)
        return None

    def _append(self, part: _CountedEvent, do_compose: bool) -> None:
        if not do_compose or part.times == 0:
            return
        self._whole = None
        for i, known in enumerate(self._parts):
            if type(known.event) is type(part.event) and known.event == part.event:
                self._parts[i] = known._replace(times=known.times + part.times)
                return
        self._parts.append(part)

    def _composed(self) -> Guarantee:
        """Everything so far. Under REPLACE_SPECIAL its adjacency is that of a removal, which costs as much."""
        if self._whole is None:
            adjacency = _ADJACENCIES[self.neighboring_relation]
            parts: list[Guarantee] = []
            for event, search, times in self._parts:
                repeated = dp_event.SelfComposedDpEvent(event, times)
                parts += [from_dp_event(repeated, adjacency=adjacency)] if search is None else [search] * times
            self._whole = compose(*parts) if parts else pure_dp(epsilon=0.0, adjacency=adjacency)
        return self._whole

    def guarantee(self) -> Guarantee:
        """Return the guarantee of everything that was composed, for `best_of`, `compose` or a ledger.

        Raises:
            ArgumentError: if something without privacy was composed, or under REPLACE_SPECIAL, for which dpselect has
                no adjacency.
        """
        if not self._private:
            raise ArgumentError("this accountant has composed a NonPrivateDpEvent: there is no guarantee")
        if self.neighboring_relation is NeighboringRelation.REPLACE_SPECIAL:
            raise ArgumentError("dpselect has no adjacency for REPLACE_SPECIAL: use get_epsilon and get_delta")
        return self._composed()

    def get_epsilon(self, target_delta: float) -> float:
        """Return the epsilon of everything so far at this delta, rounded up, or inf if none is proved.

        Raises:
            ArgumentError: if `target_delta` is not in [0, 1].
        """
        target_delta = number("target_delta", target_delta, at_least=0.0, at_most=1.0, rounding="down")
        return self._composed().epsilon(target_delta) if self._private else math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """Return the delta of everything so far at this epsilon, rounded up.

        Raises:
            ArgumentError: if `target_epsilon` is negative.
        """
        target_epsilon = number("target_epsilon", target_epsilon, at_least=0.0, finite=False, rounding="down")
        return self._composed().delta(target_epsilon) if self._private else 1.0


def _is_without_noise(event: Any) -> bool:
    """Whether noise is zero, as searches for a noise multiplier try. dp-accounting prices it like no privacy."""
    inner = event.event if isinstance(event, dp_event.PoissonSampledDpEvent) else event
    noisy = isinstance(inner, (dp_event.GaussianDpEvent, dp_event.LaplaceDpEvent))
    return noisy and number("noise_multiplier", inner.noise_multiplier, rounding="down") == 0.0


def _law(mean: float, shape: float) -> Repetitions | None:
    """The law of a `RepeatAndSelectDpEvent` (Papernot, Steinke 2022, Definition 1), or None for exactly one run."""
    mean = number("mean", mean, above=0.0, rounding="up")
    shape = number("shape", shape, at_least=0.0, finite=False)
    if shape == math.inf:
        return Poisson(mean=mean)
    if mean < 1.0:
        raise ArgumentError(
            f"mean must be at least 1 for shape {shape!r}, got {mean!r}: such a distribution runs once at least"
        )
    if mean == 1.0:
        return None
    if shape == 0.0:
        return Logarithmic.with_mean(mean=mean)
    return Geometric.with_mean(mean=mean) if shape == 1.0 else TruncatedNegativeBinomial.with_mean(eta=shape, mean=mean)
