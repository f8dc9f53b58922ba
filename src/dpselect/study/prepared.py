"""Between the rows and the split of a study: bounds that are bought, on all private rows, before any run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpselect.randomness import RandomSource
from dpselect.study.bounds import Purchase, buy, known_columns
from dpselect.study.columns import Column
from dpselect.study.data import Rows
from dpselect.study.opened import Opened
from dpselect.study.split import StudyObjective, split
from dpselect.tuning import Preparation

__all__ = ["model_parts", "prepared", "with_bounds"]

Array = NDArray[np.float64]


def prepared(opened: Opened) -> StudyObjective | Preparation:
    """One run of the search, or where bounds are private what buys them first; with the price of all else there is."""
    price = opened.priced.price
    if price.beside is None:
        return split(opened)
    return Preparation(partial(_bought, opened, price.purchase), price.beside)


def model_parts(
    value: Sequence[Array], purchase: Purchase | None, columns: Mapping[str, Column]
) -> tuple[Sequence[Array], Mapping[str, Column]]:
    """The weights that a run returned, and the columns with the bounds that it was trained with."""
    if purchase is None:
        return value, columns
    *weights, limits = value
    return weights, known_columns(purchase, columns, limits)


def _bought(opened: Opened, purchase: Purchase | None, random: RandomSource) -> StudyObjective:
    if purchase is None:
        return split(opened)
    settled = opened.priced.settled
    limits = buy(purchase, settled.columns, opened.rows.numbers, random)
    columns = known_columns(purchase, settled.columns, limits)
    known = replace(
        settled,
        columns=columns,
        recipe=replace(settled.recipe, columns=columns),
        candidates=tuple(replace(one, recipe=replace(one.recipe, columns=columns)) for one in settled.candidates),
    )
    rows, public = (with_bounds(part, columns) for part in (opened.rows, opened.validation))
    priced = replace(opened.priced, settled=known)
    return replace(split(replace(opened, priced=priced, rows=rows, validation=public)), beside=(limits,))


def with_bounds(rows: Any, columns: Mapping[str, Column]) -> Any:
    """The same rows, in the same parts, with features by the bounds of these columns."""
    if rows is None:
        return None
    assert isinstance(rows, Rows)
    features, end = rows.features.copy(), 0
    for name, column in columns.items():
        start, end = end, end + column.width
        if name in rows.numbers:
            features[:, start:end] = column.features(rows.numbers[name])
    return replace(rows, features=features)
