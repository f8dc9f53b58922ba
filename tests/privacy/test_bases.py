"""Base mechanisms by name: what each takes, what is refused, and that equal numbers give one object."""

import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import bases, gaussian, pure_dp
from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.bases import base_mechanism, base_named, base_usage, noise_of, with_noise
from dpselect.registry import Registry


def test_a_base_is_the_function_of_its_name():
    assert base_named("gaussian", {"noise_multiplier": 2}, adjacency="replace_one").delta(0.5) == (
        gaussian(noise_multiplier=2, adjacency="replace_one").delta(0.5)
    )
    assert base_named("pure", {"epsilon": 0.5}, adjacency=Adjacency.REPLACE_ONE).adjacency is Adjacency.REPLACE_ONE


def test_settings_that_a_base_does_not_take_are_named():
    with pytest.raises(ArgumentError, match="base 'pure' takes 'epsilon=', got 'delta', 'epsilon'"):
        base_named("pure", {"epsilon": 1, "delta": 0.1}, adjacency="replace_one")
    with pytest.raises(ArgumentError, match="base 'approximate' takes 'epsilon=,delta=', got none"):
        base_named("approximate", {}, adjacency="replace_one")
    with pytest.raises(ArgumentError, match="nonsense"):
        base_named("nonsense", {}, adjacency="replace_one")


def test_usage_and_noise_of_every_base():
    assert base_usage()["laplace"] == "scale="
    assert base_usage()["dp-sgd"] == "noise_multiplier=,sampling_rate=,steps="
    trained = dict.fromkeys(
        ("gaussian", "correlated-noise", "dp-sgd", "fixed-batches", "random-allocation"), "noise_multiplier"
    )
    assert with_noise() == {"laplace": "scale", **trained}
    assert noise_of("pure") is None
    assert noise_of("nonsense") is None


def test_equal_plain_numbers_give_one_object_and_other_objects_none():
    assert pure_dp(epsilon=0.25) is pure_dp(epsilon=0.25)
    assert pure_dp(epsilon=1) is not pure_dp(epsilon=1.0)  # an integer is another number than a float

    class Changing(float):
        pass

    assert pure_dp(epsilon=Changing(0.25)) is not pure_dp(epsilon=Changing(0.25))


def test_a_base_from_outside_is_found_and_its_name_is_taken(monkeypatch):
    monkeypatch.setattr(bases, "BASES", Registry("base", room="dpselect.errors"))

    @base_mechanism("twice", noise="half")
    def twice(*, half, adjacency):
        return pure_dp(epsilon=2 / half, adjacency=adjacency)

    assert base_named("twice", {"half": 4}, adjacency="replace_one").epsilon(delta=0) == 0.5
    assert with_noise() == {"twice": "half"}
    with pytest.raises(ArgumentError, match="base 'twice' exists already"):
        base_mechanism("twice")(lambda adjacency: pure_dp(epsilon=1))


def test_names_of_others_and_misspelt_ones_are_answered():
    with pytest.raises(ArgumentError, match=r"write steps=100 \(epochs / sampling_rate\)"):
        base_named("dp-sgd", {"epochs": 3}, adjacency="replace_one")
    with pytest.raises(ArgumentError, match="did you mean 'dp-sgd'"):
        base_named("dp_sgd", {}, adjacency="replace_one")
