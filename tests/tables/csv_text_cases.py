"""Columns as order statistics and studies read them."""

import numpy as np

from dpselect.ordered import open_column
from dpselect.study.columns.column import Column
from dpselect.study.data import cells_of
from dpselect.tables.table import open_table


def of_quantile(path):
    with open_column(str(path), "x") as source:
        return np.concatenate([values for values, _ in source.blocks()])


def of_study(path):
    return numbers_of(cells_of(open_table(path.name, path.parent), ["x"], ["x"])["x"])


def numbers_of(cells):
    return Column(bounds=(0, 1), missing=0.5).numbers("x", cells)
