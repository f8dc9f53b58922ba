"""Predictions of loaded models: orders of columns, containers, and the tally of right, refused and wrong ones."""

from __future__ import annotations

import json
import math
import pickle

import joblib
import numpy as np
import pytest

from dpselect.testing import loaded_predictions
from dpselect.testing.loaded_predictions import FEW, Tally, arrays, check_folder, containers, orders

CELLS = {"b": [1.0, 2.0], "a": ["x", "y"]}


class Model:
    def __init__(self, shift=0.0, error=None):
        self.shift, self.error = shift, error

    def predict(self, X):
        if self.error is not None:
            raise self.error
        return np.asarray(X) + self.shift


def test_few_columns_in_every_order_and_many_in_some():
    few = list(orders(list("dcba")))
    assert len(few) == math.factorial(FEW) == len(set(map(tuple, few)))
    assert few[0] == list("dcba")
    many = list(orders(list("dcbae")))
    assert many[:3] == [list("dcbae"), list("abcde"), list("eabcd")]
    assert len(many) == 8
    assert all(sorted(order) == list("abcde") for order in many)


def test_containers_hold_the_cells_under_their_names():
    made = {kind: make(CELLS) for kind, make in containers().items()}
    assert made["dictionary of lists"] == CELLS
    assert made["dictionary of arrays"]["a"].tolist() == ["x", "y"]
    for kind, table in made.items():
        columns = table.to_pydict() if kind.startswith("arrow") else {name: list(table[name]) for name in CELLS}
        assert columns == CELLS, kind


def test_arrays_are_in_the_order_asked_for():
    assert [table.tolist() if kind != "list of rows" else table for kind, table in arrays(CELLS, ["a", "b"])] == [
        [["x", 1.0], ["y", 2.0]]
    ] * 2


def test_a_tally_counts_right_refused_and_wrong():
    tally = Tally({"labels": np.array([1.0, 2.0])})
    tally.check("right", Model(), [1.0, 2.0], may=False)
    tally.check("near", Model(shift=1e-15), [1.0, 2.0], may=True)
    tally.check("may", Model(error=ValueError("order")), [1.0, 2.0], may=True)
    tally.check("must", Model(error=ValueError("order")), [1.0, 2.0], may=False)
    assert tally.counts == {"right": 1, "wrong": 1, "refused": 2}
    assert tally.wrong == ["near", "must: refused: order"]
    with pytest.raises(TypeError):
        tally.check("broken", Model(error=TypeError()), [1.0], may=True)


class ByName:
    """Reads the column `b` of a frame; refuses columns that are in another order than in training."""

    def predict(self, X):
        if list(X.columns) not in (["b", "a"], [0, 1]):
            raise ValueError("another order")
        return X.iloc[:, 0].to_numpy(dtype=float)


class ByPlace(ByName):
    def predict(self, X):
        return X.iloc[:, 0].to_numpy(dtype=float)


def saved(folder, model, labels):
    (folder / "rows.json").write_text(json.dumps({"b": [0.0, 1.0], "a": [1.0, 3.0]}))
    np.savez(folder / "expected.npz", labels=labels)
    (folder / "estimator.pickle").write_bytes(pickle.dumps(model))
    joblib.dump(model, folder / "estimator.joblib")


def test_a_folder_of_an_estimator(tmp_path, monkeypatch):
    """Two files, three tables of pandas by name and one by number, in two orders: half of them may be refused."""
    pytest.importorskip("pandas")
    made = {kind: make for kind, make in containers().items() if kind.startswith(("dictionary", "pandas"))}
    monkeypatch.setattr(loaded_predictions, "containers", lambda: made)
    saved(tmp_path, ByName(), [0.0, 1.0])
    assert check_folder(tmp_path) == {"right": 8, "refused": 8, "wrong": []}
    saved(tmp_path, ByPlace(), [0.0, 1.0])
    found = check_folder(tmp_path)
    assert (found["right"], len(found["wrong"])) == (8, 5)
    saved(tmp_path, ByName(), [0.0, np.nextafter(1.0, 2.0)])
    assert len(check_folder(tmp_path)["wrong"]) == 5
