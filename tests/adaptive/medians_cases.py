"""One grid of each kind."""

from __future__ import annotations

from dpselect.adaptive import explicit_grid, integer_grid, logarithmic_grid
from dpselect.adaptive.grids import float_grid, uniform_grid

GRIDS = {
    "uniform": uniform_grid(-1, 1, 0.1),
    "integers": integer_grid(-7, 12),
    "logarithmic": logarithmic_grid(1e-3, 1e6, ratio=1.5),
    "explicit": explicit_grid([3, -1, 0.5, 100, 2.25]),
    "doubles": float_grid(-10, 1e9),
}
