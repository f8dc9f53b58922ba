"""The executor that `n_jobs` means; on clusters tests/tuning/test_worker_check.py tries it."""

import joblib

from dpselect.integrations.sklearn.executors import executor_of
from dpselect.tuning import InlineExecutor, JoblibExecutor


def test_one_job_is_this_process_and_several_are_loky():
    assert executor_of(None) == executor_of(1) == InlineExecutor()
    assert executor_of(2) == JoblibExecutor(backend="loky", workers=2)
    with joblib.parallel_config(backend="loky", n_jobs=3):
        assert executor_of(None) == JoblibExecutor(workers=3)
