from .analysis import AdaptiveAnalysis as AdaptiveAnalysis, Verified as Verified
from .blocks import (
    BlockPlan as BlockPlan,
    break_even as break_even,
    plan_blocks as plan_blocks,
    required_samples as required_samples,
    splitting_blocks as splitting_blocks,
)
from .certificate import Certificate as Certificate
from .choosing import ChoiceError as ChoiceError, choice_error as choice_error
from .effective_rounds import EffectiveRounds as EffectiveRounds
from .grids import (
    AnswerGrid as AnswerGrid,
    explicit_grid as explicit_grid,
    float_grid as float_grid,
    integer_grid as integer_grid,
    logarithmic_grid as logarithmic_grid,
    uniform_grid as uniform_grid,
)
from .means import AdaptiveMeans as AdaptiveMeans, MeanPlan as MeanPlan, plan_means as plan_means
from .medians import ExponentialMedian as ExponentialMedian, SearchMedian as SearchMedian
from .multiplicative_weights import (
    MultiplicativeWeights as MultiplicativeWeights,
    plan_multiplicative_weights as plan_multiplicative_weights,
)
from .planner import (
    AnalysisPlan as AnalysisPlan,
    ConcentratedPlan as ConcentratedPlan,
    plan_analysis as plan_analysis,
    plan_concentrated as plan_concentrated,
)
from .search_noise import SearchNoise as SearchNoise
from .spread import (
    cantelli_tail as cantelli_tail,
    error_from_mean_deviation as error_from_mean_deviation,
    error_from_standard_deviation as error_from_standard_deviation,
    hoeffding_subsample as hoeffding_subsample,
    rank_from_mean_deviation as rank_from_mean_deviation,
    rank_from_standard_deviation as rank_from_standard_deviation,
)
from .transfer import (
    certifies as certifies,
    certifies_interval as certifies_interval,
    trade_off_bound as trade_off_bound,
    transfer_bound as transfer_bound,
)
from .verification import Verification as Verification
from .verification_plan import VerificationPlan as VerificationPlan, plan_verification as plan_verification
