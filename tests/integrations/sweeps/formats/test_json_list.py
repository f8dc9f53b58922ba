"""JSON with an object for each run, or a list for each column."""

import json

import pytest

from dpselect.errors import ContentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made

RUNS = list(made.RUNS)
COLUMNS = {name: [run[name] for run in RUNS] for name in RUNS[0]}
FORMS = {
    "a list": RUNS,
    "runs": {"runs": RUNS},
    "columns": COLUMNS,
    "columns by row": {name: {str(at): value for at, value in enumerate(column)} for name, column in COLUMNS.items()},
}


@pytest.mark.parametrize("form", FORMS)
def test_the_forms_of_a_table(tmp_path, form):
    sweep = read_sweep(str(made.wrote(tmp_path / "a.json", json.dumps(FORMS[form]))))
    assert [run.values for run in sweep.runs] == RUNS


def test_nested_settings_have_paths(tmp_path):
    rows = [{"name": "a", "state": "failed", "config": {"noise_multiplier": {"value": 1.0, "desc": None}}, "x": [1]}]
    run = read_sweep(str(made.wrote(tmp_path / "a.json", json.dumps(rows)))).runs[0]
    assert (run.name, run.status) == ("a", "failed")
    assert run.values["config.noise_multiplier"] == 1.0


@pytest.mark.parametrize("found", [1, [1], {}, {"a": [1], "b": [1, 2]}, {"a": {"0": 1}, "b": {"1": 1}}, {"a": 1}])
def test_what_is_no_table(tmp_path, found):
    with pytest.raises(ContentError, match="no list of runs"):
        read_sweep(str(made.wrote(tmp_path / "a.json", json.dumps(found))))


def test_a_key_that_is_given_twice_is_refused(tmp_path):
    with pytest.raises(ContentError, match="not JSON"):
        read_sweep(str(made.wrote(tmp_path / "a.json", '[{"noise_multiplier": 9, "noise_multiplier": 1}]')))
