"""Making output guarantees from others: each function is one rule, with its proof in a line or two.

Hartmann, Bindschaedler, Bentkamp, West, "Privacy accounting economics: improving differential privacy composition via
a posteriori bounds" (2022). Rules without a number follow from its Definition 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsFloat

from dpselect.errors import AdjacencyError, ArgumentError, number
from dpselect.numerics.logs import ROUND_UP, fraction_up, sum_up
from dpselect.privacy.adjacency import Adjacency, common_adjacency
from dpselect.privacy.output.amounts import charged_amount, charged_price
from dpselect.privacy.output.guarantee import OutputGuarantee
from dpselect.privacy.promises import output_promise, output_promises

__all__ = ["coarsen", "first_answer", "from_dp", "from_subsets", "mixture", "parallel", "pointwise_minimum"]

_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE
Table = Mapping[Hashable, float]


@dataclass(frozen=True)
class _Sequence:
    """Apply one function after another."""

    first: Callable[[Any], Hashable]
    then: Callable[[Any], Hashable]

    def __call__(self, output: Any) -> Hashable:
        return self.then(self.first(output))


@dataclass(frozen=True)
class _Paired:
    """The cells of a pair of outputs, or of one output under several partitions."""

    cells: tuple[Callable[[Any], Hashable], ...]
    of_pair: bool

    def __call__(self, output: Any) -> Hashable:
        parts = output if self.of_pair else (output,) * len(self.cells)
        return tuple(cell(part) for cell, part in zip(self.cells, parts, strict=True))


@dataclass(frozen=True)
class _Branch:
    """The cell of an output that carries which branch made it."""

    cells: tuple[tuple[Hashable, Callable[[Any], Hashable]], ...]

    def __call__(self, output: tuple[Hashable, Any]) -> Hashable:
        branch, value = output
        for name, cell in self.cells:
            if name == branch:
                return (name, cell(value))
        raise ArgumentError("the output comes from a branch that the mixture does not have")


def _table(guarantee: OutputGuarantee, name: str) -> Table:
    table = output_promise(name, guarantee).table
    if table is None:
        raise ArgumentError(f"{name} must price its cells by a mapping, not by a function")
    return table


def _made(
    parts: Sequence[OutputGuarantee],
    cell: Callable[[Any], Hashable],
    epsilons: Mapping[Any, float],
    *,
    delta: float,
) -> OutputGuarantee:
    """A guarantee made of others, interactive if one of them is. Raises `AdjacencyError` if adjacencies differ."""
    return OutputGuarantee(
        cell=cell,
        epsilons=epsilons,
        delta=delta,
        adjacency=common_adjacency(g.adjacency for g in parts),
        interactive=any(g.interactive for g in parts),
    )


def from_dp(
    *,
    epsilon: SupportsFloat,
    delta: SupportsFloat = 0.0,
    cell: Callable[[Any], Hashable],
    cells: Iterable[Hashable],
    adjacency: Adjacency | str = _DEFAULT,
) -> OutputGuarantee:
    """(epsilon, delta)-privacy is an output guarantee at epsilon for every partition.

    The way back is `OutputGuarantee.worst()`. There and back gives (epsilon, delta) again. Source: Hartmann et al.
    2022, Lemma 3.

    >>> from_dp(epsilon=1, delta=1e-6, cell=bool, cells=[True, False]).worst().epsilon(delta=1e-6)
    1.0
    """
    epsilon = number("epsilon", epsilon, at_least=0.0, rounding="up")
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="up")
    return OutputGuarantee(cell=cell, epsilons=dict.fromkeys(cells, epsilon), delta=delta, adjacency=adjacency)


def from_subsets(
    subsets: Mapping[Hashable, tuple[float, float]],
    *,
    cell: Callable[[Any], Hashable],
    adjacency: Adjacency | str = _DEFAULT,
) -> OutputGuarantee:
    """From (epsilon, delta)-privacy on each cell: the deltas add up. Loses nothing when all are 0.

    `subsets[c]` = (epsilon, delta) such that P(S) <= exp(epsilon) P'(S) + delta for all S inside cell c. Delta is
    rounded up. Raises `ArgumentError` when the deltas reach 1. Source: Hartmann et al. 2022, Lemma 6.

    >>> from_subsets({"answer": (1.0, 1e-6), "none": (0.5, 0.0)}, cell=str).delta
    1e-06
    """
    deltas = [number("delta", d, at_least=0.0, rounding="up") for _, d in subsets.values()]
    epsilons = {c: number("epsilon", e, at_least=0.0, rounding="up") for c, (e, _) in subsets.items()}
    return OutputGuarantee(cell=cell, epsilons=epsilons, delta=sum_up(deltas), adjacency=adjacency)


def coarsen(
    guarantee: OutputGuarantee, *, merge: Callable[[Hashable], Hashable], cell: Callable[[Any], Hashable] | None = None
) -> OutputGuarantee:
    """Merge cells: a merged cell costs as much as its largest part, and delta stays.

    For f applied to the output (post-processing), `cell` partitions the range of f, and `merge` must send a cell C to
    a cell that holds all of f(C) (you must ensure this). By default f is the identity. Raising prices keeps a
    guarantee, and the cells of f refine to the preimages.

    >>> g = OutputGuarantee(cell=len, epsilons={0: 0.1, 1: 0.2, 2: 0.3})
    >>> dict(coarsen(g, merge=lambda count: count > 0).epsilons)
    {False: 0.1, True: 0.3}
    """
    merged: dict[Hashable, float] = {}
    for part, epsilon in _table(guarantee, "guarantee").items():
        to = merge(part)
        merged[to] = max(merged.get(to, 0.0), epsilon)
    return _made([guarantee], cell or _Sequence(guarantee.cell, merge), merged, delta=guarantee.delta)


def mixture(branches: Mapping[Hashable, tuple[float, OutputGuarantee]]) -> OutputGuarantee:
    """A public coin chooses the mechanism and is released: outputs are (branch, output), priced by their branch.

    `branches[b]` = (probability, guarantee). The coin does not depend on the data (you must ensure this). delta is the
    mean of the deltas, rounded up. Without the coin in the output, `coarsen` the result.

    >>> noisy = OutputGuarantee(cell=lambda output: "noisy", epsilons={"noisy": 1.0})
    >>> empty = OutputGuarantee(cell=lambda output: "empty", epsilons={"empty": 0.0})
    >>> toy = mixture({"heads": (0.5, noisy), "tails": (0.5, empty)})
    >>> toy.observed(("tails", None)).epsilon(delta=0), toy.worst_epsilon
    (0.0, 1.0)
    """
    guarantees = output_promises("every branch", [g for _, g in branches.values()])
    common_adjacency(g.adjacency for g in guarantees)
    weights = [number("probability", p, at_least=0.0, at_most=1.0) for p, _ in branches.values()]
    if abs(math.fsum(weights) - 1.0) > 1e-9:
        raise ArgumentError(f"the probabilities of a mixture must add up to 1, got {math.fsum(weights)!r}")
    tables = {name: _table(g, "every branch") for name, (_, g) in branches.items()}
    epsilons = {(name, part): epsilon for name, table in tables.items() for part, epsilon in table.items()}
    mean = sum_up([p * g.delta for p, g in zip(weights, guarantees, strict=True)])
    # a probability may be a rounding too small
    delta = min(mean * (ROUND_UP + 1e-9), max(g.delta for g in guarantees))
    cell = _Branch(tuple((name, g.cell) for name, (_, g) in branches.items()))
    return _made(guarantees, cell, epsilons, delta=delta)


def parallel(first: OutputGuarantee, second: OutputGuarantee) -> OutputGuarantee:
    """Mechanisms on disjoint parts of the data: outputs are pairs, the larger price and the larger delta count.

    A rule on a single row says which part it is in (you must ensure this). A neighbour then differs in one part, and
    the other mechanism runs on equal data. The second may be chosen after seeing the first output. Needs
    add-or-remove-one: a replaced row may leave one part and enter the other, and then both are charged.

    Raises `AdjacencyError` under replace-one.
    """
    first, second = output_promise("first", first), output_promise("second", second)
    adjacency = common_adjacency(g.adjacency for g in (first, second))
    if adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("parallel composition needs add_or_remove_one: a replaced row may change its part")
    left, right = _table(first, "first"), _table(second, "second")
    epsilons = {(a, b): max(left[a], right[b]) for a in left for b in right}
    cell = _Paired((first.cell, second.cell), of_pair=True)
    return _made([first, second], cell, epsilons, delta=max(first.delta, second.delta))


def pointwise_minimum(guarantees: Sequence[OutputGuarantee]) -> OutputGuarantee:
    """The smallest of several pure prices of one mechanism, on the common refinement of their partitions.

    With delta = 0 each is a bound on the ratio of probabilities at every output, so their minimum is one too. With a
    positive delta that is false, and choosing the nicest guarantee after the output is out is not allowed.

    Raises `ArgumentError` if a delta is positive.

    >>> by_sign = OutputGuarantee(cell=lambda x: x > 0, epsilons={True: 0.5, False: 1.0})
    >>> by_size = OutputGuarantee(cell=lambda x: abs(x) > 5, epsilons={True: 2.0, False: 0.7})
    >>> pointwise_minimum([by_sign, by_size]).observed(-3).epsilon(delta=0)
    0.7
    """
    guarantees = output_promises("guarantees", guarantees)
    if not guarantees:
        raise ArgumentError("guarantees must not be empty")
    common_adjacency(g.adjacency for g in guarantees)
    if any(g.delta > 0.0 for g in guarantees):
        raise ArgumentError("the pointwise minimum holds for pure guarantees only: some delta is positive")
    joint: dict[tuple[Hashable, ...], float] = {(): math.inf}
    for g in guarantees:
        table = _table(g, "every guarantee")
        joint = {(*cells, cell): min(so_far, e) for cells, so_far in joint.items() for cell, e in table.items()}
    return _made(guarantees, _Paired(tuple(g.cell for g in guarantees), of_pair=False), joint, delta=0.0)


def _stage(output: tuple[int, Any] | None) -> int:
    """0 for no answer, else the stage that answered."""
    if output is None:
        return 0
    if not isinstance(output, tuple) or len(output) != 2 or not isinstance(output[0], int) or output[0] < 1:
        raise ArgumentError("the output of a cascade must be None or (stage, value), with stages from 1 on")
    return output[0]


def first_answer(stages: Sequence[OutputGuarantee], *, none: Hashable) -> OutputGuarantee:
    """Mechanisms on the same data, one after the other, until one answers: outputs are (stage, value) or None.

    `none` is the cell of "no answer" in every stage. The next stage runs only after it. Stages count from 1. Their
    number and order do not depend on the data (you must ensure this). The cells of the result are the stages, and 0 for
    None:

        epsilon(j) = sum of epsilon_i(none) over i < j, plus the largest other epsilon of j;  epsilon(0) = their sum;
        delta = 1 - prod_i (1 - delta_i)

    Source: Hartmann et al. 2022, Lemmas 10 and 20. Proof by induction, with one more look at delta. Of the first
    stage's mass, exp(epsilon) times the neighbour's does not cover an excess x <= delta_1. The excess d of the rest can
    only follow the remaining mass, at most 1 - x: x + (1 - x) d <= delta_1 + (1 - delta_1) d. Their Lemma 10,
    propose-test-release with two stages, has one delta for both stages together. If each has its own, as here,
    Definition 9 does not give less than this. If the stage is not released, `coarsen` the result.

    Prices and delta are rounded up. Raises `ArgumentError` when a stage prices `none` or nothing else.

    >>> test = OutputGuarantee(cell=lambda y: y is not None, epsilons={True: 1.0, False: 0.5}, delta=0.01)
    >>> both = first_answer([test, test], none=False)
    >>> dict(both.epsilons), round(both.delta, 6), both.price(both.cell((2, "found")))
    ({0: 1.0, 1: 1.0, 2: 1.5}, 0.0199, 1.5)
    """
    stages = output_promises("stages", stages)
    if not stages:
        raise ArgumentError("stages must not be empty")
    common_adjacency(g.adjacency for g in stages)
    epsilons: dict[Hashable, float] = {}
    before, kept = Fraction(0), Fraction(1)
    for stage, guarantee in enumerate(stages, start=1):
        answers = {c: e for c, e in _table(guarantee, "every stage").items() if c != none}
        if not answers or len(answers) == len(_table(guarantee, "every stage")):
            raise ArgumentError("every stage must price `none` and at least one answer")
        epsilons[stage] = charged_price(before + charged_amount("epsilons", max(answers.values())))
        before += charged_amount("epsilons", guarantee.price(none))
        kept *= 1 - Fraction(guarantee.delta)
    return _made(stages, _stage, {0: charged_price(before), **epsilons}, delta=fraction_up(1 - kept))
