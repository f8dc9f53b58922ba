"""A network of the user's own in a study: from the study file to predictions, and what is refused before a charge."""
# ruff: noqa: E402

import csv
import os
import signal
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

import dpselect
from dpselect.errors import AdjacencyError, ArgumentError, StudyError
from dpselect.integrations.opacus import PrivateTraining, checkpoints, table_network
from dpselect.integrations.opacus.learner import NetworkClassification, NetworkRegression
from dpselect.privacy import dp_sgd
from dpselect.randomness import keyed_source
from dpselect.study import check_study, export_model, parse_study, run_study
from dpselect.study.predict import predict_table
from dpselect.study.price import price
from dpselect.study.user_module import importable
from dpselect.study.validate import StudyPaths, validate
from dpselect.tables import Written
from dpselect.testing.learner_contract import unpriced
from tests.integrations.opacus.network_cases import small, wide

CODE = """
import torch

def build(columns, outputs):
    return torch.nn.Sequential(torch.nn.Linear(columns, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs))

def wide(columns, outputs):
    return torch.nn.Sequential(torch.nn.Linear(columns, 32), torch.nn.Tanh(), torch.nn.Linear(32, outputs))

class Centred(torch.nn.Module):
    def __init__(self, columns, outputs):
        super().__init__()
        self.layer = torch.nn.Linear(columns, outputs)

    def forward(self, rows):
        return self.layer(rows - rows.mean(dim=0))
"""
LEARNER = {"name": "torch", "module": "user_nets:build", "sampling_rate": 0.5, "steps": 30, "learning_rate": 0.05}
SPACE = {"module": {"law": "categorical", "choices": ["user_nets:build", "user_nets:wide"]}}
TWO = {"law": "fixed", "count": 2}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "user_nets.py").write_text(CODE)
    random = np.random.default_rng(3)
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["a", "b", "label", "number"])
        for a, b in random.uniform(0.0, 1.0, (300, 2)):
            writer.writerow([a, b, "in" if a > b else "out", 10 * a])
    yield tmp_path
    sys.modules.pop("user_nets", None)


def study(**tables):
    columns = {"a": {"bounds": [0, 1]}, "b": {"bounds": [0, 1]}}
    document = {
        "data": {"source": "rows.csv", "label": "label", "classes": ["out", "in"], "columns": columns},
        "privacy": {"noise_multiplier": 0.5, "delta": 1e-5, "nominal_rows": 300},
        "learner": LEARNER,
        "runs": {"executor": "inline"},
        "output": {"folder": "out"},
    }
    return parse_study({**document, **tables})


def of_numbers(**tables):
    columns = {"a": {"bounds": [0, 1]}, "b": {"bounds": [0, 1]}}
    label = {"label": "number", "task": "regression", "label_bounds": [0, 10]}
    return study(data={"source": "rows.csv", "columns": columns, **label}, **tables)


def run(asked, folder, **options):
    with unpriced():
        return run_study(asked, base_folder=folder, folder=folder / "out", random=keyed_source(1), **options).release


def answers_of(folder, **options):
    text = predict_table(folder / "out" / "model.npz", "rows.csv", form=Written(), keep=["label", "number"], **options)
    return list(csv.DictReader(text.splitlines()))


@pytest.mark.full
def test_a_study_trains_a_network_and_its_model_predicts(folder):
    release = run(study(), folder)
    assert (release["found"], release["learner"], release["settings"]["module"]) == (True, "torch", "user_nets:build")
    rows = answers_of(folder, module="user_nets:build", probabilities=True)
    assert np.mean([row["prediction"] == row["label"] for row in rows]) > 0.8
    assert all(abs(float(row["probability_in"]) + float(row["probability_out"]) - 1) < 1e-6 for row in rows)
    assert [path for path in sys.path if path == str(folder.resolve())] == []


@pytest.mark.full
def test_a_study_of_a_number(folder):
    run(of_numbers(), folder)
    errors = [abs(float(row["prediction"]) - float(row["number"])) for row in answers_of(folder, module=wrong_or_right)]
    assert np.mean(errors) < 1.5


def wrong_or_right(columns, outputs):
    return torch.nn.Sequential(torch.nn.Linear(columns, 8), torch.nn.Tanh(), torch.nn.Linear(8, outputs))


SEARCHED = {"space": SPACE, "repetitions": TWO, "learner": {k: v for k, v in LEARNER.items() if k != "module"}}


@pytest.mark.full
def test_networks_are_searched_in_processes_that_find_the_code(folder):
    release = run(study(**SEARCHED, runs={"executor": "process", "workers": 1}), folder)
    won = release["parameters"]["module"]
    assert won in SPACE["module"]["choices"]
    with importable(folder):
        model = dpselect.load_model(folder / "out" / "model.npz", module=won)
    assert model.predict({"a": [0.0, 1.0], "b": [1.0, 0.0]}).tolist() == ["out", "in"]


class Killing(checkpoints.Checkpoints):
    """Kills the process in a step, if there is one of that number. Counts steps in a file."""

    at = None

    def save(self, public, state):
        with open("steps", "a") as file:
            file.write("x")
        super().save(public, state)
        if os.path.getsize("steps") == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")
@pytest.mark.parametrize("at", [7, 47])
def test_a_killed_study_goes_on_within_its_trial(folder, monkeypatch, at):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    monkeypatch.setattr("dpselect.integrations.opacus.training.Checkpoints", Killing)
    fixed = {key: value for key, value in LEARNER.items() if key != "learning_rate"}
    space = {"learning_rate": {"law": "log_uniform", "low": 0.01, "high": 0.1}}
    asked = study(space=space, repetitions=TWO, learner=fixed)
    with unpriced():
        whole = run_study(asked, base_folder=folder, folder=folder / "whole", random=keyed_source(1)).release
    assert not (folder / "whole" / "checkpoints").exists()
    (folder / "steps").unlink()
    child = os.fork()
    if child == 0:
        Killing.at = at
        try:
            run(asked, folder)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert oct((folder / "out" / "checkpoints").stat().st_mode & 0o777) == "0o700"
    again = run(asked, folder, resume=True)
    assert (folder / "steps").stat().st_size == 2 * LEARNER["steps"]  # no step is taken again
    assert not (folder / "out" / "checkpoints").exists()
    assert again["parameters"] == whole["parameters"]
    weights = [np.load(folder / name / "model.npz") for name in ("whole", "out")]
    assert all(np.array_equal(weights[0][key], weights[1][key]) for key in weights[0].files if key != "description")


@pytest.mark.full
def test_a_search_continues_with_the_same_code_only(folder):
    def kept():
        return price(validate(study(**SEARCHED), StudyPaths(folder, folder / "out"))).store.fingerprint

    with unpriced():
        before = kept()
        (folder / "user_nets.py").write_text(CODE.replace("Tanh", "ReLU"))
        assert [name for name, value in kept().items() if value != before[name]] == [
            "the code of 'user_nets:build'",
            "the code of 'user_nets:wide'",
        ]


@pytest.mark.full
def test_a_model_file_runs_no_code_that_it_names(folder):
    run(study(), folder)
    path = folder / "out" / "model.npz"
    sys.modules.pop("user_nets")
    with pytest.raises(StudyError, match=r"a network of 'user_nets:build', whose code is not in the file"):
        dpselect.load_model(path)
    assert "user_nets" not in sys.modules
    with pytest.raises(StudyError, match="give the one that was trained"):
        dpselect.load_model(path, module=wide)
    with pytest.raises(StudyError, match="no Python module"):
        dpselect.load_model(path, module="no_nets:build")
    for ending in ("onnx", "joblib"):
        with pytest.raises(StudyError, match="whose code is not in the file"):
            export_model(path, folder / f"model.{ending}")


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({"learner": {"name": "torch"}}, "learner.module: needed"),
        ({"learner": {**LEARNER, "module": "user_nets:Centred"}}, "learner.module: .*other rows of its batch"),
        ({"learner": {**LEARNER, "module": "user_nets:none"}}, "learner.module: 'user_nets' has no function 'none'"),
        ({"learner": {**LEARNER, "module": "csv:reader"}}, "learner.module: the function fails|must return"),
        ({"learner": {**LEARNER, "optimizer": "lion"}}, "learner.optimizer: must be one of adam, adamw, sgd"),
        ({"learner": {**LEARNER, "sampling_rate": 0}}, "learner.sampling_rate"),
        ({"learner": {**LEARNER, "steps": 2.5}}, "learner.steps"),
        ({"learner": {**LEARNER, "clip_norm": -1}}, "learner.clip_norm"),
        ({"learner": {**LEARNER, "map": "bins"}}, "learner.map: unknown key for torch"),
        ({"learner": {**LEARNER, "grad_sample_mode": "ew"}}, "learner.grad_sample_mode"),
        ({"learner": {**LEARNER, "clipping": "adaptive"}}, "learner.clipping"),
        ({"space": {"steps": {"law": "categorical", "choices": [3]}}, "repetitions": TWO}, "space.steps: .*guarantee"),
        (
            {"space": {"module": {"law": "categorical", "choices": ["user_nets:build", "user_nets:Centred"]}},
             "repetitions": TWO, "learner": {k: v for k, v in LEARNER.items() if k != "module"}},
            "space.module: .*other rows of its batch",
        ),
        ({"runs": {"executor": "ray"}}, "runs.executor: 'ray' may not find learner.module"),
        ({"privacy": {"epsilon": 3.0, "delta": 1e-5, "nominal_rows": 300, "adjacency": "replace_one"}}, "adjacency"),
    ],
)  # fmt: skip
def test_what_is_refused_before_anything_is_drawn_or_charged(folder, tables, said):
    learner = tables.get("learner", LEARNER)
    kept = {key: value for key, value in learner.items() if key not in tables.get("space", {})}
    asked = study(**{**tables, "learner": kept})
    for step in (check_study, run_study):
        with unpriced(), pytest.raises((StudyError, ArgumentError), match=said):
            step(asked, base_folder=folder, folder=folder / "out")
    assert not (folder / "out").exists()


def test_a_name_that_python_finds_elsewhere_is_refused(folder):
    (folder / "csv.py").write_text(CODE)
    with unpriced(), pytest.raises(StudyError, match="'csv' in the study file's folder has the name of another module"):
        check_study(study(learner={**LEARNER, "module": "csv:build"}), base_folder=folder)


# the learners


def made(**changes):
    settings = {"module": small, "noise_multiplier": 2.0, "sampling_rate": 0.5, "steps": 3, "nominal_rows": 40}
    return NetworkClassification(**{**settings, "classes": [0, 1, 2], "random": keyed_source(1), **changes})


def rows(count=40):
    random = np.random.default_rng(1)
    return random.uniform(-1.0, 1.0, (count, 4)), random.integers(0, 3, count)


@pytest.mark.full
def test_the_price_is_that_of_dp_sgd():
    expected = dp_sgd(noise_multiplier=2.0, sampling_rate=0.5, steps=3)
    fitted = made().fit(*rows())
    for found in (made().guarantee(), fitted.guarantee_, made(module=None).guarantee()):
        assert found.epsilon(1e-5) == expected.epsilon(1e-5)
    with pytest.raises(AdjacencyError):
        made(adjacency="replace_one").guarantee()


@pytest.mark.full
def test_the_training_is_the_one_that_is_priced(monkeypatch):
    plans = []

    def noted(**settings):
        plans.append(PrivateTraining(**settings))
        return plans[-1]

    monkeypatch.setattr(table_network, "PrivateTraining", noted)
    learner = made(clip_norm=0.5, sampling_rate=0.25, nominal_rows=80).fit(*rows())
    (plan,) = plans
    assert plan.guarantee.epsilon(1e-5) == learner.guarantee().epsilon(1e-5)
    assert (plan.expected_batch_size, plan.max_grad_norm) == (20.0, 0.5)


@pytest.mark.full
def test_scores_ask_the_model_one_row_at_a_time():
    random = np.random.default_rng(4)
    X = random.uniform(-1.0, 1.0, (500, 4))
    fitted = made(module=wide).fit(*rows())
    whole = fitted.predict_proba(X)
    assert all(np.array_equal(fitted.predict_proba(X[k : k + 1])[0], whole[k]) for k in range(500))


@pytest.mark.full
@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_cells_without_a_number_count_as_zero(wrong):
    X, y = rows()
    zero, other = X.copy(), X.copy()
    zero[3, 1], other[3, 1] = 0.0, wrong
    one, two = (made().fit(each, y) for each in (zero, other))
    assert all(np.array_equal(a, b) for a, b in zip(one.weights_, two.weights_, strict=True))
    assert np.array_equal(one.predict_proba(zero), one.predict_proba(other))


@pytest.mark.full
def test_a_row_of_no_class_trains_nothing():
    X, y = rows()
    with_it = made().fit(np.vstack([X, X[:1]]), np.append(y, 7))
    assert all(np.array_equal(a, b) for a, b in zip(with_it.weights_, made().fit(X, y).weights_, strict=True))


@pytest.mark.full
def test_one_row_moves_the_sum_by_at_most_the_clipping_norm():
    """One step of plain descent with the same noise: the rest of the difference is the row's own gradient."""
    X, y = rows()
    plain = {"optimizer": "sgd", "momentum": 0.0, "learning_rate": 1.0, "steps": 1, "sampling_rate": 1.0}
    for scale in (1.0, 1e6, 1e30):
        more = np.vstack([X, scale * np.ones((1, 4))]), np.append(y, 2)
        less, whole = (made(clip_norm=0.5, **plain).fit(*each).weights_ for each in ((X, y), more))
        moved = np.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(less, whole, strict=True)))
        assert 0.0 < moved <= 0.5 / 40 * (1 + 1e-4)


@pytest.mark.full
def test_numbers_between_their_bounds():
    X, _ = rows()
    model = NetworkRegression(
        module=small, label_bounds=(-5.0, 15.0), steps=3, nominal_rows=40, random=keyed_source(1)
    ).fit(X, 100.0 * X[:, 0])
    answers = model.predict(50.0 * X)
    assert answers.shape == (40,)
    assert ((answers >= -5.0) & (answers <= 15.0)).all()
