from .bounded_range_price import bounded_range as bounded_range
from .brownian import BrownianReduction as BrownianReduction
from .choosing import ChoosingMechanism as ChoosingMechanism
from .exponential import ExponentialMechanism as ExponentialMechanism, exponential_mechanism as exponential_mechanism
from .flipping import PermuteAndFlip as PermuteAndFlip, permute_and_flip as permute_and_flip
from .generalised_exponential import GeneralisedExponentialMechanism as GeneralisedExponentialMechanism
from .interquantile_range import InterquantileRange as InterquantileRange
from .large_margin import LargeMarginMechanism as LargeMarginMechanism
from .mechanism import Mechanism as Mechanism
from .noise_reduction import (
    GradualRelease as GradualRelease,
    LaplaceReduction as LaplaceReduction,
    ReleaseUntilAbove as ReleaseUntilAbove,
)
from .noisy_counts import (
    NoisyCount as NoisyCount,
    discrete_gaussian as discrete_gaussian,
    discrete_laplace as discrete_laplace,
    noisy_count as noisy_count,
)
from .noisy_max import ReportNoisyMax as ReportNoisyMax, report_noisy_max as report_noisy_max
from .peeling import TopK as TopK
from .propose_test_release import (
    Cascade as Cascade,
    ProposeTestRelease as ProposeTestRelease,
)
from .scores import ScoreChunks as ScoreChunks
from .smooth_sensitivity import SmoothSensitivityMechanism as SmoothSensitivityMechanism
from .sparse_release import SparseRelease as SparseRelease, balanced_split as balanced_split
from .sparse_vector import SparseVector as SparseVector
from .sparse_vector_plan import plan_sparse_vector as plan_sparse_vector
from .trimmed_mean import TrimmedMean as TrimmedMean
