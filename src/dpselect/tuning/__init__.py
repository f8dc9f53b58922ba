"""Private hyperparameter search: the space, the search's life, the sealed store, the executors and the tuner."""

from dpselect.tuning.executors import Executor, ExecutorLostError, InlineExecutor, ProcessExecutor
from dpselect.tuning.file_spender import FileSpender
from dpselect.tuning.joblib_executor import JoblibExecutor
from dpselect.tuning.limits import Limits, count
from dpselect.tuning.proposals import AdaptiveProposal, Observation, Proposer
from dpselect.tuning.sealed_store import SearchFinishedError
from dpselect.tuning.space import Categorical, Distribution, IntegerUniform, LogUniform, Space, Uniform, parse_space
from dpselect.tuning.subset import split_rows
from dpselect.tuning.surrogate import GaussianProcessProposer
from dpselect.tuning.trial import TrialOutput, encode_value
from dpselect.tuning.tuner import OperatorProgressWarning, TuneResult, check_store, tune

__all__ = [
    "AdaptiveProposal",
    "Categorical",
    "Distribution",
    "Executor",
    "ExecutorLostError",
    "FileSpender",
    "GaussianProcessProposer",
    "InlineExecutor",
    "IntegerUniform",
    "JoblibExecutor",
    "Limits",
    "LogUniform",
    "Observation",
    "OperatorProgressWarning",
    "ProcessExecutor",
    "Proposer",
    "SearchFinishedError",
    "Space",
    "TrialOutput",
    "TuneResult",
    "Uniform",
    "check_store",
    "count",
    "encode_value",
    "parse_space",
    "split_rows",
    "tune",
]
