"""Bounds that no one knows are estimated privately, by quantiles of the columns.

One exponential mechanism draws two quantiles of a column. The bounds are a little more than half their distance below
and above their middle. The domain is a fine grid on a symmetric logarithm of the values, so bounds of any magnitude are
found. Values beyond the bounds are clipped.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpselect.accounting import calibrate
from dpselect.errors import BudgetError, StudyError
from dpselect.numerics.digits import rounded_up
from dpselect.numerics.search import Array
from dpselect.privacy import Adjacency, Guarantee, gaussian
from dpselect.privacy.composition import together
from dpselect.randomness import RandomSource
from dpselect.study.columns.column import Column
from dpselect.study.schema import Study

if TYPE_CHECKING:
    from dpselect.ordered import Quantiles

__all__ = ["Purchase", "buy", "known_columns", "purchase_of"]

QUANTILES: Final = (0.15, 0.85)
WIDER: Final = 1.6
"""Bounds lie by so many half distances of the quantiles around their middle."""
SHARES: Final = (0.1, 0.2)
"""Of the total, in squares of its Gaussian differential privacy parameter: the second where the first finds nothing."""
ENOUGH: Final = {True: 100.0, False: 150.0}
"""Rows times epsilon of a column from which its bounds are found, with `within` declared and without."""
_FINEST: Final = 1e-3
_UNIT: Final = 1e-6
_NARROWEST: Final = 1e-6


@dataclass(frozen=True)
class Purchase:
    """The bounds that are estimated privately, and their cost in all. Public.

    `epsilon` is that of one column's quantiles. `share` is the part of the total that it comes from, None if the study
    gives an epsilon. Bounds are found once the number of rows times the epsilon of one row reaches `enough`. A person
    with `per_person` rows pays `epsilon`, so that one row has so large a part of it.

    Claim: each row moves the logarithms of the probabilities within a range of epsilon / per_person, and so many rows
    within a range of epsilon. Source: docs/theory/persons.md, Theorem 2.
    """

    columns: tuple[str, ...]
    epsilon: float
    share: float | None
    adjacency: Adjacency
    enough: float
    per_person: int = 1

    @property
    def row_epsilon(self) -> float:
        """The epsilon of one column for one row."""
        return self.epsilon if self.per_person == 1 else self.epsilon / self.per_person * (1.0 - 2.0**-50)

    @property
    def mechanism(self) -> Quantiles:
        """The mechanism that is run on each column."""
        from dpselect.ordered import Quantiles  # which other studies need not load

        return Quantiles(qs=QUANTILES, epsilon=self.row_epsilon, method="joint", adjacency=self.adjacency)

    @property
    def guarantee(self) -> Guarantee:
        """The price of all of them."""
        return together(*[replace(self.mechanism, epsilon=self.epsilon).guarantee] * len(self.columns))

    @property
    def rows(self) -> int:
        """How many rows it takes."""
        return math.ceil(self.enough / self.row_epsilon)

    def describe(self, rows: float | None, delta: float) -> dict[str, Any]:
        """A JSON-able description, with the rows that it takes. `rows` is the public number of rows."""
        return {
            "columns": list(self.columns),
            "column_epsilon": self.epsilon,
            "share": self.share,
            "epsilon": self.guarantee.epsilon(delta),
            "rows_needed": self.rows,
            "warning": self.too_few_rows_warning(rows),
        }

    def too_few_rows_warning(self, rows: float | None) -> str | None:
        """Warn if so many rows are too few. None if they are enough, or not known."""
        if rows is None or rows >= self.rows:
            return None
        price = f"bounds of {len(self.columns)} columns are bought at epsilon {rounded_up(self.epsilon, digits=2)} each"
        return (
            f"{price}, which takes about {self.rows} rows, and there are {rows:.0f}: some will be far too wide or "
            'beside the values, and the model poor. Declare bounds, declare a narrow "within", buy fewer, or raise the '
            "total or [preparation] share"
        )


def purchase_of(study: Study, columns: Mapping[str, Column]) -> Purchase | None:
    """Return the private bounds of these columns, None if all bounds are public.

    Raises `StudyError` for a [preparation] that does not fit, `BudgetError` for a total that cannot be had.
    """
    names = tuple(name for name, column in columns.items() if column.private)
    asked, privacy = study.preparation, study.privacy
    if not names:
        if asked.epsilon is not None or asked.share is not None:
            raise StudyError('preparation: there is no column with bounds = "private" that it could be spent on')
        return None
    enough = max(ENOUGH[columns[name].within is not None] for name in names)
    if privacy.adjacency is Adjacency.REPLACE_ONE:
        enough /= 1 - QUANTILES[0]  # a replaced row moves the score by 2, an added one by 2 (1 - .15)

    def bought(epsilon: float, share: float | None = None) -> Purchase:
        return Purchase(names, epsilon, share, privacy.adjacency, enough, privacy.per_person)

    if asked.epsilon is not None:
        if privacy.epsilon is not None and asked.epsilon >= privacy.epsilon:
            raise BudgetError("preparation.epsilon: must be below privacy.epsilon, which is for all of the study")
        try:  # the largest epsilon of one column with which all cost this much
            noise = calibrate(lambda scale: bought(1.0 / scale).guarantee, epsilon=asked.epsilon, delta=privacy.delta)
        except BudgetError as error:
            raise BudgetError(f"preparation.epsilon: {error}") from None
        return bought(1.0 / noise)
    if privacy.epsilon is None:
        raise StudyError("preparation.epsilon: needed for private bounds where [privacy] gives a noise_multiplier")
    offers = [
        bought(_of_share(share, privacy.epsilon, privacy.delta, len(names)), share)
        for share in (SHARES if asked.share is None else (asked.share,))
    ]
    return next((one for one in offers if one.too_few_rows_warning(privacy.nominal_rows or 0) is None), offers[-1])


def buy(purchase: Purchase, columns: Mapping[str, Column], numbers: Mapping[str, Array], random: RandomSource) -> Array:
    """The lower and upper bound of each column bought, shape (columns, 2), each drawn from a source of its own.

    `numbers` are the values, NaN where one is missing. No matter what they are, this does not fail.
    """
    from dpselect.ordered import Column as OrderedColumn

    limits = np.empty((len(purchase.columns), 2))
    for place, name in enumerate(purchase.columns):
        low, high = columns[name].limits
        unit = _UNIT if columns[name].within is None else _FINEST * max(abs(low), abs(high))
        ends = [float(_spread(np.array(end), unit)) for end in (low, high)]
        kept = np.clip(numbers[name], low, high)
        values = OrderedColumn(_spread(kept, unit), lower=ends[0], upper=ends[1])
        first, last = _spread_back(np.array(purchase.mechanism(values, random=random.spawn(name)).value), unit)
        middle, half = first / 2 + last / 2, WIDER * (last / 2 - first / 2)
        half = max(half, _NARROWEST * max(abs(middle), unit))
        limits[place] = np.clip((middle - half, middle + half), low, high)
    return limits


def known_columns(purchase: Purchase, columns: Mapping[str, Column], limits: Array) -> dict[str, Column]:
    """The columns with the bounds that were bought."""
    bought = dict(zip(purchase.columns, limits.tolist(), strict=True))
    return {name: column.bought(*bought[name]) if name in bought else column for name, column in columns.items()}


def _of_share(share: float, epsilon: float, delta: float, count: int) -> float:
    """Epsilon of one column of so many that together have this share.

    A mechanism of bounded range e is about as private as a Gaussian one with parameter e/2, and squares add up. Without
    delta epsilons add up.
    """
    if delta == 0.0:
        return share * epsilon / count
    mu = 1.0 / calibrate(lambda noise: gaussian(noise_multiplier=noise), epsilon=epsilon, delta=delta)
    return mu * math.sqrt(4.0 * share / count)


def _spread(values: Array, unit: float) -> Array:
    """A symmetric logarithm: as it is near 0, where `unit` is what near means."""
    return np.asarray(np.copysign(np.log1p(np.abs(values) / unit), values))


def _spread_back(values: Array, unit: float) -> Array:
    return np.asarray(np.copysign(np.expm1(np.abs(values)) * unit, values))
