"""Asking the same data again and again: adaptive estimators, verification, and bounds for generalisation."""

from dpselect.adaptive.analysis import AdaptiveAnalysis, Verified
from dpselect.adaptive.blocks import BlockPlan, break_even, plan_blocks, required_samples, splitting_blocks
from dpselect.adaptive.certificate import Certificate
from dpselect.adaptive.grids import explicit_grid, float_grid, integer_grid, logarithmic_grid, uniform_grid
from dpselect.adaptive.medians import (
    exponential_median,
    exponential_median_guarantee,
    search_median,
    search_median_guarantee,
)
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.adaptive.transfer import certifies, certifies_interval, trade_off_bound, transfer_bound
from dpselect.adaptive.verification import Verification
from dpselect.adaptive.verification_plan import VerificationPlan, plan_verification

__all__ = [
    "AdaptiveAnalysis",
    "BlockPlan",
    "Certificate",
    "SearchNoise",
    "Verification",
    "VerificationPlan",
    "Verified",
    "break_even",
    "certifies",
    "certifies_interval",
    "explicit_grid",
    "exponential_median",
    "exponential_median_guarantee",
    "float_grid",
    "integer_grid",
    "logarithmic_grid",
    "plan_blocks",
    "plan_verification",
    "required_samples",
    "search_median",
    "search_median_guarantee",
    "splitting_blocks",
    "trade_off_bound",
    "transfer_bound",
    "uniform_grid",
]
