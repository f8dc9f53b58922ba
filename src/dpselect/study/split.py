"""Which rows train and which validate: decided row by row, never by permuting the table.

Under add_or_remove_one a row's part is a keyed hash of that row alone (of its key column when the study names one), so
a row that is added or removed changes one part and moves no other row. Under replace_one it is a keyed hash of the
row's position, so that a replaced row stays in its part. Either way a row pays for one part only.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from numpy.typing import NDArray

from dpselect.privacy import Adjacency
from dpselect.study.data import Rows

__all__ = ["validation_mask"]


def validation_mask(rows: Rows, *, fraction: float, adjacency: Adjacency, salt: str) -> NDArray[np.bool_]:
    """True for the rows that validate; each with probability `fraction` over the salt (public)."""
    key = hashlib.sha256(b"dpselect split " + salt.encode()).digest()
    by_position = adjacency is Adjacency.REPLACE_ONE
    identities = (i.to_bytes(8, "little") for i in range(len(rows.digests))) if by_position else iter(rows.digests)
    words = [int.from_bytes(hmac.digest(key, identity, "sha256")[:8], "little") for identity in identities]
    return np.array(words, dtype=np.uint64) < np.uint64(int(fraction * 2.0**64))
