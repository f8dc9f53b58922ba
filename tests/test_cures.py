"""What errors say to write: a line that fits the limits, or nothing."""

import math

import pytest

from dpselect.cures import example, meant_value, near_file, write_instance, write_number, write_one_of, write_text
from dpselect.privacy import Guarantee


@pytest.mark.parametrize(
    ("value", "options", "said"),
    [
        ("q", {"value": 50, "highest": (1, False)}, "q=0.5"),
        ("q", {"value": "25 %", "highest": (1, False)}, "q=0.25"),
        ("delta", {"value": 5, "highest": (1, True)}, "delta=1e-6"),
        ("sampling_rate", {"value": 256, "highest": (1, False)}, "sampling_rate=0.01"),
        ("steps", {"value": 9.5, "whole": True}, "steps=10"),
        ("limit", {"value": [30], "whole": True}, "limit=30"),
        ("limit", {"value": True, "whole": True}, "limit=30"),
        ("limit", {"value": float("nan"), "whole": True}, "limit=30"),
        ("limit", {"value": "1/0", "whole": True}, "limit=30"),
        ("anything", {"value": 0, "lowest": (0, True)}, "anything=1"),
        ("anything", {"value": 9, "lowest": (2, True), "highest": (4, True)}, "anything=3"),
        ("--q", {"value": 50, "highest": (1, False)}, "--q 0.5"),
    ],
)
def test_a_number_that_fits(value, options, said):
    given = {"whole": False, "lowest": None, "highest": None, **options}
    assert write_number(value, given.pop("value"), **given) == f". Write {said}"


def test_nothing_is_made_up():
    assert write_number("each score", 2, whole=False, highest=(1, False)) == ""
    assert write_number("x", 2, whole=False, lowest=(5, True), highest=(1, True)) == ""
    assert write_text("x") == write_instance("x", int) == ""
    assert example("x") is None


@pytest.mark.parametrize("value", [10**400, -(10**400), math.inf, math.nan])
def test_numbers_beyond_a_double_have_an_answer_too(value):
    assert write_number("count", value, whole=True, lowest=(1, False), highest=(9, False)) == ". Write count=1"


def test_names_and_objects():
    assert (
        write_one_of("adjacency", "change_one", ["add_or_remove_one", "replace_one"])
        == ". Write adjacency='replace_one'"
    )
    assert write_one_of("method", None, ["exact", "float"]) == ". Write method='exact'"
    assert write_instance("base", Guarantee) == ". Write base=pure_dp(epsilon=1.0)"
    assert meant_value("acc", ["auc"]) == "auc"
    assert meant_value("zzz", ["auc"]) is None


def test_the_file_that_was_meant(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("people.csv", "ages.csv", "study.toml"):
        (tmp_path / name).touch()
    assert near_file("poeple.csv") == ". Did you mean 'people.csv'?"
    assert near_file("other.toml") == ". Did you mean 'study.toml'?"
    assert near_file("zzz.csv") == near_file("") == near_file("none/people.csv") == near_file("folder") == ""
    assert near_file(tmp_path / "poeple.csv") == ". Did you mean 'people.csv'?"
