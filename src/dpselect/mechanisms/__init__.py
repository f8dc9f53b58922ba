"""Primitives that add noise: on a grid, with exact laws where the noise is a whole number."""

from dpselect.mechanisms.gaussian_noise import gaussian_steps
from dpselect.mechanisms.grid import add_on_grid, grid_at_most, round_to_grid, rounding_sensitivity
from dpselect.mechanisms.noisy_count import discrete_gaussian, discrete_laplace, noisy_count, noisy_count_guarantee

__all__ = [
    "add_on_grid",
    "discrete_gaussian",
    "discrete_laplace",
    "gaussian_steps",
    "grid_at_most",
    "noisy_count",
    "noisy_count_guarantee",
    "round_to_grid",
    "rounding_sensitivity",
]
