"""Primitives on scores and queries, and noise: exact laws wherever a comparison or a whole number leaves."""

from dpselect.mechanisms.bounded_range import bounded_range
from dpselect.mechanisms.choosing import ChoosingMechanism, choosing_mechanism
from dpselect.mechanisms.exponential import ExponentialMechanism, exponential_mechanism
from dpselect.mechanisms.flipping import PermuteAndFlip, permute_and_flip
from dpselect.mechanisms.gaussian_noise import gaussian_steps
from dpselect.mechanisms.generalised_exponential import (
    GeneralisedExponentialMechanism,
    generalised_exponential_mechanism,
)
from dpselect.mechanisms.grid import add_on_grid, grid_at_most, round_to_grid, rounding_sensitivity
from dpselect.mechanisms.large_margin import LargeMarginMechanism, large_margin_mechanism
from dpselect.mechanisms.noisy_count import discrete_gaussian, discrete_laplace, noisy_count, noisy_count_guarantee
from dpselect.mechanisms.noisy_max import ReportNoisyMax, report_noisy_max
from dpselect.mechanisms.peeling import TopK, top_k
from dpselect.mechanisms.scores import ScoreChunks
from dpselect.mechanisms.smooth_sensitivity import SmoothSensitivityMechanism, smooth_sensitivity_mechanism
from dpselect.mechanisms.sparse_vector import SparseVector, number_of_positives, sparse_vector_guarantee

__all__ = [
    "ChoosingMechanism",
    "ExponentialMechanism",
    "GeneralisedExponentialMechanism",
    "LargeMarginMechanism",
    "PermuteAndFlip",
    "ReportNoisyMax",
    "ScoreChunks",
    "SmoothSensitivityMechanism",
    "SparseVector",
    "TopK",
    "add_on_grid",
    "bounded_range",
    "choosing_mechanism",
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_mechanism",
    "gaussian_steps",
    "generalised_exponential_mechanism",
    "grid_at_most",
    "large_margin_mechanism",
    "noisy_count",
    "noisy_count_guarantee",
    "number_of_positives",
    "permute_and_flip",
    "report_noisy_max",
    "round_to_grid",
    "rounding_sensitivity",
    "smooth_sensitivity_mechanism",
    "sparse_vector_guarantee",
    "top_k",
]
