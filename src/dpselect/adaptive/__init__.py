"""Asking the same data again and again: adaptive estimators, verification, and bounds for generalisation.

`docs/adaptive.md` says which class to use when; `docs/theory/generalisation.md` has the proofs.
"""

from dpselect.adaptive.analysis import AdaptiveAnalysis, Verified
from dpselect.adaptive.blocks import BlockPlan, break_even, plan_blocks, required_samples, splitting_blocks
from dpselect.adaptive.certificate import Certificate
from dpselect.adaptive.choosing import ChoiceError, choice_error
from dpselect.adaptive.effective_rounds import EffectiveRounds
from dpselect.adaptive.grids import explicit_grid, float_grid, integer_grid, logarithmic_grid, uniform_grid
from dpselect.adaptive.means import AdaptiveMeans, MeanPlan, plan_means
from dpselect.adaptive.medians import (
    exponential_median,
    exponential_median_guarantee,
    search_median,
    search_median_guarantee,
)
from dpselect.adaptive.multiplicative_weights import MultiplicativeWeights, plan_multiplicative_weights
from dpselect.adaptive.planner import AnalysisPlan, ConcentratedPlan, plan_analysis, plan_concentrated
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.adaptive.spread import (
    cantelli_tail,
    error_from_mean_deviation,
    error_from_standard_deviation,
    hoeffding_subsample,
    rank_from_mean_deviation,
    rank_from_standard_deviation,
)
from dpselect.adaptive.transfer import certifies, certifies_interval, trade_off_bound, transfer_bound
from dpselect.adaptive.verification import Verification
from dpselect.adaptive.verification_plan import VerificationPlan, plan_verification

__all__ = [
    "AdaptiveAnalysis",
    "AdaptiveMeans",
    "AnalysisPlan",
    "BlockPlan",
    "Certificate",
    "ChoiceError",
    "ConcentratedPlan",
    "EffectiveRounds",
    "MeanPlan",
    "MultiplicativeWeights",
    "SearchNoise",
    "Verification",
    "VerificationPlan",
    "Verified",
    "break_even",
    "cantelli_tail",
    "certifies",
    "certifies_interval",
    "choice_error",
    "error_from_mean_deviation",
    "error_from_standard_deviation",
    "explicit_grid",
    "exponential_median",
    "exponential_median_guarantee",
    "float_grid",
    "hoeffding_subsample",
    "integer_grid",
    "logarithmic_grid",
    "plan_analysis",
    "plan_blocks",
    "plan_concentrated",
    "plan_means",
    "plan_multiplicative_weights",
    "plan_verification",
    "rank_from_mean_deviation",
    "rank_from_standard_deviation",
    "required_samples",
    "search_median",
    "search_median_guarantee",
    "splitting_blocks",
    "trade_off_bound",
    "transfer_bound",
    "uniform_grid",
]
