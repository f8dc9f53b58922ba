"""Optuna's storages, as sweeps."""

from pathlib import Path

import pytest

from dpselect.integrations.sweeps.read import read_sweep

EXAMPLES = Path(__file__).parents[4] / "examples"


def test_trials_and_their_states():
    sweep = read_sweep(str(EXAMPLES / "past_search.log"))
    assert (sweep.tool, sweep.name, sweep.independent) == ("optuna", "digits", None)
    assert sorted(run.status for run in sweep.runs) == ["failed", *["finished"] * 10, "pruned"]
    assert set(sweep.runs[0].values) == {"learning_rate"}


def test_independent_draws_are_recorded():
    assert "drawn independently" in read_sweep(str(EXAMPLES / "independent_search.log")).independent


@pytest.mark.full
def test_what_optuna_writes(tmp_path):
    optuna = pytest.importorskip("optuna")
    source = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=source, study_name="s")
    study.enqueue_trial({"noise_multiplier": 2.0})

    def objective(trial):
        noise = trial.suggest_float("noise_multiplier", 1.0, 3.0)
        trial.set_user_attr("steps", 100)
        if trial.number == 1:
            raise optuna.TrialPruned
        return noise

    study.optimize(objective, n_trials=3)
    study.enqueue_trial({"noise_multiplier": 1.5})
    for name in (source, f"{tmp_path}/study.db"):
        sweep = read_sweep(name)
        assert [run.status for run in sweep.runs] == ["finished", "pruned", "finished"]
        assert sweep.runs[0].values == {"noise_multiplier": 2.0, "steps": 100}
