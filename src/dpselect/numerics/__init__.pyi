from .logs import (
    ROUND_UP as ROUND_UP,
    fraction_up as fraction_up,
    log1mexp as log1mexp,
    log_weighted_sum as log_weighted_sum,
    sum_up as sum_up,
)
from .search import largest_unsafe as largest_unsafe, minimise as minimise, smallest_safe as smallest_safe
