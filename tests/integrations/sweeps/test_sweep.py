"""The values of a recorded sweep, and the registry of its formats."""

import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.sweep import (
    SWEEP_FORMATS,
    RecordedRun,
    RecordedSweep,
    chosen_part,
    flat_values,
    others_remark,
    refuse_part,
    sweep_format,
)


def test_each_tool_has_a_format():
    assert list(SWEEP_FORMATS) == [
        *("csv", "hydra", "json", "keras-tuner", "mlflow-folder", "mlflow-sqlite", "optuna", "ray", "wandb"),
    ]


def test_columns_are_those_of_all_runs_in_order():
    sweep = RecordedSweep("x", "x", (RecordedRun("a", {"b": 1}), RecordedRun("b", {"a": 1, "b": 2})))
    assert sweep.columns == ("b", "a")


def test_lists_and_long_texts_are_no_settings():
    found = dict(
        flat_values({"a": {"b": [1], "c": None, "d": True}, "e": "x" * 201, "f": {"value": {"g": 1}, "desc": ""}})
    )
    assert found == {"a.c": None, "a.d": True, "f.g": 1}


def test_a_part_is_named_when_there_are_several():
    assert chosen_part({"1": "a", "2": "b"}, "b") == "2"
    with pytest.raises(ArgumentError, match="'a', 'b'"):
        chosen_part({"1": "a", "2": "b"}, None)
    with pytest.raises(ArgumentError, match="no sweep 'c'"):
        chosen_part({"1": "a"}, "c")
    with pytest.raises(ContentError, match="no run"):
        chosen_part({}, None)


def test_a_source_of_one_sweep_has_no_parts():
    with pytest.raises(ArgumentError, match="study_name"):
        refuse_part("a", "a CSV file")


def test_other_parts_are_a_condition():
    assert "2 other studies" in others_remark(2, "studies")[0]


def test_a_format_of_anyone_registers_itself(monkeypatch):
    monkeypatch.setattr(SWEEP_FORMATS, "_things", dict(SWEEP_FORMATS._all()))
    monkeypatch.setattr(SWEEP_FORMATS, "_facts", dict(SWEEP_FORMATS._facts))

    @sweep_format("mine", matches=lambda source: source.endswith(".mine"))
    def read_mine(source, part):
        return RecordedSweep("mine", source, ())

    assert SWEEP_FORMATS["mine"] is read_mine
    assert SWEEP_FORMATS.facts("mine")["matches"]("a.mine")
