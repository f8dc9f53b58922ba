"""The type of arrays of doubles."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array"]

Array = NDArray[np.float64]
