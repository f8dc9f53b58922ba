from .cells import Supremum as Supremum, supremum_over_cells as supremum_over_cells
from .digits import rounded as rounded, rounded_down as rounded_down, rounded_up as rounded_up
from .logs import (
    ROUND_UP as ROUND_UP,
    fraction_up as fraction_up,
    log1mexp as log1mexp,
    log_weighted_sum as log_weighted_sum,
    sum_up as sum_up,
)
from .search import (
    Array as Array,
    crossing as crossing,
    first_true as first_true,
    last_true as last_true,
    minimise as minimise,
    root_between as root_between,
    root_on_grids as root_on_grids,
)
