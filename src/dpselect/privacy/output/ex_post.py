"""A released value with the privacy that was lost by releasing it, in the one form that post-processing cannot break.

The loss is a function of the cell of the released value and of nothing else: there is no argument through which a loss
that depends on a run count, a losing candidate or another secret could be reported. See docs/ex-post.md.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.output.guarantee import OutputGuarantee
from dpselect.privacy.promises import output_promise
from dpselect.privacy.realised import RealisedPrice
from dpselect.privacy.release import Receipt, Release

__all__ = ["ExPostRelease", "ex_post"]


@dataclass(frozen=True, kw_only=True)
class ExPostRelease:
    """A released value and the output guarantee of the mechanism that made it, fixed before the mechanism ran.

    `epsilon` is what this value costs in a ledger that reserved `guarantee` (Hartmann et al. 2022, Theorem 7). On its
    own, without a ledger that reserved the worst case first, the value has the ordinary guarantee `worst()`.

    Raises `ArgumentError`, without quoting the value, when it is in no cell of the partition.

    >>> gate = OutputGuarantee(cell=lambda model: model is None, epsilons={True: 0.1, False: 1.0})
    >>> release = ExPostRelease(value=None, guarantee=gate)
    >>> release.epsilon, release.worst().epsilon(delta=0)
    (0.1, 1.0)
    """

    value: Any
    guarantee: OutputGuarantee
    receipt: Receipt | None = None
    replayable: bool = False

    def __post_init__(self) -> None:
        output_promise("guarantee", self.guarantee).price(self.cell)

    @property
    def cell(self) -> Hashable:
        """The cell of the value: the only thing that its price depends on."""
        return self.guarantee.cell(self.value)

    @property
    def epsilon(self) -> float:
        """The price of the cell that occurred."""
        return self.guarantee.price(self.cell)

    @property
    def delta(self) -> float:
        """The delta of the mechanism, common to all cells and never refunded."""
        return self.guarantee.delta

    @property
    def realised(self) -> RealisedPrice:
        """The price of the value, with its delta and adjacency."""
        return self.guarantee.observed(self.value)

    def worst(self) -> Guarantee:
        """The ordinary guarantee of the mechanism: that of the class of outputs with the largest epsilon."""
        return self.guarantee.worst()

    def as_release(self) -> Release:
        """The value with its ordinary guarantee, and the price of its cell beside it."""
        return Release(
            value=self.value,
            guarantee=self.worst(),
            receipt=self.receipt,
            replayable=self.replayable,
            realised=self.realised,
        )

    def processed(self, function: Callable[[Any], Any]) -> ExPostRelease:
        """Post-processing: the value becomes (cell, function(value)), and every price and delta stays.

        The cell stays in the output, since the price is a function of it. To hide the cell as well, `coarsen` the
        guarantee with it: merged cells cost the largest of their prices. `function` uses no data (the caller must
        ensure it).

        >>> levels = OutputGuarantee(cell=len, epsilons={1: 0.5, 2: 1.0})
        >>> total = ExPostRelease(value=(3, 4), guarantee=levels).processed(sum)
        >>> total.value, total.epsilon
        ((2, 7), 1.0)
        """
        guarantee = OutputGuarantee(
            cell=_first,
            epsilons=self.guarantee.epsilons,
            delta=self.guarantee.delta,
            adjacency=self.guarantee.adjacency,
            supremum=self.guarantee.supremum,
        )
        return ExPostRelease(
            value=(self.cell, function(self.value)),
            guarantee=guarantee,
            receipt=self.receipt,
            replayable=self.replayable,
        )


def ex_post(guarantee: OutputGuarantee) -> Callable[..., ExPostRelease]:
    """The `form` of `paid` for releases that carry the whole output guarantee."""
    guarantee = output_promise("guarantee", guarantee)

    def form(value: Any, receipt: Receipt | None, replayable: bool, **_: Any) -> ExPostRelease:
        return ExPostRelease(value=value, guarantee=guarantee, receipt=receipt, replayable=replayable)

    return form


def _first(output: Any) -> Hashable:
    cell: Hashable = output[0]
    return cell
