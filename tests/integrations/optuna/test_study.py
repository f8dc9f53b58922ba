"""What a past Optuna search cost: its storage is read, written by Optuna itself, and the command prices it."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import zipfile

import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app, main
from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.optuna.price import BEST_OF_FIXED, COMPOSITION, price_study
from dpselect.integrations.optuna.study import read_study
from dpselect.numerics.digits import rounded_up
from dpselect.privacy import compose, gaussian
from tests.integrations.optuna.past_studies import BASE, DECLARED, base
from tests.root import ROOT

POSTGRES = os.environ.get("DPSELECT_TEST_POSTGRES")
EXAMPLES = ROOT / "examples"


@pytest.fixture(scope="module")
def optuna():
    return pytest.importorskip("optuna")


def unpruned(optuna, storage, name="s", sampler=None):
    """A study that nothing prunes; its sampler is independent unless another one is given."""
    from dpselect.integrations.optuna import IndependentSampler

    return optuna.create_study(
        study_name=name,
        storage=storage,
        sampler=sampler or IndependentSampler(),
        pruner=optuna.pruners.NopPruner(),
    )


@pytest.fixture(scope="module")
def written(optuna, tmp_path_factory):
    """One search by Optuna in an SQLite file and in a journal; and one by IndependentSampler."""
    folder = tmp_path_factory.mktemp("optuna")
    backend = optuna.storages.journal.JournalFileBackend(str(folder / "past.log"))
    storages = {"past.db": f"sqlite:///{folder}/past.db", "past.log": optuna.storages.JournalStorage(backend)}

    def objective(trial):
        rate = trial.suggest_float("rate", 1e-3, 1.0, log=True)
        trial.suggest_int("layers", 1, 4)
        trial.suggest_categorical("kind", ["a", None, 2.5])
        trial.set_user_attr("sigma", 2.0)
        trial.report(rate, 0)
        if trial.number == 3:
            raise ValueError
        if trial.number == 4:
            raise optuna.TrialPruned
        return rate

    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    loaded = {}
    for name, storage in storages.items():
        past = optuna.create_study(study_name="first", storage=storage, sampler=optuna.samplers.RandomSampler(seed=1))
        past.enqueue_trial({"rate": 0.5})
        past.optimize(objective, n_trials=6, catch=(ValueError,))
        past.ask()
        past.enqueue_trial({"rate": 0.25})
        optuna.create_study(study_name="second", storage=storage)
        optuna.create_study(study_name="third", storage=storage)
        optuna.delete_study(study_name="third", storage=storage)
        loaded[name] = optuna.load_study(study_name="first", storage=storage).get_trials()
    own = unpruned(optuna, f"sqlite:///{folder}/independent.db")
    own.optimize(lambda t: t.suggest_float("x", 0, 1) + t.suggest_int("one", 1, 1), n_trials=4)
    optuna.logging.set_verbosity(level)
    return folder, loaded


@pytest.mark.parametrize("name", ["past.db", "past.log"])
def test_a_storage_is_read_as_optuna_reads_it(written, name):
    folder, loaded = written
    past = read_study(str(folder / name), name="first")
    assert len(past.trials) == len(loaded[name]) == 8
    for ours, theirs in zip(past.trials, loaded[name], strict=True):
        assert (ours.number, ours.state) == (theirs.number, theirs.state.name)
        assert ours.parameters == theirs.params
        assert ours.user_attributes == theirs.user_attrs
        assert ours.intermediate_values == len(theirs.intermediate_values)
        assert {k: json.loads(v)["name"] for k, v in ours.distributions.items()} == {
            k: type(v).__name__ for k, v in theirs.distributions.items()
        }
    assert [trial.enqueued for trial in past.trials] == [True, *[False] * 6, True]
    assert past.others == ("second",)
    assert past.deleted == (1 if name == "past.log" else 0)  # a database forgets
    assert past.directions == 1


@pytest.mark.parametrize("name", ["past.db", "past.log"])
def test_reading_writes_nothing(written, tmp_path, name):
    shutil.copy(written[0] / name, tmp_path)
    before = (tmp_path / name).read_bytes()
    (tmp_path / name).chmod(0o444)
    read_study(str(tmp_path / name), name="first")
    assert (tmp_path / name).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_database_address(written, tmp_path):
    assert len(read_study(f"sqlite:///{written[0]}/past.db", name="first").trials) == 8
    with pytest.raises(FileNotFoundError):
        read_study(f"sqlite:///{tmp_path}/absent.db")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ArgumentError, match="no driver is installed for nosuch"):
        read_study("nosuch://name:secret@host/database")
    with pytest.raises(ArgumentError, match="no database URL"):
        read_study("://")


@pytest.mark.full
@pytest.mark.skipif(POSTGRES is None, reason="DPSELECT_TEST_POSTGRES names no server")
def test_a_study_on_postgresql(optuna):
    url = POSTGRES.replace("postgresql://", "postgresql+psycopg://", 1)
    past = optuna.create_study(study_name="account", storage=url, load_if_exists=True)
    past.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    read = read_study(POSTGRES, name="account")
    assert [trial.parameters for trial in read.trials] == [trial.params for trial in past.get_trials()]
    optuna.delete_study(study_name="account", storage=url)


@pytest.mark.full
def test_without_optuna_and_torch_accounts_work_and_the_others_name_the_extra(tmp_path):
    (tmp_path / "state.json").write_text('{"history": [[1.0, 0.01, 1000]], "mechanism": "rdp"}')
    with zipfile.ZipFile(tmp_path / "state.pt", "w") as archive:
        archive.writestr("state/data.pkl", b"")
    script = f"""
import importlib, importlib.abc, sys
class Absent(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("optuna", "torch", "opacus"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Absent())
from typer.testing import CliRunner
from dpselect.cli.app import app
def account(*arguments):
    return CliRunner().invoke(app, ["account", "--delta", "1e-5", *arguments])
folder = {str(tmp_path)!r}
assert account("--optuna", {str(EXAMPLES / "past_search.log")!r}, "--base", "pure:epsilon=1").exit_code == 0
assert account("--opacus", folder + "/state.json").exit_code == 0
print(account("--opacus", folder + "/state.pt").exception)
for name in ("optuna.wrapper", "optuna.trial", "opacus.training"):
    try:
        importlib.import_module("dpselect.integrations." + name)
    except ImportError as error:
        print(error)
"""
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    extras = ["torch", "optuna", "optuna", "torch"]
    assert [line.split("pip install ")[1] for line in printed.splitlines()] == [f'"dpselect[{e}]"' for e in extras]


def test_the_independent_sampler_leaves_what_the_price_needs(written):
    past = read_study(str(written[0] / "independent.db"))
    assert price_study(past, base=base, **DECLARED).rule == BEST_OF_FIXED


@pytest.mark.full
def test_the_best_runs_picked_out_of_a_study_are_no_study_of_few_runs(optuna, tmp_path):
    whole, few = (unpruned(optuna, f"sqlite:///{tmp_path}/{name}.db", name) for name in ("whole", "few"))
    whole.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=4)
    few.add_trials(sorted(whole.trials, key=lambda trial: trial.value)[:2])
    assert price_study(read_study(str(tmp_path / "whole.db")), base=base, **DECLARED).missing == ()
    missing = price_study(read_study(str(tmp_path / "few.db")), base=base, **DECLARED).missing
    assert len(missing) == 1
    assert "copied" in missing[0]


@pytest.mark.full
def test_the_independent_sampler_refuses_a_pruner_and_shows_fixed_parameters(optuna, tmp_path):
    from dpselect.integrations.optuna import IndependentSampler

    with pytest.raises(ArgumentError, match="NopPruner"):
        optuna.create_study(sampler=IndependentSampler()).optimize(lambda trial: 0.0, n_trials=1)
    sampler = optuna.samplers.PartialFixedSampler({"x": 0.5}, IndependentSampler())
    past = unpruned(optuna, f"sqlite:///{tmp_path}/fixed.db", sampler=sampler)
    past.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=2)
    priced = price_study(read_study(str(tmp_path / "fixed.db")), base=base, **DECLARED)
    assert len(priced.missing) == 1
    assert "not drawn" in priced.missing[0]


@pytest.mark.full
@pytest.mark.parametrize("name", ["again.db", "again.log"])
def test_a_run_that_was_put_back_into_the_queue_has_been_paid_for(optuna, tmp_path, name):
    """A worker that is told to stop may give its trial back; what it saw of the data, it saw."""
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "again.log"))
    storage = f"sqlite:///{tmp_path}/again.db" if name.endswith("db") else optuna.storages.JournalStorage(backend)
    past = unpruned(optuna, storage)
    waiting = optuna.trial.TrialState.WAITING
    trial = past.ask()
    trial.suggest_float("x", 1.0, 8.0)
    trial.set_user_attr("sigma", 1.0)
    trial.set_user_attr("sigma", 5.0)
    past._storage.set_trial_state_values(trial._trial_id, waiting)
    read = read_study(str(tmp_path / name))
    assert [each.state for each in read.trials] == ["WAITING"]
    one = price_study(read, base=base)
    assert one.guarantee.epsilon(1e-6) == BASE.epsilon(1e-6)
    assert any("put back into the queue" in line for line in one.missing)
    if name.endswith("db"):
        return  # which keeps the last start only
    past.tell(past.ask(), 1.0)
    read = read_study(str(tmp_path / name))
    twice = price_study(read, base=base, **DECLARED)
    assert twice.guarantee.epsilon(1e-6) == pytest.approx(compose(BASE, BASE).epsilon(1e-6), rel=1e-9)
    assert any("put back into the queue" in line for line in twice.missing)
    with pytest.raises(ArgumentError, match="several values"):
        price_study(read, base=base, noise_parameter="sigma")


def test_missing_trials_are_noticed(written, tmp_path):
    shutil.copy(written[0] / "past.db", tmp_path)
    with sqlite3.connect(tmp_path / "past.db") as connection:
        connection.execute("DELETE FROM trials WHERE number = 2")
    with pytest.raises(ContentError, match="lacks trials"):
        read_study(str(tmp_path / "past.db"), name="first")


def test_an_unknown_schema_is_refused(written, tmp_path):
    shutil.copy(written[0] / "past.db", tmp_path)
    with sqlite3.connect(tmp_path / "past.db") as connection:
        connection.execute("UPDATE version_info SET schema_version = 13")
    with pytest.raises(ContentError, match="13"):
        read_study(str(tmp_path / "past.db"), name="first")


def test_which_study_is_meant(written):
    with pytest.raises(ArgumentError, match="2 studies; give one of 'first', 'second'"):
        read_study(str(written[0] / "past.db"))
    with pytest.raises(ArgumentError, match="no study 'fourth'"):
        read_study(str(written[0] / "past.log"), name="fourth")


def test_a_journal_cut_short_in_its_last_line_and_one_damaged_elsewhere(written, tmp_path):
    lines = (written[0] / "past.log").read_bytes()
    cut = tmp_path / "cut.log"
    cut.write_bytes(lines[:-10])
    assert len(read_study(str(cut), name="first").trials) == 8
    cut.write_bytes(lines.replace(b'{"op_code":6', b'{"op_code":"6', 1))
    with pytest.raises(ContentError, match="line "):
        read_study(str(cut), name="first")


@pytest.mark.parametrize("content", [b"", b"hello\n", b"{}\n", b"[1]\n", b"SQLite format 3\0rubbish"])
def test_files_that_are_no_storage(tmp_path, content):
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(ContentError):
        read_study(str(tmp_path / "file"))
    with pytest.raises(FileNotFoundError):
        read_study(str(tmp_path / "absent"))
    assert not (tmp_path / "absent").exists()


def test_a_database_of_something_else(tmp_path):
    with sqlite3.connect(tmp_path / "other.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    with pytest.raises(ContentError, match="Optuna"):
        read_study(str(tmp_path / "other.db"))


# the command


def run(*arguments):
    return CliRunner().invoke(app, ["account", "--delta", "1e-6", *map(str, arguments)])


def test_the_command_names_what_is_missing(written):
    result = run("--optuna", written[0] / "past.db", "--study-name", "first", "--base", "gaussian:noise_multiplier=4")
    assert result.exit_code == 0
    assert "4 complete, 1 failed, 1 pruned, 1 running, 1 waiting" in result.stdout
    assert "missing for the price of the best of a fixed number:" in result.stdout
    seven = gaussian(noise_multiplier=4 / 7**0.5).epsilon(1e-6)
    assert f"epsilon {rounded_up(seven)} " in result.stdout


def test_the_command_in_json(written):
    arguments = ["--optuna", written[0] / "independent.db", "--base", "gaussian:noise_multiplier=4", "--json"]
    plain = json.loads(run(*arguments).stdout)
    best = json.loads(run(*arguments, "--fixed-beforehand", "--only-winner-seen").stdout)
    assert plain["bound"] == COMPOSITION
    assert best["bound"] == BEST_OF_FIXED
    assert best["missing_for_best_of_fixed"] == []
    assert best["epsilon"] < plain["epsilon"]
    assert best["trials"]["complete"] == 4


def test_the_command_takes_noise_from_runs(written):
    arguments = ["--optuna", written[0] / "past.log", "--study-name", "first", "--noise-parameter", "sigma"]
    result = run(*arguments, "--base", "gaussian:noise_multiplier=4")
    # the run that was only asked for holds none: all seven at 2
    assert f"epsilon {rounded_up(gaussian(noise_multiplier=2 / 7**0.5).epsilon(1e-6))} " in result.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--base", "pure:epsilon=1", "--repetitions", "fixed:count=2", "--fixed-beforehand"],
        ["--base", "pure:epsilon=1", "--repetitions", "fixed:count=2", "--optuna", "x.db"],
        ["--base", "pure:epsilon=1", "--bound", "pure", "--optuna", "x.db"],
        ["--base", "pure:epsilon=1", "--opacus", "x.json", "--repetitions", "fixed:count=2"],
        ["--opacus", "x.json", "--optuna", "x.db", "--noise-parameter", "sigma"],
    ],
)
def test_options_that_do_not_go_together(arguments):
    assert isinstance(run(*arguments).exception, ArgumentError)


def test_the_command_names_flags(tmp_path, monkeypatch, capsys, written):
    """Of a file that is absent or no study, of a study that is not there, of a parameter that no run holds."""
    (tmp_path / "notes.log").write_text("junk\n")
    base = ["--base", "gaussian:noise_multiplier=4", "--delta", "1e-6", "--optuna"]
    past = str(written[0] / "past.db")
    for asked, said in (
        ([str(tmp_path / "absent.db")], "--optuna: "),
        ([str(tmp_path / "notes.log")], "--optuna: "),
        (["://x"], "--optuna: "),
        ([past, "--study-name", "third"], "--study-name: "),
        ([past, "--study-name", "first", "--noise-parameter", "absent"], "--noise-parameter: "),
    ):
        monkeypatch.setattr("sys.argv", ["dpselect", "account", *base, *asked])
        with pytest.raises(SystemExit) as left:
            main()
        assert left.value.code
        assert capsys.readouterr().err.startswith(f"dpselect: {said}")
