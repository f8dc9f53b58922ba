"""Columns by their usual names and by given ones."""

import pytest

from dpselect.errors import ArgumentError
from dpselect.integrations.sweeps.roles import ROLES, Roles, parse_columns
from dpselect.integrations.sweeps.sweep import RecordedRun


def value(values, role="noise_multiplier", given=None, **settings):
    run = RecordedRun("a", values, **settings)
    return Roles.among(list(values), given or {}).value(run, role)


@pytest.mark.parametrize(
    "name",
    [
        *("noise_multiplier", "Noise-Multiplier", "params.noise_multiplier", "config/dp.noise_multiplier"),
        *("param_clf__noise_multiplier", "params_noise_multiplier", "user_attrs_noise_multiplier", "noise multiplier"),
    ],
)
def test_usual_names_of_the_tools(name):
    assert value({name: "1.5"}) == 1.5


@pytest.mark.parametrize(
    "name", ["sigma", "metrics.noise_multiplier", "summary.noise_multiplier", "my_noise_multiplier"]
)
def test_names_that_may_mean_something_else(name):
    assert value({name: 1.5}) is None


def test_no_name_is_of_two_roles():
    names = [name for names in ROLES.values() for name in names]
    assert len(names) == len(set(names))


def test_given_columns_and_numbers():
    assert value({"sigma": 2, "noise_multiplier": 1}, given={"noise_multiplier": "sigma"}) == 2.0
    assert value({"x.sigma": 2}, given={"noise_multiplier": "sigma"}) == 2.0
    assert value({"x": 2}, given={"noise_multiplier": "0.5"}) == 0.5
    assert value({"7": 2}, given={"noise_multiplier": "7"}) == 2.0


def test_a_name_that_no_column_has():
    with pytest.raises(ArgumentError, match="columns: noise_multiplier: no such column: 'sgma'; there are 'sigma'"):
        value({"sigma": 2}, given={"noise_multiplier": "sgma"})
    with pytest.raises(ArgumentError, match=r"may be one of a\.s, b\.s"):
        value({"a.s": 2, "b.s": 2}, given={"noise_multiplier": "s"})


@pytest.mark.parametrize("missing", [None, "", "None", "null", "nan", float("nan")])
def test_what_is_missing(missing):
    assert value({"noise_multiplier": missing}) is None


@pytest.mark.parametrize(
    "wrong", ["abc", True, "1,5", "${x}", "1" * 41, "1e99999", float("inf"), 10**400, "0x1", "1_0"]
)
def test_what_is_no_number(wrong):
    with pytest.raises(ArgumentError, match="run 'a' has no"):
        value({"noise_multiplier": wrong})


def test_equal_values_agree_and_others_are_refused():
    assert value({"noise_multiplier": 1, "dp.noise_multiplier": "1.0"}) == 1.0
    with pytest.raises(ArgumentError, match="two values for noise_multiplier, in noise_multiplier and dp"):
        value({"noise_multiplier": 1, "dp.noise_mult": 2})


def test_a_value_that_was_rewritten():
    with pytest.raises(ArgumentError, match="several values of 'noise_multiplier'"):
        value({"noise_multiplier": 1}, rewritten=frozenset({"noise_multiplier"}))


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"gradient_accumulation_steps": 4}, "gradient_accumulation_steps"),
        ({"trainer.world_size": "2"}, "trainer.world_size"),
        ({"num_gpus": 1}, None),
        ({"num_gpus": None, "devices": "auto"}, None),
        ({"devices": True}, None),
        ({"x": 3}, None),
    ],
)
def test_batches_of_several(values, name):
    assert Roles.among(list(values), {}).accumulates(RecordedRun("a", values)) == name


def test_what_was_found():
    roles = Roles.among(["a.steps", "noise_multiplier"], {"dataset_size": "60000"})
    assert dict(roles.found()) == {
        "noise_multiplier": "noise_multiplier",
        "dataset_size": "60000 (given)",
        "steps": "a.steps",
    }


@pytest.mark.parametrize("text", ["sigma", "noise=1", "steps=", "steps=1,steps=2", "=1"])
def test_bad_text(text):
    with pytest.raises(ArgumentError, match="ROLE=COLUMN"):
        parse_columns(text)


def test_no_text():
    assert parse_columns(None) == parse_columns("") == {}
