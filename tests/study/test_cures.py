"""What a study's errors say to write: lines of TOML."""

import tomllib

import pytest

from dpselect.study.cures import instead, needed, of_a_kind


@pytest.mark.parametrize(
    ("key", "value", "known", "said"),
    [
        ("eps", 3.0, ["delta", "epsilon"], "Write epsilon = 3.0"),
        ("epsilonn", 3.0, ["delta", "epsilon"], "Write epsilon = 3.0"),
        ("batch_size", 32, ["sampling_rate"], "Write sampling_rate = 0.1"),
        ("path", "out", ["folder"], 'Write folder = "out"'),
        ("lower", 0, ["bounds"], "Write bounds = [0, 100]"),
        ("columns", {"age": {"bounds": [0, 1]}}, ["data"], "Write [data.columns.age]"),
        ("model", {"name": "ridge"}, ["learner"], "Write [learner]"),
        ("seed", 1, ["name"], "leave it out"),
        ("colour", "red", ["name"], "there are name"),
        ("classes_", ["a", "b"], ["classes"], 'Write classes = ["a", "b"]'),
        ("classes_", {"a": 1}, ["classes"], 'Write classes = ["no", "yes"]'),
    ],
)
def test_an_unknown_key(key, value, known, said):
    assert said in instead(key, value, known)
    assert instead(key, value, known, of=" for ridge").startswith(("unknown key for ridge", "unknown table. "))


@pytest.mark.parametrize(
    ("key", "value", "what", "said"),
    [
        ("adjacency", "replace", "must be 'add_or_remove_one' or 'replace_one'", 'adjacency = "replace_one"'),
        ("fraction", 20, "must be less than 1", "fraction = 0.2"),
        ("delta", 3, "must be less than 1", "delta = 1e-5"),
        ("classes", "no, yes", "must be a list", 'classes = ["no", "yes"]'),
        ("colour", 3, "must be a list", ""),
    ],
)
def test_a_value_of_another_kind(key, value, what, said):
    assert of_a_kind(key, value, what) == (f". Write {said}" if said else "")
    assert tomllib.loads(said) or not said


def test_a_parameter_without_a_distribution():
    cure = of_a_kind("rate", [0.1, 1], "must be a table").partition("Write ")[2]
    assert tomllib.loads(f"rate = {cure}")["rate"] == {"distribution": "categorical", "choices": [0.1, 1]}
    assert of_a_kind("rate", [{}], "must be a table") == ""


def test_what_is_needed():
    assert needed("folder") == '. Write folder = "release"'
    assert needed("colour") == ""
