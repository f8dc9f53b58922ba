"""The released model as a file: what is loaded predicts what was trained, column by column."""

import io
import json

import numpy as np
import pytest

import dpselect
from dpselect.errors import StudyError
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


DECLARED = {
    "born": Column(
        kind="date", format="%d.%m.%y", two_digit_years_from=1920, bounds=("01.01.20", "31.12.99"), missing="01.01.20"
    ),
    "seen": Column(kind="date", time_zone="Europe/Berlin", bounds=("2024-01-01", "2025-01-01")),
    "ill": Column(kind="boolean", true_values=("J",), false_values=("N",), missing_values=("?",), missing="N"),
    "tea": Column(categories=("caf\u00e9",), unicode="exact"),
}


def test_a_model_reads_cells_as_its_study_declared_them(tmp_path):
    model = loaded(tmp_path, written(columns=DECLARED, weights=(np.zeros((5, 2)),)))
    assert dict(model.columns) == DECLARED
    rows = {"born": ["31.12.24", "31.12.24"], "seen": ["2024-07-01", "2024-06-30T22:00Z"], "ill": ["J", "?"]}
    features = model.encode({**rows, "tea": ["caf\u00e9", "cafe\u0301"]})
    assert features[0, 0] == features[1, 0] < 0  # 1924
    assert features[0, 1] == features[1, 1]
    assert features[:, 2].tolist() == [1, -1]
    assert features[:, 3].tolist() == [1, 0]


def test_a_model_of_an_older_version_reads_years_of_two_digits_as_it_did(tmp_path):
    content = written(columns=DECLARED, weights=(np.zeros((5, 2)),))
    description = description_of(content)
    facts = {"kind": "date", "format": "%d.%m.%y", "bounds": ["01.01.69", "31.12.68"]}
    description["columns"][0]["facts"] = {**facts, "scale": "linear", "other": False}
    model = loaded(tmp_path, with_description(content, description))
    seconds = model.columns["born"].numbers("born", ["01.01.70", "01.01.24"])
    assert seconds.tolist() == [0, np.datetime64("2024-01-01", "s").astype(int)]
    with pytest.raises(ValueError, match="two_digit_years_from = 1920"):
        Column(**facts)


def test_a_model_in_the_first_format_is_refused_with_the_reason(tmp_path):
    content = written()
    description = description_of(content)
    columns = {name: column.model_dump(exclude_none=True) for name, column in sorted(COLUMNS.items())}
    with pytest.raises(StudyError, match=r"format 1, which lost the order of its columns.*Train it again"):
        loaded(tmp_path, with_description(content, {**description, "format": 1, "columns": columns}))


def pickled():
    class Harm:
        def __reduce__(self):
            return pytest.fail, ("something was executed",)

    buffer = io.BytesIO()
    np.savez(buffer, description=np.array([Harm()], dtype=object))
    return buffer.getvalue()


def npy():
    buffer = io.BytesIO()
    np.save(buffer, WEIGHTS)
    return buffer.getvalue()


def foreign():
    buffer = io.BytesIO()
    np.savez(buffer, X=WEIGHTS)
    return buffer.getvalue()


def described(**changes):
    content = written()
    return with_description(content, {**description_of(content), **changes})


def with_weights(*weights, **named):
    buffer = io.BytesIO()
    arrays = {f"weights_{i}": w for i, w in enumerate(weights)}
    text = np.frombuffer(json.dumps(description_of(written())).encode(), dtype=np.uint8)
    np.savez(buffer, description=text, **arrays, **named)
    return buffer.getvalue()


BOUNDED = {"bounds": [0.0, 1.0]}


@pytest.mark.parametrize(
    "make",
    [
        bytes,
        lambda: b"no",
        lambda: written()[:-1],
        lambda: written()[: len(written()) // 2],
        lambda: written()[:300] + b"\0" * 20 + written()[320:],
        pickled,
        npy,
        foreign,
        with_weights,
        lambda: with_weights(WEIGHTS.T),
        lambda: with_weights(WEIGHTS[:-1]),
        lambda: with_weights(WEIGHTS.astype(np.float32)),
        lambda: with_weights(WEIGHTS.astype(str)),
        lambda: with_weights(WEIGHTS, WEIGHTS),
        lambda: with_weights(WEIGHTS, more=WEIGHTS),
        lambda: with_weights(weights_1=WEIGHTS),
        lambda: with_description(written(), None),
        lambda: with_description(written(), []),
        lambda: with_description(written(), {"format": 3}),
        lambda: described(learner="svm"),
        lambda: described(learner=["dp-sgd"]),
        lambda: described(columns=[]),
        lambda: described(columns={"zebra": BOUNDED}),
        lambda: described(columns=[{"name": "zebra", "facts": BOUNDED}] * 6),
        lambda: described(columns=[{"name": "zebra", "facts": {}}]),
        lambda: described(columns=[{"name": 3, "facts": BOUNDED}]),
        lambda: described(classes=["yes"]),
        lambda: described(classes=["yes", "no", "maybe"]),
        lambda: described(classes=["yes", {"a": 1}]),
        lambda: described(noise="much"),
        lambda: described(noise=-1.0),
        lambda: described(adjacency="none"),
        lambda: described(adjacency="replace_one"),
        lambda: described(nominal_rows=0),
        lambda: described(parameters={"nonsense": 1}),
        lambda: described(parameters={"hidden_units": 3}),
        lambda: described(parameters={"row_norm": "far"}),
        lambda: described(shared={"classes": [1]}),
        lambda: described(shared=7),
        lambda: described(more=1),
    ],
)
def test_a_file_that_is_no_model_is_refused_without_being_executed(make, tmp_path):
    with pytest.raises(StudyError, match="is not a released model, or is damaged") as caught:
        loaded(tmp_path, make())
    assert caught.value.__cause__ is None


def test_every_truncation_and_many_flipped_bits_give_a_model_or_a_refusal(tmp_path):
    content = written()
    random = np.random.default_rng(1)
    damaged = [content[:length] for length in range(0, len(content), 97)]
    for place in random.integers(len(content), size=150).tolist():
        damaged.append(content[:place] + bytes([content[place] ^ 1 << int(random.integers(8))]) + content[place + 1 :])
    refused = 0
    for each in damaged:
        try:
            loaded(tmp_path, each)
        except StudyError:
            refused += 1
    assert refused > len(damaged) // 2


def test_a_later_format_is_refused_as_such(tmp_path):
    with pytest.raises(StudyError, match="another version"):
        loaded(tmp_path, described(format=4))


@pytest.mark.parametrize(("name", "why"), [("absent.npz", "directory"), (".", "folder; give the model.npz in it")])
def test_what_cannot_be_read_says_why(tmp_path, name, why):
    with pytest.raises(StudyError, match=f"cannot read the model .*{why}"):
        dpselect.load_model(tmp_path / name)


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
