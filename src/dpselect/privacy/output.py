"""Output guarantees: an epsilon for each cell of a partition of the outputs, and one delta."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dpselect.errors import ArgumentError, number
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.mechanisms import approximate_dp

__all__ = ["OutputGuarantee"]


@dataclass(frozen=True, kw_only=True)
class OutputGuarantee:
    """What an output leaks depends on the cell it falls in (Hartmann et al., output differential privacy).

    `cell` maps an output to a cell, `epsilons` gives each cell's price, and `delta` is common to all cells. The
    partition must be fixed without looking at the data (owed by the caller).

    >>> g = OutputGuarantee(cell=lambda output: output is None, epsilons={True: 0.1, False: 1.0})
    >>> g.worst().epsilon(delta=0), g.observed(None).epsilon(delta=0)
    (1.0, 0.1)
    """

    cell: Callable[[Any], Hashable]
    epsilons: Mapping[Hashable, float]
    delta: float = 0.0
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        if not callable(self.cell):
            raise TypeError("cell must be a callable from outputs to cells")
        if not self.epsilons:
            raise ArgumentError("epsilons must have at least one cell")
        parsed = {cell: number("epsilons", value, at_least=0.0) for cell, value in self.epsilons.items()}
        object.__setattr__(self, "epsilons", MappingProxyType(parsed))
        object.__setattr__(self, "delta", number("delta", self.delta, at_least=0.0, below=1.0))
        object.__setattr__(self, "adjacency", parse_adjacency(self.adjacency))

    def __reduce__(self) -> tuple[Any, ...]:
        # a mapping proxy can be neither pickled nor copied
        return _rebuild, (self.cell, dict(self.epsilons), self.delta, self.adjacency)

    def _priced(self, epsilon: float) -> Guarantee:
        return approximate_dp(epsilon=epsilon, delta=self.delta, adjacency=self.adjacency)

    def worst(self) -> Guarantee:
        """The ordinary guarantee: the dearest cell."""
        return self._priced(max(self.epsilons.values()))

    def observed(self, output: Any) -> Guarantee:
        """The guarantee at the cell of an output that occurred; delta is never refunded.

        Raises `ArgumentError`, without quoting the output, when its cell is not in the partition.
        """
        cell = self.cell(output)
        if cell not in self.epsilons:
            raise ArgumentError("cell: the output falls in a cell that epsilons does not price")
        return self._priced(self.epsilons[cell])


def _rebuild(
    cell: Callable[[Any], Hashable], epsilons: Mapping[Hashable, float], delta: float, adjacency: Adjacency
) -> OutputGuarantee:
    return OutputGuarantee(cell=cell, epsilons=epsilons, delta=delta, adjacency=adjacency)
