from .above import SelectAbove as SelectAbove, select_above as select_above
from .amplification import amplified as amplified
from .best import SelectBest as SelectBest, select_best as select_best
from .candidates import PrivateCandidate as PrivateCandidate, Selector as Selector
from .conditional import SelectAcceptable as SelectAcceptable
from .dummies import SelectWithDummies as SelectWithDummies
from .hyperparameters import SelectHyperparameters as SelectHyperparameters
from .increasing_budgets import SelectIncreasing as SelectIncreasing
from .mixtures import (
    private_mixture as private_mixture,
    uniform_mixture as uniform_mixture,
    weighted_mixture as weighted_mixture,
)
from .one_sided import ThresholdSearch as ThresholdSearch, threshold_grid as threshold_grid
from .percentile_sparse_vector import PercentileSparseVector as PercentileSparseVector, log_odds as log_odds
from .sampled_sparse_vector import SampledSparseVector as SampledSparseVector
from .score_instances import noisy_score_candidate as noisy_score_candidate
from .without_threshold import SelectWithoutThreshold as SelectWithoutThreshold
