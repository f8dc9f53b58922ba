"""Several private quantiles for each group of rows, in one release."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, SupportsFloat, cast

from dpselect.errors import ArgumentError, expect, number
from dpselect.mechanisms import Mechanism
from dpselect.ordered.domains import Categories
from dpselect.ordered.order_statistics.methods.method import DrawnCodes
from dpselect.ordered.order_statistics.recursive import equal_share
from dpselect.ordered.order_statistics.several import Quantiles, QuantilesRelease
from dpselect.ordered.sources.declared import Column
from dpselect.ordered.sources.engine_column import engine_column
from dpselect.ordered.sources.groups import columns_by_group, parse_names
from dpselect.privacy import Adjacency, Guarantee, Release, Spender
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource

__all__ = ["GroupedQuantiles", "GroupedQuantilesRelease", "quantiles_by_group"]


@dataclass(frozen=True, kw_only=True)
class GroupedQuantiles(Mechanism):
    """Private quantiles of a `Column` for each group of its rows, for the epsilon of one group.

    Claim: all answers together have the guarantee of `quantiles`. A row is in at most one group, and its own cell alone
    decides which. So a row more or less changes the answers of one group. A replaced row may leave one group and enter
    another. So under "replace_one" each group is drawn at half of epsilon, under "add_or_remove_one".

    Source: docs/theory/groups.md, Theorems 1 and 2.

    Args:
        names: the names of the groups, public. A cell is in the group of the equal name: 1, 1.0, "1" and True are one,
            blanks around a cell do not count, and text is compared in NFC. Rows of other groups take no part.
        quantiles: the quantiles of every group, with the epsilon and the adjacency of the whole release. Its
            `expected_rows` are those of a group.

    Raises:
        ArgumentError: if an argument does not fit, never because of the values. Also for the method "slice" under
            "replace_one", and for weights.

    >>> from dpselect.ordered import Quantiles
    >>> asked = GroupedQuantiles(names=["north", "south"], quantiles=Quantiles(qs=[0.5], epsilon=1.0))
    >>> asked.guarantee.epsilon(delta=0)
    1.0
    >>> from dpselect.ordered import Column
    >>> found = asked(Column(range(1000), lower=0, upper=999), ["north", "south"] * 500).value
    >>> sorted(found)
    ['north', 'south']
    """

    names: Any
    quantiles: Quantiles
    named: Categories = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        expect("quantiles", self.quantiles, Quantiles)
        named, asked = parse_names(self.names), self.quantiles
        self._parsed(named=named, names=named.names)
        if asked.units > 1:
            raise ArgumentError("quantiles: by group rows have no weights, so units must be 1")
        if asked.adjacency is Adjacency.REPLACE_ONE:
            number("epsilon", asked.epsilon, at_least=2.0**-28, rounding="down")
            if asked.delta is not None:
                raise ArgumentError(
                    "method: by group 'slice' has no price under replace_one. Take another method, or add_or_remove_one"
                )

    @property
    def drawn(self) -> Quantiles:
        """The quantiles that are drawn for each group: `quantiles`, or for replaced rows those at half of epsilon."""
        asked = self.quantiles
        if asked.adjacency is Adjacency.ADD_OR_REMOVE_ONE:
            return asked
        return replace(asked, epsilon=equal_share(asked.epsilon, 2), adjacency=Adjacency.ADD_OR_REMOVE_ONE)

    @property
    def guarantee(self) -> Guarantee:
        """That of `quantiles` by the method of `drawn`. With "auto" it depends on the domain."""
        drawn = self.drawn
        asked = replace(self.quantiles, method=drawn.chosen)
        if drawn.chosen == "recursive" and drawn is not self.quantiles:
            asked = replace(asked, epsilon=2.0 * drawn.epsilon)  # the same shares of levels as are drawn
        whole = asked.guarantee
        terms = {**whole.terms, "mechanism": "quantiles by group", "groups": len(self.names)}
        return replace(whole, terms=terms)

    def bind(self, *data: Any) -> tuple[GroupedQuantiles, tuple[list[Column]]]:
        """With the size of the column's domain, and a column for each group."""
        values, groups = data if len(data) == 2 else (*data, None)
        column = Column.of(values, {})
        columns = columns_by_group(column, groups, self.named)
        drawn, _ = self.drawn.bind(column)  # refuses a domain that is too large
        asked = replace(self.quantiles.of_size(column.domain.size), method=drawn.chosen)
        return replace(self, quantiles=asked), (columns,)

    def prepared(self, columns: list[Column]) -> Callable[[RandomSource], list[DrawnCodes]]:
        """The codes for each group, in the order of `names`."""
        each = [self.drawn.prepared(column) for column in columns]
        return lambda random: [draw(random) for draw in each]

    def form(self, *data: Any) -> Callable[..., GroupedQuantilesRelease]:
        """The values of each group with what is known of their accuracy."""
        (columns,) = data

        def release(value: list[DrawnCodes], **paid_for: Any) -> GroupedQuantilesRelease:
            each = zip(self.names, columns, value, strict=True)
            groups = {name: self.drawn.form(column)(codes, **paid_for) for name, column, codes in each}
            values = {name: found.value for name, found in groups.items()}
            return GroupedQuantilesRelease(value=values, groups=groups, **paid_for)

        return release


@dataclass(frozen=True, kw_only=True)
class GroupedQuantilesRelease(Release):
    """Private quantiles by group: `value` maps the name of each group to its list, in the order of `qs`.

    Args:
        groups: the release of each group, by its name. The guarantee and the receipt of each are those of the whole.
    """

    groups: Mapping[Any, QuantilesRelease]

    def rank_errors(self, failure_probability: SupportsFloat = 0.05) -> dict[Any, list[float]]:
        """For each group what `QuantilesRelease.rank_errors` says, all groups together except with this probability."""
        failure = number("failure_probability", failure_probability, above=0.0, below=1.0)
        return {name: found.rank_errors(failure / len(self.groups)) for name, found in self.groups.items()}


@options_of(Quantiles, Column)
def quantiles_by_group(
    values: Any,
    groups: Any = None,
    *,
    names: Iterable[Any],
    qs: Iterable[SupportsFloat],
    epsilon: SupportsFloat,
    spender: Spender | None = None,
    label: str = "quantiles by group",
    random: RandomSource | None = None,
    **options: Any,
) -> GroupedQuantilesRelease:
    """Return several private quantiles of the values of each group, for the price of one group.

    It runs `GroupedQuantiles` on a `Column` of the values. Give the names of the groups, because names that are read
    off the data would tell who is in it.

    Args:
        values: a `Column`, or the values that one takes, private: in memory, or of a file by `open_column`.
        groups: the group of each row, private: text, numbers or booleans. None for a column that
            `open_column(file or URL, column, by=...)` opened with its groups. For a frame of Ibis or a lazy one of
            polars with two columns: the name of the column that holds the groups.
        names: the names of the groups that are answered, public. Rows of other groups take no part.
        qs: the quantiles, each from 0 to 1, in any order and with repeats, public.
        epsilon: the privacy cost of all answers together, from 2**-30 to 2**20. Under "replace_one" it is at least
            2**-28, and each group is drawn at half of it.
        spender: pays the cost before the rows are read. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: `method`, `delta`, `expected_rows` (in a group) and `adjacency` of `Quantiles`. If `values` is not a
            `Column`, also the attributes of one, but for weights.

    Returns:
        A `GroupedQuantilesRelease`. Its `value` maps each name to a list in the order of `qs`.

    Raises:
        ArgumentError: if an argument does not fit, never because of the values.
        BoundUnavailableError: if there is no such method, or no slicing costs at most epsilon at `delta`.
        TypeError: if an argument or the type of the values does not fit.
        BudgetError: if the spender refuses.

    Source: McSherry 2009, Theorem 4.

    >>> from dpselect.randomness import keyed_source
    >>> release = quantiles_by_group(range(10_000), ["low"] * 5000 + ["high"] * 5000, names=["low", "high"], qs=[0.5],
    ...     lower=0, upper=10_000, granularity=100, epsilon=1.0, random=keyed_source(1))
    >>> release.value, release.guarantee.epsilon(delta=0)
    ({'low': [2500.0], 'high': [7500.0]}, 1.0)
    """
    if isinstance(groups, str) and (split := engine_column(values, groups)) is not None:
        values, groups = split, None
    column = Column.of(values, options)
    asked = GroupedQuantiles(names=names, quantiles=Quantiles(qs=qs, epsilon=cast("Any", epsilon), **options))
    found = asked(column, groups, spender=spender, label=label, random=random)
    return cast("GroupedQuantilesRelease", found)
