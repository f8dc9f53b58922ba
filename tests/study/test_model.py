"""The released model as a file: what is loaded predicts what was trained, column by column."""

import copy
import pickle

import numpy as np
import pytest

from dpselect.study.model import ReleasedModel
from tests.study.model_cases import COLUMNS, DECLARED, loaded, written


def test_columns_keep_their_order(tmp_path):
    """Their names sort otherwise: a file that sorts them would give the weights of one column to another."""
    model = loaded(tmp_path, written())
    assert list(model.columns.items()) == list(COLUMNS.items())
    rows = np.array([[1.0, 0.0, "q"], [0.0, 2.0, "q"]], dtype=object)
    assert model.predict(rows).tolist() == ["yes", "no"]


def test_a_model_reads_cells_as_its_study_declared_them(tmp_path):
    model = loaded(tmp_path, written(columns=DECLARED, weights=(np.zeros((5, 2)),)))
    assert dict(model.columns) == DECLARED
    rows = {"born": ["31.12.24", "31.12.24"], "seen": ["2024-07-01", "2024-06-30T22:00Z"], "ill": ["J", "?"]}
    features = model.encode({**rows, "tea": ["caf\u00e9", "cafe\u0301"]})
    assert features[0, 0] == features[1, 0] < 0  # 1924
    assert features[0, 1] == features[1, 1]
    assert features[:, 2].tolist() == [1, -1]
    assert features[:, 3].tolist() == [1, 0]


@pytest.mark.parametrize(
    "classes", [("yes", "no"), (1, 0), (1, "a"), (2.5, 1), (True, False), ('é, "', " "), (2**70, -1), ("1.0", "x")]
)
def test_classes_come_back_as_they_were_declared(tmp_path, classes):
    model = loaded(tmp_path, written(classes=classes))
    assert model.classes == classes
    assert [type(label) for label in model.classes] == [type(label) for label in classes]
    rows = np.array([[1.0, 0.0, "q"], [0.0, 2.0, "q"]], dtype=object)
    assert model.predict(rows).tolist() == list(classes)


@pytest.mark.parametrize("name", ["", " ", "größe", 'a "b", c', "a\nb", "__class__", "name", "Target", "weights_0"])
def test_columns_of_any_name(tmp_path, name):
    columns = {"zebra": COLUMNS["zebra"], name: COLUMNS["apple"], "mango": COLUMNS["mango"]}
    model = loaded(tmp_path, written(columns=columns))
    assert list(model.columns) == list(columns)
    assert model.predict({name: [0.0, 2.0], "mango": ["q", "q"], "zebra": [1.0, 0.0]}).tolist() == ["yes", "no"]


def test_attributes_of_scikit_learn_are_answered_with_ours():
    model = ReleasedModel({}, ("no", "yes"), None)
    with pytest.raises(AttributeError, match=r"write releasedmodel\.classes$"):
        _ = model.classes_
    with pytest.raises(AttributeError, match=r"write releasedmodel\.predict_proba"):
        model.predict_probability([[1.0]])
    assert pickle.loads(pickle.dumps(model)) == copy.copy(model) == model
    assert not hasattr(model, "_repr_html_")
