"""The released model as a file: what is loaded predicts what was trained, column by column."""

import io
import json

import numpy as np
import pytest

import dpselect
from dpselect.errors import StudyError
from dpselect.privacy import Adjacency
from dpselect.study.learners import Recipe
from dpselect.study.model import model_bytes
from dpselect.study.schema import Column

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
    recipe = Recipe("dp-sgd", {"steps": 2}, 2, 100.0, Adjacency.ADD_OR_REMOVE_ONE)
    return model_bytes(recipe, **settings)


def description_of(content):
    with np.load(io.BytesIO(content)) as archive:
        return json.loads(archive["description"].tobytes())


def with_description(content, description):
    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    arrays["description"] = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def loaded(tmp_path, content):
    path = tmp_path / "model.npz"
    path.write_bytes(content)
    return dpselect.load_model(path)


def test_columns_keep_their_order(tmp_path):
    """Their names sort otherwise: a file that sorts them would give the weights of one column to another."""
    model = loaded(tmp_path, written())
    assert list(model.columns.items()) == list(COLUMNS.items())
    rows = np.array([[1.0, 0.0, "q"], [0.0, 2.0, "q"]], dtype=object)
    assert model.predict(rows).tolist() == ["yes", "no"]


def test_a_model_in_the_first_format_is_refused_with_the_reason(tmp_path):
    content = written()
    description = description_of(content)
    columns = {name: column.model_dump(exclude_none=True) for name, column in sorted(COLUMNS.items())}
    with pytest.raises(StudyError, match=r"format 1, which lost the order of its columns.*Train it again"):
        loaded(tmp_path, with_description(content, {**description, "format": 1, "columns": columns}))
