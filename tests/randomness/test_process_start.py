"""Scripts without `if __name__ == "__main__":` pay once and release once, however their child processes start."""

from __future__ import annotations

import subprocess
import sys
from multiprocessing import process
from textwrap import dedent

import numpy as np
import pytest

from dpselect.errors import StartingProcessError
from dpselect.holdout import Holdout, HoldoutLabels, HoldoutRequest
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import OutputPerturbationClassifier
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source, system_source
from dpselect.repetitions import Fixed
from dpselect.tuning import JoblibExecutor, ProcessExecutor, SharedRelease, Uniform, tune
from dpselect.tuning.trial import decode_value, encode_value
from tests.budgets import budget_at, charges

TOP = """
import sys
from pathlib import Path
from dpselect.errors import StartingProcessError
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed
from dpselect.tuning import JoblibExecutor, ProcessExecutor, Uniform, tune

def objective(params, random):
    return random.laplace(1)[0], params["x"]

def search(**options):
    base, law = pure_dp(epsilon=1), Fixed(count=2)
    return tune(objective, space={"x": Uniform(0.0, 1.0)}, base=base, repetitions=law, **options)

budget = Ledger.open("budget.db", witness=False).budget("b")
with open("runs", "a") as runs:
    runs.write("run ")
"""


def run(folder, script, *, top=TOP):
    """What the script prints, when it is run as a file of its own."""
    (folder / "script.py").write_text(top + dedent(script))
    budget_at(folder / "budget.db", epsilon=100)
    done = subprocess.run([sys.executable, "script.py"], cwd=folder, capture_output=True, text=True, timeout=300)
    return done.stdout, done.stderr


def starts(folder):
    return (folder / "runs").read_text().count("run")


@pytest.fixture
def starting(monkeypatch):
    """As in a child that `multiprocessing` or loky is starting."""
    monkeypatch.setattr(process.current_process(), "_inheriting", True, raising=False)


def objective(params, random):
    return random.laplace(1)[0], params["x"]


def search(**options):
    return tune(
        objective, space={"x": Uniform(0.0, 1.0)}, base=pure_dp(epsilon=1.0), repetitions=Fixed(count=2), **options
    )


def test_what_charges_or_draws_or_searches_refuses_in_a_child_that_is_being_started(tmp_path, starting):
    estimator = PrivateSearchCV(OutputPerturbationClassifier(), {}, repetitions=Fixed(count=1), classes=[0, 1])
    refused = {
        "tune": lambda: search(random=keyed_source(1)),
        "a ledger": lambda: budget_at(tmp_path / "budget.db"),
        "a draw": lambda: system_source().bytes(1),
        "a large draw": lambda: system_source().bytes(1 << 20),
        "PrivateSearchCV": lambda: estimator.fit(np.zeros((2, 1)), [0, 1]),
        "a holdout": lambda: Holdout.create(
            tmp_path / "holdout.db",
            HoldoutLabels(ids=range(1000), labels=[0, 1] * 500),
            HoldoutRequest(metric="accuracy", questions=10, answers=2, failure_probability=0.05),
        ),
    }
    for name, call in refused.items():
        with pytest.raises(StartingProcessError, match="__main__"):
            call()
        assert not list(tmp_path.iterdir()), name


def test_a_ledger_is_read_but_not_written_to_in_a_child_that_is_being_started(tmp_path, monkeypatch):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("b", epsilon=2)
        head = ledger.head()
        monkeypatch.setattr(process.current_process(), "_inheriting", True, raising=False)
        with pytest.raises(StartingProcessError):
            budget.reserve(pure_dp(epsilon=1.0), label="a", identifier="a")
        with pytest.raises(StartingProcessError):
            ledger.create_budget("c", epsilon=1)
        assert ledger.head() == head


def test_what_is_made_at_the_top_of_a_guarded_script_is_no_error(starting, tmp_path, monkeypatch):
    source = system_source()
    Ledger.open(tmp_path / "budget.db")
    assert keyed_source(1).bits(8) == keyed_source(1).bits(8)  # known draws cost nothing when they are repeated
    monkeypatch.delattr(process.current_process(), "_inheriting")
    assert len(source.bytes(3)) == 3


def test_n_jobs_is_loky():
    from dpselect.integrations.sklearn.executors import executor_of

    assert executor_of(2) == JoblibExecutor(backend="loky", workers=2)


def test_a_class_of_the_script_survives_in_a_worker_that_does_not_run_the_script(monkeypatch):
    """There it is known by value only, and `pickle` would not find it: every run would fail."""
    script = sys.modules["__main__"]
    Model = type("Model", (), {"__module__": "__main__"})
    monkeypatch.setattr(script, "Model", Model, raising=False)
    at_home = encode_value(Model())
    monkeypatch.delattr(script, "Model")
    in_a_worker = encode_value(Model())
    assert in_a_worker == at_home
    assert type(decode_value(in_a_worker)) is Model  # the worker reads it back to see that it can be read
    monkeypatch.setattr(script, "Model", Model, raising=False)
    assert type(decode_value(in_a_worker)) is Model


CHILDREN = """
search(ledger=budget)
print("released")

import multiprocessing

def work():
    print("worked", flush=True)

for method in {methods}:
    child = multiprocessing.get_context(method).Process(target=work)
    child.start()
    child.join()
    print(method, child.exitcode != 0)
"""


@pytest.mark.full
def test_a_child_that_is_spawned_or_forked_by_the_script_pays_nothing(tmp_path):
    out, err = run(tmp_path, CHILDREN.format(methods=["fork", "spawn"]))
    assert out.split("\n") == ["released", "worked", "fork False", "spawn True", ""], err
    assert "StartingProcessError" in err
    assert (starts(tmp_path), charges(tmp_path / "budget.db")) == (2, [True])


@pytest.mark.slow  # a fresh interpreter for each child, as in all of the below
def test_a_child_of_a_fork_server_pays_nothing(tmp_path):
    out, err = run(tmp_path, CHILDREN.format(methods=["forkserver"]))
    assert out.startswith("released\nforkserver True"), err
    assert charges(tmp_path / "budget.db") == [True]


@pytest.mark.slow
def test_a_module_that_a_fork_server_imports_beforehand_pays_nothing(tmp_path):
    (tmp_path / "paying.py").write_text(TOP + "search(ledger=budget)\nprint('released')\n")
    script = """
    import multiprocessing
    import paying

    if __name__ == "__main__":
        multiprocessing.set_forkserver_preload(["paying"])
        context = multiprocessing.get_context("forkserver")
        try:
            child = context.Process(target=print, args=("worked",))
            child.start()
            child.join()
        except (EOFError, OSError):
            pass
    """
    out, err = run(tmp_path, script, top="")
    assert out.count("released") == 1
    assert "StartingProcessError" in err
    assert charges(tmp_path / "budget.db") == [True]


PROCESSES = """
try:
    print(search(ledger=budget, executor=ProcessExecutor(workers=2, start_method={method!r})))
except StartingProcessError as error:
    print("refused")
    assert "__main__" in str(error)
    sys.exit()
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_an_executor_whose_workers_run_the_script_is_refused_before_anything_is_charged(tmp_path, method):
    out, err = run(tmp_path, PROCESSES.format(method=method))
    assert out.count("refused") == starts(tmp_path)  # the script's own run and its children
    assert charges(tmp_path / "budget.db") == [], err
    # below the guard it works
    guarded = "if __name__ == '__main__':" + PROCESSES.format(method=method).replace("\n", "\n    ")
    out, err = run(tmp_path, guarded)
    assert "refused" not in out, err
    assert charges(tmp_path / "budget.db") == [True]


@pytest.mark.slow
def test_after_a_paid_search_an_executor_whose_workers_run_the_script_pays_nothing(tmp_path):
    out, err = run(tmp_path, "search(ledger=budget)\n" + PROCESSES.format(method="spawn"))
    assert out == "refused\n", err
    assert charges(tmp_path / "budget.db") == [True]


@pytest.mark.slow
def test_loky_needs_no_guard(tmp_path):
    out, err = run(tmp_path, 'search(ledger=budget, executor=JoblibExecutor(workers=2))\nprint("released")')
    assert out == "released\n", err
    assert (starts(tmp_path), charges(tmp_path / "budget.db")) == (1, [True])


ESTIMATOR = """
import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.randomness import keyed_source

class Own(ClassifierMixin, BaseEstimator):
    def __init__(self, shift=0.0, random=None):
        self.shift, self.random = shift, random

    def guarantee(self):
        return pure_dp(epsilon=1.0)

    def fit(self, X, y):
        self.classes_, self.edge_ = np.array([0, 1]), self.shift + self.random.laplace(1)[0]
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > self.edge_).astype(int)

X = np.linspace(-1, 1, 60)[:, None]
for n_jobs in (1, 2):
    search = PrivateSearchCV(
        Own(), {"shift": [0.0, 0.1]}, repetitions=Fixed(count=4), classes=[0, 1], nominal_rows=60,
        n_jobs=n_jobs, random=keyed_source(4), ledger=Ledger.open(f"{n_jobs}.db").create_budget("b", epsilon=100),
    )
    search.fit(X, (X[:, 0] > 0).astype(int))
    assert type(search.best_estimator_) is Own
    paid = search.ledger.spent().epsilon == search.guarantee_.epsilon(0)
    print(search.best_estimator_.edge_, search.best_params_, paid)
"""


@pytest.mark.slow
def test_a_search_with_n_jobs_needs_no_guard_and_releases_what_one_process_releases(tmp_path):
    out, err = run(tmp_path, ESTIMATOR)
    one, other = out.splitlines()
    assert one == other, err
    assert starts(tmp_path) == 1
    spent = [budget_at(tmp_path / f"{n}.db").spent().epsilon for n in (1, 2)]
    assert spent[0] == spent[1] > 0


def test_an_executor_says_so_when_its_workers_end_while_they_start(monkeypatch):
    """Without a hang, and before the price is reserved."""
    from dpselect.tuning import executors

    monkeypatch.setattr(executors._Pool, "_receive", staticmethod(lambda worker: None))
    with pytest.raises(StartingProcessError, match="drawn and charged nothing"):
        search(executor=ProcessExecutor(workers=1))


def test_what_was_charged_for_a_preparation_is_not_denied_when_workers_end_while_they_start(tmp_path, monkeypatch):
    from dpselect.tuning import executors

    budget = budget_at(tmp_path / "budget.db")
    prepared = SharedRelease(lambda random: objective, pure_dp(epsilon=0.25))
    options = {"space": {"x": Uniform(0.0, 1.0)}, "base": pure_dp(epsilon=0.25), "repetitions": Fixed(count=2)}
    receive = executors._Pool._receive
    monkeypatch.setattr(executors._Pool, "_receive", staticmethod(lambda worker: None))
    with pytest.raises(StartingProcessError, match="has drawn and charged nothing"):
        tune(prepared, executor=ProcessExecutor(workers=1), ledger=budget, **options)
    assert budget.spent().epsilon == 0
    monkeypatch.setattr(  # workers start before the price is reserved, and end after
        executors._Pool, "_receive", staticmethod(lambda w: None if budget.spent().epsilon else receive(w))
    )
    with pytest.raises(StartingProcessError, match="the price is charged, and a store can be resumed"):
        tune(prepared, executor=ProcessExecutor(workers=1), ledger=budget, **options)
    assert budget.spent().epsilon > 0
