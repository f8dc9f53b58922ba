"""A column as order statistics read it."""

import numpy as np

from dpselect.ordered import open_column


def seconds(values):
    """Time stamps as a study has them."""
    if values.dtype.kind != "M":
        return values.astype(float)
    return np.where(np.isnat(values), np.nan, values.astype("M8[us]").astype(np.int64) / 1e6)


def of_quantile(path, **declared):
    with open_column(str(path), "x", **declared) as source:
        blocks = [(seconds(values), present) for values, present in source.blocks()]
        return np.concatenate([v if there is None else np.where(there, v, np.nan) for v, there in blocks])
