"""A worker that runs other code than the tuner, or reads other files, is refused by name before its first trial."""

from __future__ import annotations

import functools
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import cloudpickle
import joblib
import pytest

import dpselect
from dpselect.errors import ArgumentError, StudyError
from dpselect.integrations.sklearn.executors import executor_of
from dpselect.testing.executor_contract import SPACE, noisy, tuned
from dpselect.tuning import (
    Execution,
    InlineExecutor,
    JoblibExecutor,
    Limits,
    ProcessExecutor,
    SearchStore,
    worker_check,
)
from dpselect.tuning.remote_trial import Manners, Parcel
from dpselect.tuning.trial import Job
from dpselect.tuning.worker_check import (
    ExecutorLostError,
    UnequalWorkerError,
    build_here,
    expected_of,
    packed,
    unpacked,
)
from tests.clusters import dask_cluster, wait_until
from tests.root import ROOT


class UnwillingLedger:
    def reserve(self, *_, **__):
        raise AssertionError("charged")

    settle = reserve


def shipped(objective, reads=None):
    job = Job(objective, SPACE, 1 << 16, reads=reads)
    return packed(expected_of(job), pickle.dumps(job))


def of_a_file(path, params, random):
    return float(Path(path).read_text()) + noisy(params, random)[0], params["x"]


def differs(objective, reads=None):
    """What a worker in this process says of a job that another one has shipped."""
    try:
        unpacked(objective if isinstance(objective, bytes) else shipped(objective, reads))
    except UnequalWorkerError as error:
        return str(error)
    return ""


def test_an_equal_worker_says_nothing(tmp_path):
    (tmp_path / "x.csv").write_text("1")
    assert differs(noisy) == differs(functools.partial(of_a_file, str(tmp_path / "x.csv"))) == ""
    assert differs(noisy, [str(tmp_path)]) == differs(noisy, []) == ""


@pytest.mark.parametrize("what", ["dpselect", "code of dpselect", "Python", "NumPy"])
def test_what_differs_is_named(what, monkeypatch):
    there = {**build_here(), what: "0.0.1"}
    job = shipped(noisy)
    monkeypatch.setattr(worker_check, "build_here", lambda: there)
    assert f"{what} is 0.0.1 there, {build_here()[what][:12]} here" in differs(job)
    assert "is not equal to the tuner" in differs(job)


def test_the_digest_is_of_every_source_file():
    root = Path(dpselect.__file__).parent
    found = dict(worker_check._sources(root, ""))
    assert found.keys() == {str(path.relative_to(root)) for path in root.rglob("*.py")}
    assert found["privacy/guarantee.py"] == (root / "privacy" / "guarantee.py").read_bytes()


def test_a_module_of_the_objective_that_differs(tmp_path, monkeypatch):
    (tmp_path / "own_objective.py").write_text("def run(params, random):\n    return 0.0, None\n")
    monkeypatch.syspath_prepend(tmp_path)
    import own_objective

    job = shipped(own_objective.run)
    assert differs(job) == ""
    (tmp_path / "own_objective.py").write_text("def run(params, random):\n    return 1.0, None\n")
    assert "module 'own_objective' of the objective is another" in differs(job)


def in_closure(path):
    return lambda params, random: of_a_file(path, params, random)


class WithPath:
    def __init__(self, path):
        self.path = path

    def __call__(self, params, random):
        return of_a_file(self.path, params, random)


def by_its_name(path):
    """A function with the path as a constant in its code."""
    names = {"of_a_file": of_a_file}
    exec(f"def run(params, random):\n    return of_a_file({str(path)!r}, params, random)", names)
    return names["run"]


def by_a_global(path):
    names = {"of_a_file": of_a_file, "PLACE": path}
    exec("def run(params, random):\n    return of_a_file(PLACE, params, random)", names)
    return names["run"]


HOLDERS = {
    "argument": lambda path: functools.partial(of_a_file, str(path)),
    "a path": lambda path: functools.partial(of_a_file, path),
    "closure": in_closure,
    "attribute": lambda path: WithPath({"train": path}),
    "method": lambda path: WithPath(path).__call__,
    "constant": by_its_name,
    "global": by_a_global,
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_a_file_that_the_objective_names_is_missing(holder, tmp_path):
    path = tmp_path / "train.csv"
    path.write_text("1")
    objective = HOLDERS[holder](path)
    job = Job(objective, SPACE, 1 << 16)
    ignored = packed(expected_of(Job(objective, SPACE, 1 << 16, reads=())), cloudpickle.dumps(job))
    job = packed(expected_of(job), cloudpickle.dumps(job))
    assert differs(job) == ""
    path.write_text("2")  # may be what trials write
    assert differs(job) == ""
    path.unlink()
    assert f"{str(path)!r} cannot be read (No such file or directory; Execution(reads=()) looks" in differs(job)
    assert differs(ignored) == ""


@pytest.mark.parametrize("kept", [list, tuple, set, lambda rows: {"rows": rows[0]}, lambda rows: {"rows": rows}])
def test_texts_that_may_be_rows_decide_nothing(kept, tmp_path):
    (tmp_path / "secret.txt").write_text("1")
    job = shipped(WithPath(kept([str(tmp_path / "secret.txt")])))
    (tmp_path / "secret.txt").unlink()
    assert differs(job) == ""


def test_files_that_are_declared_hold_the_same(tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(b"1" * 3_000_000)
    job = shipped(noisy, [str(folder)])
    assert differs(job) == ""
    with (folder / "a.parquet").open("r+b") as file:
        file.seek(2_999_999)
        file.write(b"2")
    assert f"{str(folder)!r} holds other content" in differs(job)
    assert b"2" * 9 not in differs(job).encode()
    (folder / "a.parquet").write_bytes(b"1" * 3_000_000)
    assert differs(job) == ""
    (folder / "b.parquet").write_bytes(b"")
    assert f"{str(folder)!r} holds other content" in differs(job)


def test_reads_that_are_not_here_are_refused_by_name(tmp_path):
    for executor in (ProcessExecutor(), JoblibExecutor(workers=2)):
        with pytest.raises(ArgumentError, match=r"reads: .*absent\.csv' cannot be read here"):
            tuned(noisy, executor, ledger=UnwillingLedger(), execution=Execution(reads=[tmp_path / "absent.csv"]))
    with pytest.raises(TypeError, match="reads must be a list of paths"):
        Execution(reads="x.csv")


BY_CLOCK = Execution(limits=Limits(seconds=600, failure_is_private=True))


@pytest.mark.full
@pytest.mark.parametrize(
    ("executor", "execution"),
    [(ProcessExecutor(workers=2), None), (JoblibExecutor(workers=2), None), (InlineExecutor(), BY_CLOCK)],
)
def test_every_executor_refuses_an_unequal_worker(executor, execution, monkeypatch):
    here = {**build_here(), "NumPy": "0.0.1"}
    monkeypatch.setattr(worker_check, "build_here", lambda: here)
    with pytest.raises(UnequalWorkerError, match=r"NumPy is [1-9.]+ there, 0\.0\.1 here"):
        tuned(noisy, executor, ledger=UnwillingLedger(), execution=execution)


@pytest.fixture(scope="module")
def without_noise(tmp_path_factory):
    """A folder with a copy of the package whose `laplace` returns 0."""
    folder = tmp_path_factory.mktemp("copy")
    root = Path(dpselect.__file__).parent
    shutil.copytree(root, folder / "dpselect", ignore=shutil.ignore_patterns("__pycache__"))
    source = folder / "dpselect" / "randomness" / "source.py"
    head, tail = source.read_text().split("    def laplace(")
    source.write_text(f"{head}    def laplace(self, size):\n        return np.zeros(size)\n\n    def _noisy({tail}")
    return folder


GREET = """
import pickle, sys
parcel, manners = pickle.load(open(sys.argv[1], "rb"))
from dpselect.tuning.remote_trial import greet
import dpselect
sys.stdout.write(repr(greet(parcel, manners)) + dpselect.__file__)
"""


@pytest.mark.full
def test_a_copy_without_noise_is_refused(without_noise, tmp_path):
    with (tmp_path / "parcel").open("wb") as file:
        pickle.dump((Parcel(shipped(noisy)), Manners(False, None, False)), file)
    for place, refused in ((without_noise, True), (Path(dpselect.__file__).parents[1], False)):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(place), str(ROOT)])}
        asked = [sys.executable, "-c", GREET, str(tmp_path / "parcel")]
        said = subprocess.run(asked, env=environment, capture_output=True, text=True, check=True).stdout
        assert said.endswith(str(place / "dpselect" / "__init__.py"))
        assert ("code of dpselect is" in said) is refused


@pytest.mark.slow
def test_dask_with_one_worker_without_noise(without_noise, monkeypatch):
    with dask_cluster(workers=1) as cluster:
        monkeypatch.setenv("PYTHONPATH", str(without_noise), prepend=os.pathsep)
        command = [sys.executable, "-m", "distributed.cli.dask_worker", cluster.address, "--nthreads", "1"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
        executor = JoblibExecutor(backend="dask", address=cluster.address)
        assert tuned(noisy, executor).value == tuned(noisy, InlineExecutor()).value
        cluster.nannies.append(subprocess.Popen([*command, "--host", "127.0.0.1", "--no-dashboard"], **quiet))
        cluster.wait_for_workers(2)
        with pytest.raises(UnequalWorkerError, match="code of dpselect is"):
            tuned(noisy, executor, ledger=UnwillingLedger())


@pytest.mark.slow
def test_dask_with_a_worker_without_the_file(tmp_path, monkeypatch):
    """Its folder is another, so that the same name is of no file there."""
    with dask_cluster(workers=2) as cluster:
        monkeypatch.chdir(tmp_path)
        Path("train.csv").write_text("1")
        executor = JoblibExecutor(backend="dask", address=cluster.address)
        with pytest.raises(UnequalWorkerError, match=r"'train\.csv' cannot be read"):
            tuned(functools.partial(of_a_file, "train.csv"), executor, ledger=UnwillingLedger())
        (tmp_path / "there.csv").write_text("1")
        assert tuned(functools.partial(of_a_file, str(tmp_path / "there.csv")), executor).value is not None


def slow_when_told(folder, params, random):
    Path(folder, repr(params["x"])).touch()
    while Path(folder, "wait").exists():
        time.sleep(0.05)
    return noisy(params, random)


@pytest.mark.slow
def test_a_frozen_scheduler_is_given_up(tmp_path):
    place = tmp_path / "trials"
    place.mkdir()
    (place / "wait").touch()
    objective = functools.partial(slow_when_told, str(place))
    store = tmp_path / "search.sealed"
    with dask_cluster(workers=2) as cluster:
        executor = JoblibExecutor(backend="dask", address=cluster.address, patience=4.0)

        def freeze():
            wait_until(lambda: len(list(place.iterdir())) > 1)
            os.killpg(cluster.scheduler.pid, signal.SIGSTOP)

        thread = threading.Thread(target=freeze)
        thread.start()
        begun = time.monotonic()
        with pytest.raises(ExecutorLostError, match="has not answered for 4 s"):
            tuned(objective, executor, store=SearchStore(path=store, key_variable=None))
        assert time.monotonic() - begun < 40.0
        thread.join()
        with pytest.raises(StudyError):  # at once too
            tuned(objective, executor)
        os.killpg(cluster.scheduler.pid, signal.SIGCONT)
        (place / "wait").unlink()
        cluster.wait_for_workers(2)
        result = tuned(objective, executor, store=SearchStore(path=store, resume=True))
    assert result.value == tuned(noisy, InlineExecutor()).value


FROZEN_RAY = """
import functools, os, signal, sys, threading, time
from pathlib import Path
from dpselect.testing.executor_contract import tuned
from dpselect.tuning import ExecutorLostError, JoblibExecutor, SearchStore
from tests.tuning.test_worker_check import slow_when_told
folder, frozen = Path(sys.argv[1]), sys.argv[2]
executor = JoblibExecutor(backend="ray", workers=2, patience=4.0)
objective = functools.partial(slow_when_told, str(folder / "trials"))
begun = 0.0

def freeze():
    global begun
    while len(list((folder / "trials").iterdir())) < 2:
        time.sleep(0.05)
    import ray
    os.kill(ray._private.worker._global_node.all_processes[frozen][0].process.pid, signal.SIGSTOP)
    begun = time.monotonic()

if __name__ == "__main__":
    threading.Thread(target=freeze, daemon=True).start()
    for store in (SearchStore(path=folder / "search.sealed", key_variable=None), None):
        try:
            tuned(objective, executor, store=store)
        except ExecutorLostError as error:
            print(round(time.monotonic() - begun), error, flush=True)
        begun = time.monotonic()
"""


@pytest.mark.slow
@pytest.mark.parametrize("frozen", ["gcs_server", "raylet"])
def test_a_frozen_ray_is_given_up(frozen, tmp_path):
    """By a tuner in a process of its own, which ends too, if by a failure of Ray's; Ray would wait without end."""
    pytest.importorskip("ray")
    place = tmp_path / "trials"
    place.mkdir()
    (place / "wait").touch()
    root = ROOT
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(root), str(root / "src")))}
    asked = [sys.executable, "-c", FROZEN_RAY, str(tmp_path), frozen]
    said = subprocess.run(asked, env=environment, stdout=subprocess.PIPE, text=True, timeout=300, check=False).stdout
    seconds, errors = zip(*(line.split(" ", 1) for line in said.splitlines()), strict=True)
    assert [error[:45] for error in errors] == ["the Ray cluster has not answered for 4 s (pat"] * 2
    assert max(map(int, seconds)) < 30
    (place / "wait").unlink()
    objective = functools.partial(slow_when_told, str(place))
    result = tuned(objective, InlineExecutor(), store=SearchStore(path=tmp_path / "search.sealed", resume=True))
    assert result.value == tuned(noisy, InlineExecutor()).value


@pytest.mark.slow
def test_a_cluster_that_adapts_and_one_in_this_process():
    distributed = pytest.importorskip("distributed")
    expected = tuned(noisy, InlineExecutor()).value
    plain = {"dashboard_address": None, "threads_per_worker": 1}
    with distributed.LocalCluster(n_workers=0, **plain) as cluster, distributed.Client(cluster):
        cluster.adapt(minimum=0, maximum=2, interval="100 ms")
        assert tuned(noisy, JoblibExecutor(backend="dask")).value == expected
    missing = pytest.raises(StudyError, match=r"no Dask worker within 1 s \(patience=\)")
    with distributed.LocalCluster(n_workers=0, **plain) as cluster, distributed.Client(cluster), missing:
        tuned(noisy, JoblibExecutor(backend="dask", patience=1), ledger=UnwillingLedger())
    with distributed.Client(processes=False, dashboard_address=None, n_workers=1, threads_per_worker=2):
        assert tuned(noisy, JoblibExecutor(backend="dask")).value == expected


@pytest.mark.slow
@pytest.mark.parametrize(("cpus", "gpus"), [(1, 0), (2, 1)])
def test_ray_runs_as_many_workers_as_fit(cpus, gpus):
    ray = pytest.importorskip("ray")
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    try:
        has = {"num_cpus": cpus, "num_gpus": gpus, "object_store_memory": 200 << 20}
        ray.init(address="local", log_to_driver=False, include_dashboard=False, _temp_dir=folder, **has)
        executor = JoblibExecutor(backend="ray", resources={"num_gpus": 1} if gpus else {})
        assert tuned(noisy, executor).value == tuned(noisy, InlineExecutor()).value
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.full
def test_a_search_of_scikit_learn_runs_where_joblib_is_told_to():
    distributed = pytest.importorskip("distributed")
    plain = {"processes": False, "dashboard_address": None, "n_workers": 1, "threads_per_worker": 2}
    with distributed.Client(**plain) as client:
        with joblib.parallel_config(backend="dask"):
            assert executor_of(None) == JoblibExecutor(backend="dask")
            assert executor_of(3) == JoblibExecutor(backend="dask", workers=3)
        other = distributed.Client(client.scheduler.address, set_as_default=False)
        with other, joblib.parallel_config(backend="dask", client=other):
            assert executor_of(-1) == JoblibExecutor(backend="dask", address=client.scheduler.address)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert executor_of(None) == JoblibExecutor(workers=2)


def test_a_resume_on_another_host_says_where_the_key_was_sought(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "first"))

    def stops(params, random):
        raise KeyboardInterrupt

    store = tmp_path / "search.sealed"
    with pytest.raises(KeyboardInterrupt):
        tuned(stops, InlineExecutor(), store=SearchStore(path=store))
    (key,) = (tmp_path / "first").rglob("*.key")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "second"))
    with pytest.raises(StudyError, match="the key of this search is missing") as caught:
        tuned(noisy, InlineExecutor(), store=SearchStore(path=store, resume=True))
    assert str(tmp_path / "second" / key.relative_to(tmp_path / "first")) in str(caught.value)
    assert "key_variable=" in str(caught.value)
