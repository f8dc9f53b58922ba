"""Private hyperparameter search: the space, the search's life, the sealed store, the executors and the tuner."""

from dpselect.tuning.executors import Executor, InlineExecutor, ProcessExecutor
from dpselect.tuning.file_spender import FileSpender
from dpselect.tuning.sealed_store import SearchFinishedError
from dpselect.tuning.space import Categorical, Distribution, IntegerUniform, LogUniform, Space, Uniform, parse_space
from dpselect.tuning.trial import TrialOutput, encode_value
from dpselect.tuning.tuner import OperatorProgressWarning, TuneResult, check_store, tune

__all__ = [
    "Categorical",
    "Distribution",
    "Executor",
    "FileSpender",
    "InlineExecutor",
    "IntegerUniform",
    "LogUniform",
    "OperatorProgressWarning",
    "ProcessExecutor",
    "SearchFinishedError",
    "Space",
    "TrialOutput",
    "TuneResult",
    "Uniform",
    "check_store",
    "encode_value",
    "parse_space",
    "tune",
]
