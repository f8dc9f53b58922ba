"""The search space: laws of the parameters, their description, and the refusal of grids."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import ArgumentError
from dpselect.randomness import keyed_source
from dpselect.tuning import Categorical, IntegerUniform, LogUniform, Space, Uniform
from dpselect.tuning.space import parse_space

FINITE = st.floats(allow_nan=False, allow_infinity=False)


@given(ends=st.tuples(FINITE, FINITE), key=st.integers(0, 2**32))
def test_uniform_stays_between_its_ends(ends, key):
    low, high = sorted(ends)
    assert low <= Uniform(low, high).sample(keyed_source(key)) <= high


@given(ends=st.tuples(*2 * [st.floats(1e-300, 1e300)]), key=st.integers(0, 2**32))
def test_log_uniform_stays_between_its_ends(ends, key):
    low, high = sorted(ends)
    assert low <= LogUniform(low, high).sample(keyed_source(key)) <= high


@given(ends=st.tuples(*2 * [st.integers(1, 10**9)]), key=st.integers(0, 2**32), log=st.booleans())
def test_integer_stays_between_its_ends(ends, key, log):
    low, high = sorted(ends)
    drawn = IntegerUniform(low, high, log=log).sample(keyed_source(key))
    assert type(drawn) is int
    assert low <= drawn <= high


def test_floats_are_drawn_by_inversion():
    u = float(keyed_source(3).uniform(1)[0])
    assert Uniform(0.0, 1.0).sample(keyed_source(3)) == u
    assert Uniform(-2.0, 6.0).sample(keyed_source(3)) == pytest.approx(-2.0 + 8.0 * u, rel=1e-14)
    assert LogUniform(1e-4, 1.0).sample(keyed_source(3)) == pytest.approx(1e-4 ** (1.0 - u), rel=1e-13)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (Categorical(["a", "b", "c"]), {"a": 1 / 3, "b": 1 / 3, "c": 1 / 3}),
        (IntegerUniform(1, 3), {1: 1 / 3, 2: 1 / 3, 3: 1 / 3}),
        # floor(exp(uniform(0, log 4))): P(k) = log((k + 1) / k) / log 4
        (IntegerUniform(1, 3, log=True), {k: math.log((k + 1) / k) / math.log(4) for k in (1, 2, 3)}),
    ],
)
def test_discrete_frequencies(law, expected):
    """Seeded. 4000 draws; each frequency within 4.5 standard errors: false alarm below 1e-5 a value were the seed
    fresh, and an error of 0.07 in a probability (9 standard errors) is missed with probability below 1e-5."""
    source = keyed_source("space frequencies")
    draws = [law.sample(source) for _ in range(4000)]
    assert set(draws) == set(expected)
    for value, p in expected.items():
        assert abs(draws.count(value) / 4000 - p) < 4.5 * math.sqrt(p * (1 - p) / 4000)


def test_draws_are_with_replacement():
    space = Space({"x": Categorical([1, 2])})
    source = keyed_source(0)
    drawn = [space.sample(source)["x"] for _ in range(20)]
    assert 0 < drawn.count(1) < 20
    assert len(drawn) > len(set(drawn))


def test_description_survives_json():
    space = Space(
        {
            "kind": Categorical(["a", None, True, 3, 0.5]),
            "rate": LogUniform(1e-4, 1),
            "clip": Uniform(0, 2),
            "size": IntegerUniform(8, 512, log=True),
        }
    )
    text = json.dumps(space.describe())
    again = parse_space(json.loads(text))
    assert json.dumps(again.describe()) == text
    assert again.sample(keyed_source(5)) == space.sample(keyed_source(5))
    assert list(space) == ["kind", "rate", "clip", "size"]


@pytest.mark.parametrize(
    "make",
    [
        lambda: Space([{"rate": 0.1}, {"rate": 0.2}]),
        lambda: Space({"rate": [0.1, 0.2]}),
        lambda: parse_space({"rate": {"law": "grid", "choices": [1, 2]}}),
        lambda: parse_space({"rate": [0.1, 0.2]}),
    ],
)
def test_a_grid_is_refused_with_the_reason(make):
    with pytest.raises(ArgumentError, match="composing the guarantees of all its candidates"):
        make()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Uniform(1.0, 0.0), "high"),
        (lambda: Uniform(math.nan, 0.0), "low"),
        (lambda: Uniform(0.0, math.inf), "high"),
        (lambda: LogUniform(0.0, 1.0), "low"),
        (lambda: IntegerUniform(0, 3, log=True), "low"),
        (lambda: IntegerUniform(4, 3), "high"),
        (lambda: IntegerUniform(0.5, 3), "low"),
        (lambda: Categorical([]), "choices"),
        (lambda: Categorical([math.nan]), "choices"),
        (lambda: Categorical([[1]]), "choices"),
        (lambda: parse_space({"a": {"distribution": "normal"}}), "distribution"),
        (lambda: parse_space({"a": {"law": "uniform", "distribution": "uniform"}}), "law is the old name"),
        (lambda: parse_space({"a": {"law": "uniform", "low": 0}}), "high"),
        (lambda: parse_space({"a": {"law": "uniform", "low": 0, "high": 1, "step": 2}}), "step"),
    ],
)
def test_bad_settings_are_named(make, word):
    with pytest.raises(ArgumentError, match=word):
        make()


@pytest.mark.parametrize(
    "make", [lambda: Categorical("abc"), lambda: Space({3: Uniform(0, 1)}), lambda: Uniform("1", 2)]
)
def test_wrong_types_are_refused(make):
    with pytest.raises(TypeError):
        make()


@settings(max_examples=30)
@given(key=st.integers(0, 2**32))
def test_a_keyed_source_replays_a_setting(key):
    space = Space({"a": Uniform(0, 1), "b": IntegerUniform(1, 10**6)})
    assert space.sample(keyed_source(key)) == space.sample(keyed_source(key))


def test_the_old_name_of_the_key_gives_the_same_space_and_fingerprint():
    settings = {"low": 0.0, "high": 1.0}
    old, new = (parse_space({"rate": {key: "uniform", **settings}}) for key in ("law", "distribution"))
    assert old == new
    assert new.describe() == {"rate": {"law": "uniform", **settings}}  # which stores of version 0.2 have
