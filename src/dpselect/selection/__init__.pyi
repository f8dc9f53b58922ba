from .above import select_above as select_above
from .amplification import (
    amplification_stop_probability as amplification_stop_probability,
    amplify as amplify,
    markov_probability as markov_probability,
)
from .best import select_best as select_best
from .candidates import Candidate as Candidate, PrivateCandidate as PrivateCandidate
from .conditional import select_acceptable as select_acceptable
from .dummies import select_with_dummies as select_with_dummies
from .hyperparameters import (
    Tuned as Tuned,
    TwoSetGuarantee as TwoSetGuarantee,
    TwoSetRelease as TwoSetRelease,
    select_hyperparameters as select_hyperparameters,
    tuning_candidate as tuning_candidate,
    two_set_guarantee as two_set_guarantee,
)
from .increasing_budgets import (
    increasing_budgets_guarantee as increasing_budgets_guarantee,
    select_increasing as select_increasing,
)
from .mixtures import (
    private_mixture as private_mixture,
    uniform_mixture as uniform_mixture,
    weighted_mixture as weighted_mixture,
)
from .one_sided import search_threshold as search_threshold, threshold_grid as threshold_grid
from .percentile_sparse_vector import (
    PercentileSparseVector as PercentileSparseVector,
    laplace_log_odds as laplace_log_odds,
    log_odds as log_odds,
    select_first_by_percentile as select_first_by_percentile,
)
from .sampled_sparse_vector import (
    SampledSparseVector as SampledSparseVector,
    select_first_by_sampling as select_first_by_sampling,
)
from .score_instances import noisy_score_candidate as noisy_score_candidate
from .without_threshold import (
    select_without_threshold as select_without_threshold,
    select_without_threshold_by_hand as select_without_threshold_by_hand,
)
