from .analysis import AdaptiveAnalysis as AdaptiveAnalysis
from .blocks import (
    plan_blocks as plan_blocks,
)
from .effective_rounds import EffectiveRounds as EffectiveRounds
from .grids import (
    explicit_grid as explicit_grid,
    integer_grid as integer_grid,
    logarithmic_grid as logarithmic_grid,
)
from .means import AdaptiveMeans as AdaptiveMeans
from .multiplicative_weights import MultiplicativeWeights as MultiplicativeWeights
from .planner import plan_analysis as plan_analysis, plan_concentrated as plan_concentrated
from .verification import Verification as Verification
from .verification_plan import plan_verification as plan_verification
