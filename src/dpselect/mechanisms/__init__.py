"""Primitives on scores and queries, and noise: exact laws wherever a comparison or a whole number leaves."""

from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.mechanisms.brownian import brownian_guarantee, brownian_reduction
from dpselect.mechanisms.choosing import ChoosingMechanism, choosing_mechanism
from dpselect.mechanisms.exponential import ExponentialMechanism, exponential_mechanism
from dpselect.mechanisms.flipping import PermuteAndFlip, permute_and_flip
from dpselect.mechanisms.gaussian_noise import gaussian_steps
from dpselect.mechanisms.generalised_exponential import (
    GeneralisedExponentialMechanism,
    generalised_exponential_mechanism,
)
from dpselect.mechanisms.grid import add_on_grid, grid_at_most, round_to_grid, rounding_sensitivity
from dpselect.mechanisms.interquantile_range import InterquantileRange
from dpselect.mechanisms.large_margin import LargeMarginMechanism, large_margin_mechanism
from dpselect.mechanisms.noise_reduction import (
    GradualRelease,
    guarantee_with_test,
    laplace_reduction,
    laplace_reduction_guarantee,
    release_until,
    release_until_above,
)
from dpselect.mechanisms.noisy_counts import discrete_gaussian, discrete_laplace, noisy_count, noisy_count_guarantee
from dpselect.mechanisms.noisy_max import ReportNoisyMax, report_noisy_max
from dpselect.mechanisms.peeling import TopK, top_k
from dpselect.mechanisms.propose_test_release import Cascade, ProposeTestRelease, dwork_lei_delta
from dpselect.mechanisms.scores import ScoreChunks
from dpselect.mechanisms.smooth_sensitivity import SmoothSensitivityMechanism, smooth_sensitivity_mechanism
from dpselect.mechanisms.sparse_release import SparseAnswers, SparseRelease, balanced_split
from dpselect.mechanisms.sparse_vector import SparseVector
from dpselect.mechanisms.sparse_vector_prices import (
    answer_counts,
    number_of_positives,
    refined_sparse_vector_guarantee,
    sparse_vector_guarantee,
)
from dpselect.mechanisms.trimmed_mean import TrimmedMean

__all__ = [
    "Cascade",
    "ChoosingMechanism",
    "ExponentialMechanism",
    "GeneralisedExponentialMechanism",
    "GradualRelease",
    "InterquantileRange",
    "LargeMarginMechanism",
    "PermuteAndFlip",
    "ProposeTestRelease",
    "ReportNoisyMax",
    "ScoreChunks",
    "SmoothSensitivityMechanism",
    "SparseAnswers",
    "SparseRelease",
    "SparseVector",
    "TopK",
    "TrimmedMean",
    "add_on_grid",
    "answer_counts",
    "balanced_split",
    "bounded_range",
    "brownian_guarantee",
    "brownian_reduction",
    "choosing_mechanism",
    "discrete_gaussian",
    "discrete_laplace",
    "dwork_lei_delta",
    "exponential_mechanism",
    "gaussian_steps",
    "generalised_exponential_mechanism",
    "grid_at_most",
    "guarantee_with_test",
    "laplace_reduction",
    "laplace_reduction_guarantee",
    "large_margin_mechanism",
    "noisy_count",
    "noisy_count_guarantee",
    "number_of_positives",
    "permute_and_flip",
    "refined_sparse_vector_guarantee",
    "release_until",
    "release_until_above",
    "report_noisy_max",
    "round_to_grid",
    "rounding_sensitivity",
    "smooth_sensitivity_mechanism",
    "sparse_vector_guarantee",
    "top_k",
]
