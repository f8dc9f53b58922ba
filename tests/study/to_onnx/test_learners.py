"""Every learner of studies in operators: labels are equal, and answers of a regression to the bit."""

import numpy as np
import pytest

from dpselect.errors import ArgumentError
from dpselect.study.columns.column import Column
from dpselect.study.learners import LEARNERS
from dpselect.study.target import Target
from dpselect.study.to_onnx.learners import refuse_other_learners
from dpselect.study.to_onnx.model import onnx_bytes
from tests.study.to_onnx.exported_cases import LOGS, PLAIN, Made, made, table

PACKAGED = [name for name in LEARNERS if not LEARNERS[name].code]
NUMBER = Target((), (-15.0, 25.0))
FEW = {"dp-sgd": {"steps": 5}, "boosted-trees": {"n_estimators": 6}}
CLASSES = {
    **{name: (name, FEW.get(name, {})) for name in PACKAGED if LEARNERS[name].estimator is not None},
    "two classes": ("output-perturbation", {"noise": 0.1, "target": Target((1, 0))}),
    "network": ("dp-sgd", {"steps": 5, "hidden_units": 4}),
    "clipped network": ("dp-sgd", {"steps": 5, "hidden_units": 4, "activation": "relu"}),
    "trees alone": ("boosted-trees", {"n_estimators": 6, "linear_share": 0.0}),
    "linear start": ("boosted-trees", {"n_estimators": 6, "linear_share": 0.5, "noise": 0.05}),
    "map": ("ridge", {"map": "bins", "bins": 3}),
    "map of trees": ("boosted-trees", {"n_estimators": 6, "map": "direction"}),
}
NUMBERS = {
    **{name: (name, FEW.get(name, {})) for name in PACKAGED if LEARNERS[name].regressor is not None},
    "trees alone": ("boosted-trees", {"n_estimators": 6, "linear_share": 0.0}),
    "map": ("least-squares", {"map": "centered"}),
}


def needed():
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")


def rows(columns, count=1500):
    cells = table(columns, count, seed=11)
    cells["strict"] = np.nan_to_num(cells["strict"], nan=1.0)
    return cells


@pytest.mark.parametrize("name", CLASSES)
def test_labels_are_equal(name):
    needed()
    kind, settings = CLASSES[name]
    model, cells = made(kind, **settings), rows(PLAIN)
    found = model.run(cells)
    assert np.array_equal(found["label"], model.expected(cells))
    assert np.allclose(found["probabilities"], model.probabilities(cells), rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", NUMBERS)
def test_answers_are_equal(name):
    needed()
    kind, settings = NUMBERS[name]
    model, cells = made(kind, target=NUMBER, **settings), rows(PLAIN)
    found = model.run(cells)["prediction"]
    exact = name != "boosted-trees"  # whose linear start has sines
    assert np.allclose(found, model.expected(cells), rtol=0, atol=0.0 if exact else 1e-3)


def test_values_at_the_edges_of_all_bins_of_trees():
    needed()
    columns = {"x": Column(bounds=(0, 255), missing=0), "y": Column(bounds=(-1, 1), missing=0)}
    model = made("boosted-trees", columns, n_estimators=40, linear_share=0.0, target=NUMBER)
    edges = np.linspace(0, 255, 256)
    for x in (edges, np.nextafter(edges, -1), np.nextafter(edges, 256)):
        cells = {"x": x, "y": edges / 255 * 2 - 1}
        assert np.array_equal(model.run(cells)["prediction"], model.expected(cells))


@pytest.mark.parametrize("kind", ["ridge", "boosted-trees"])
def test_the_first_of_classes_that_tie(kind):
    needed()
    model = made(kind, rows=50, **({"n_estimators": 2, "linear_share": 0.0} if kind == "boosted-trees" else {}))
    learner = model.model.estimator
    learner.weights_ = tuple(np.zeros_like(each) for each in learner.weights_)
    tied, cells = Made(model.model, onnx_bytes(model.model)), rows(PLAIN, 20)
    assert tied.run(cells)["label"].tolist() == tied.expected(cells).tolist() == ["no"] * 20


@pytest.mark.full
@pytest.mark.parametrize("name", CLASSES)
def test_many_rows_with_logarithms(name):
    needed()
    kind, settings = CLASSES[name]
    columns = {**PLAIN, **LOGS}
    model, cells = made(kind, columns, **settings), rows(columns, 200_000)
    assert np.count_nonzero(model.run(cells)["label"] != model.expected(cells)) == 0


@pytest.mark.full
@pytest.mark.parametrize("seed", range(40))
def test_random_models_of_few_columns(seed):
    """One column alone too: its constants are single numbers, which a runtime may leave out."""
    needed()
    random = np.random.default_rng(seed)
    kind = str(random.choice(PACKAGED))
    known = LEARNERS[kind]
    target = [Target(("a", "b")), Target((3, 1, 2)), NUMBER][int(random.integers(3))]
    if target.task not in known.tasks:
        target = NUMBER if "regression" in known.tasks else Target(("a", "b"))
    names = random.choice([name for name in PLAIN if name != "strict"], int(random.integers(1, 4)), replace=False)
    low = float(random.choice([0.0, -1.0, 1e-9]))
    public = {"tiny": Column(bounds=(low, low + float(random.choice([1e-9, 1.0, 2.0]))), missing=low)}
    columns = {**{str(name): PLAIN[name] for name in names}, **public}
    settings = dict(FEW.get(kind, {}))
    if random.random() < 0.5:
        settings["map"] = str(random.choice(["centered", "direction", "standardized", "bins"]))
    if kind == "boosted-trees":
        settings["linear_share"] = 0.0
    parameters = known.for_task(target.task)().get_params()
    if "row_norm" in parameters:
        settings["row_norm"] = float(random.choice([0.1, 1.0, 1.0 + 1e-9, 3.0]))
    if kind == "ridge":
        settings["intercept_scale"] = float(random.choice([0.0, 0.3]))
    model = made(kind, columns, target=target, noise=0.3, rows=200, seed=seed, **settings)
    cells = table(columns, 3000, seed=seed + 100)
    found = model.run(cells)
    assert np.array_equal(found["prediction" if target is NUMBER else "label"], model.expected(cells))


def test_what_has_no_operators_is_refused():
    class Other:
        weights_ = ()

    with pytest.raises(ArgumentError, match="the learner Other has no ONNX operators"):
        refuse_other_learners(Other())


def test_weights_that_are_not_finite_are_refused():
    needed()
    learner = made("ridge").model.estimator
    learner.weights_ = (np.full_like(learner.weights_[0], np.nan),)
    with pytest.raises(ArgumentError, match="not finite"):
        refuse_other_learners(learner)
