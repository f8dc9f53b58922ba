"""A small model file, and its columns."""

import numpy as np

import dpselect
from dpselect.privacy import Adjacency
from dpselect.study.columns.column import Column
from dpselect.study.learners.recipe import Recipe
from dpselect.study.model_file import model_bytes
from dpselect.study.target import Target

COLUMNS = {
    "zebra": Column(bounds=(0.0, 1.0)),
    "apple": Column(bounds=(0.0, 2.0)),
    "mango": Column(categories=("x", "a", "m")),
}
WEIGHTS = np.array([[3.0, -3.0], [-1.0, 1.0], [0.5, 0.0], [0.0, 0.5], [-0.25, 0.25], [0.1, 0.0]])


def written(**changes):
    settings = {
        "noise": 1.0,
        "parameters": {},
        "weights": (WEIGHTS,),
        "columns": COLUMNS,
        "classes": ("yes", "no"),
        **changes,
    }
    target, columns = Target(settings.pop("classes")), settings.pop("columns")
    recipe = Recipe("dp-sgd", {"steps": 2}, target, 100.0, Adjacency.ADD_OR_REMOVE_ONE, columns)
    return model_bytes(recipe, **settings)


def loaded(tmp_path, content):
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    return dpselect.load_model(path)


DECLARED = {
    "born": Column(
        kind="date", format="%d.%m.%y", two_digit_years_from=1920, bounds=("01.01.20", "31.12.99"), missing="01.01.20"
    ),
    "seen": Column(kind="date", time_zone="Europe/Berlin", bounds=("2024-01-01", "2025-01-01")),
    "ill": Column(kind="boolean", true_values=("J",), false_values=("N",), missing_values=("?",), missing="N"),
    "tea": Column(categories=("caf\u00e9",), unicode="exact"),
}
