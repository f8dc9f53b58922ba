from .designs import PortfolioDesign as PortfolioDesign, TwoStageDesign as TwoStageDesign
from .executors import (
    Executor as Executor,
    ExecutorLostError as ExecutorLostError,
    InlineExecutor as InlineExecutor,
    ProcessExecutor as ProcessExecutor,
)
from .joblib_executor import JoblibExecutor as JoblibExecutor
from .limits import Limits as Limits, count as count
from .options import Execution as Execution, SearchStore as SearchStore, TuneResult as TuneResult
from .proposals import AdaptiveProposal as AdaptiveProposal
from .sealed_store import SearchFinishedError as SearchFinishedError
from .space import (
    Categorical as Categorical,
    IntegerUniform as IntegerUniform,
    LogUniform as LogUniform,
    Space as Space,
    Uniform as Uniform,
)
from .subset import split_rows as split_rows
from .surrogate import GaussianProcessProposer as GaussianProcessProposer
from .trial import SharedRelease as SharedRelease
from .tuner import OperatorProgressWarning as OperatorProgressWarning, tune as tune
