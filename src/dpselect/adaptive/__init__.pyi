from .analysis import AdaptiveAnalysis as AdaptiveAnalysis
from .blocks import (
    break_even as break_even,
    plan_blocks as plan_blocks,
    required_samples as required_samples,
    splitting_blocks as splitting_blocks,
)
from .choosing import choice_error as choice_error
from .effective_rounds import EffectiveRounds as EffectiveRounds
from .grids import (
    explicit_grid as explicit_grid,
    integer_grid as integer_grid,
    logarithmic_grid as logarithmic_grid,
    uniform_grid as uniform_grid,
)
from .means import AdaptiveMeans as AdaptiveMeans
from .multiplicative_weights import MultiplicativeWeights as MultiplicativeWeights
from .planner import plan_analysis as plan_analysis, plan_concentrated as plan_concentrated
from .spread import (
    error_from_mean_deviation as error_from_mean_deviation,
    error_from_standard_deviation as error_from_standard_deviation,
)
from .transfer import certifies as certifies, trade_off_bound as trade_off_bound, transfer_bound as transfer_bound
from .verification import Verification as Verification
from .verification_plan import plan_verification as plan_verification
