"""Model files: old formats, damaged files, and what is refused without being executed."""

import io
import json

import numpy as np
import pytest

import dpselect
from dpselect.errors import StudyError
from dpselect.study.columns.column import Column
from tests.study.model_cases import COLUMNS, DECLARED, WEIGHTS, loaded, written


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
