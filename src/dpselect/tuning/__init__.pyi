from .designs import PortfolioDesign as PortfolioDesign, TwoStageDesign as TwoStageDesign
from .executors import (
    Executor as Executor,
    ExecutorLostError as ExecutorLostError,
    InlineExecutor as InlineExecutor,
    ProcessExecutor as ProcessExecutor,
)
from .joblib_executor import JoblibExecutor as JoblibExecutor
from .limits import Limits as Limits, count as count
from .options import (
    Execution as Execution,
    SearchRequest as SearchRequest,
    SearchStore as SearchStore,
    TuneResult as TuneResult,
)
from .proposals import AdaptiveProposal as AdaptiveProposal, Observation as Observation, Proposer as Proposer
from .sealed_store import SearchFinishedError as SearchFinishedError
from .space import (
    Categorical as Categorical,
    Distribution as Distribution,
    IntegerUniform as IntegerUniform,
    LogUniform as LogUniform,
    Space as Space,
    Uniform as Uniform,
    parse_space as parse_space,
)
from .subset import split_rows as split_rows
from .surrogate import GaussianProcessProposer as GaussianProcessProposer
from .trial import Preparation as Preparation, TrialOutput as TrialOutput, encode_value as encode_value
from .tuner import (
    OperatorProgressWarning as OperatorProgressWarning,
    check_store as check_store,
    tune as tune,
)
