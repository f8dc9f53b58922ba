"""Saved accountant states of Opacus: read without running anything, priced again, refused without a guarantee."""
# ruff: noqa: E402

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats
from typer.testing import CliRunner

opacus = pytest.importorskip("opacus")

from dpselect.cli.app import app
from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.opacus.state import CALLER_ENSURES, history_guarantee, read_history
from dpselect.numerics.digits import rounded_up
from dpselect.privacy import compose, dp_sgd
from tests.integrations.opacus.training_cases import HISTORY, descent, state, torch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")


@pytest.mark.full
def test_against_opacuss_own_accountants():
    """Ours is an upper bound: at least PRV's estimate less its stated error, and at most Opacus's Renyi bound."""
    from opacus.accountants import PRVAccountant, RDPAccountant

    for noise, rate, steps, delta in [(1.0, 0.01, 1000, 1e-5), (4.0, 0.2, 60, 1e-5), (0.7, 0.05, 200, 1e-6)]:
        history = [(noise, rate, steps)]
        ours = history_guarantee(history).epsilon(delta)
        prv, renyi = PRVAccountant(), RDPAccountant()
        prv.history = renyi.history = history
        estimate = prv.get_epsilon(delta, eps_error=0.002)
        assert estimate - 0.004 <= ours <= min(estimate, renyi.get_epsilon(delta))


def saved(path, kind):
    if kind == "json":
        path.write_text(json.dumps(state()))
        return path
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        engine = opacus.PrivacyEngine(accountant="gdp")
    engine.accountant.history = list(HISTORY)
    if callable(engine.accountant.state_dict()["mechanism"]):
        pytest.skip("this version of Opacus puts a function into its states")
    if kind == "checkpoint":
        module = opacus.GradSampleModule(torch.nn.Linear(2, 2))
        engine.save_checkpoint(path=path, module=module, optimizer=descent(module.parameters()))
    else:
        torch.save(engine.accountant.state_dict(), path)
    return path


@pytest.mark.full
@pytest.mark.parametrize("kind", ["json", "state", "checkpoint"])
def test_a_saved_state_is_priced_anew(tmp_path, kind):
    path = saved(tmp_path / "state", kind)
    assert read_history(path) == HISTORY
    taken = [(n, q + 2.0**-23, s) for n, q, s in HISTORY]  # single-precision uniforms are compared with the rate
    expected = compose(*[dp_sgd(noise_multiplier=n, sampling_rate=q, steps=s) for n, q, s in taken]).epsilon(1e-5)
    assert history_guarantee(read_history(path)).epsilon(1e-5) == expected
    result = CliRunner().invoke(app, ["account", "--opacus", str(path), "--delta", "1e-5"])
    assert result.stdout.startswith(f"epsilon {rounded_up(expected)} at delta 1e-05 for this training")
    assert "Poisson" in result.stdout


@pytest.mark.full
def test_a_saved_state_is_a_base(tmp_path):
    path = saved(tmp_path / "state", "json")
    arguments = ["account", "--opacus", str(path), "--delta", "1e-5", "--repetitions", "geometric:mean=10", "--json"]
    found = json.loads(CliRunner().invoke(app, arguments).stdout)
    assert found["epsilon"] > found["single_run_epsilon"]
    alone = json.loads(CliRunner().invoke(app, [*arguments[:5], "--json"]).stdout)
    assert alone["epsilon"] == found["single_run_epsilon"]
    wrong = CliRunner().invoke(app, [*arguments[:5], "--adjacency", "replace_one"])
    assert isinstance(wrong.exception, ArgumentError)


def test_why_no_gradients_may_be_accumulated_over_several_batches():
    """Opacus records k batches of rate q with one step's noise as one batch of rate k*q.

    The exact law of a row's share is binomial; its loss grows with the output, so the worst event is a half-line.
    """
    rate, batches, epsilon = 0.25, 4, 4.0
    counts = np.arange(batches + 1)
    weights = stats.binom.pmf(counts, batches, rate)
    edge = optimize.brentq(lambda x: np.log(weights @ np.exp(counts * x - counts**2 / 2)) - epsilon, -50.0, 50.0)
    exact = weights @ stats.norm.sf(edge, loc=counts) - np.exp(epsilon) * stats.norm.sf(edge)
    recorded = [(1.0, rate * batches, 1)]
    assert exact > 400 * history_guarantee(recorded).delta(epsilon)
    assert "no gradients accumulated" in CALLER_ENSURES


class Trap:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("write", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))])
def test_nothing_in_a_file_is_run(tmp_path, write):
    sprung = tmp_path / "sprung"
    write({"history": Trap(sprung)}, tmp_path / "state")
    with pytest.raises(ContentError):
        read_history(tmp_path / "state")
    assert not sprung.exists()


@pytest.mark.parametrize("text", ["", "{", "{}", '{"history": 3}', '{"history": [[1, 2]]}', '[["a"]]', "PK rubbish"])
def test_files_that_hold_no_state(tmp_path, text):
    (tmp_path / "state").write_text(text)
    with pytest.raises(ContentError):
        read_history(tmp_path / "state")


@pytest.mark.parametrize("history", [[], [(0.0, 0.1, 5)], [(1.0, 1.5, 5)], [(1.0, 0.1, 0)], [(float("nan"), 0.1, 5)]])
def test_histories_without_a_guarantee(history):
    with pytest.raises(ArgumentError):
        history_guarantee(history)
