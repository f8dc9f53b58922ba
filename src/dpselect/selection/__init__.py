"""Choosing among private candidates: the best of a random number of runs, the first above a threshold, and others.

`docs/selection.md` says which selector to use when.
"""

from dpselect.selection.above import select_above
from dpselect.selection.amplification import amplification_stop_probability, amplify, markov_probability
from dpselect.selection.best import select_best
from dpselect.selection.candidates import Candidate, PrivateCandidate
from dpselect.selection.conditional import select_acceptable
from dpselect.selection.dummies import select_with_dummies
from dpselect.selection.hyperparameters import (
    Tuned,
    TwoSetGuarantee,
    TwoSetRelease,
    select_hyperparameters,
    tuning_candidate,
    two_set_guarantee,
)
from dpselect.selection.increasing_budgets import increasing_budgets_guarantee, select_increasing
from dpselect.selection.mixtures import private_mixture, uniform_mixture, weighted_mixture
from dpselect.selection.one_sided import search_threshold, threshold_grid
from dpselect.selection.percentile_sparse_vector import (
    PercentileSparseVector,
    laplace_log_odds,
    log_odds,
    select_first_by_percentile,
)
from dpselect.selection.sampled_sparse_vector import SampledSparseVector, select_first_by_sampling
from dpselect.selection.score_instances import noisy_score_candidate
from dpselect.selection.without_threshold import select_without_threshold, select_without_threshold_by_hand

__all__ = [
    "Candidate",
    "PercentileSparseVector",
    "PrivateCandidate",
    "SampledSparseVector",
    "Tuned",
    "TwoSetGuarantee",
    "TwoSetRelease",
    "amplification_stop_probability",
    "amplify",
    "increasing_budgets_guarantee",
    "laplace_log_odds",
    "log_odds",
    "markov_probability",
    "noisy_score_candidate",
    "private_mixture",
    "search_threshold",
    "select_above",
    "select_acceptable",
    "select_best",
    "select_first_by_percentile",
    "select_first_by_sampling",
    "select_hyperparameters",
    "select_increasing",
    "select_with_dummies",
    "select_without_threshold",
    "select_without_threshold_by_hand",
    "threshold_grid",
    "tuning_candidate",
    "two_set_guarantee",
    "uniform_mixture",
    "weighted_mixture",
]
