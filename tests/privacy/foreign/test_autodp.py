"""Mechanisms of autodp: made-up objects with its fields, and the library itself where it is installed."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import as_guarantee, compose, dp_sgd, gaussian, laplace, pure_dp, zcdp

DELTAS = (1e-9, 1e-5, 1e-2)


def theirs(name="Mechanism", **fields):
    """A mechanism as autodp begins one: it states nothing."""
    empty = {
        "eps_pureDP": math.inf,
        "neighboring": "add_remove",
        "group_size": 1,
        "local_flag": False,
        "RenyiDP": lambda alpha: math.inf,
        "approxDP": lambda delta: math.inf,
        "log_phi_p2q": lambda x: None,
    }
    return type(name, (SimpleNamespace,), {"__module__": "autodp.made_up"})(**{**empty, **fields})


def test_each_curve_is_read():
    concentrated = as_guarantee(theirs(RenyiDP=lambda alpha: 0.05 * alpha))
    for delta in DELTAS:
        assert zcdp(rho=0.05).epsilon(delta) <= concentrated.epsilon(delta) <= zcdp(rho=0.05).epsilon(delta) * 1.002
    assert as_guarantee(theirs(eps_pureDP=0.5)).epsilon(0) == pytest.approx(0.5, rel=1e-8)
    curve = as_guarantee(theirs(approxDP=gaussian(noise_multiplier=2.0).epsilon))
    for delta in DELTAS:
        exact = gaussian(noise_multiplier=2.0).epsilon(delta)
        assert exact <= curve.epsilon(delta) <= exact * 1.002
    assert "caller's word" in curve.terms["rests"]
    assert curve.lower_profile is None
    both = compose(curve, curve)
    assert gaussian(noise_multiplier=math.sqrt(2.0)).epsilon(1e-5) <= both.epsilon(1e-5)


def test_numbers_that_are_none_are_left_out():
    def holes(delta):
        if delta < 1e-6:
            raise ValueError
        return math.nan if delta < 1e-4 else 1.0 if delta < 0.1 else None

    found = as_guarantee(theirs(approxDP=holes))
    assert found.epsilon(1e-5) == math.inf
    assert found.epsilon(2e-4) == pytest.approx(1.0, rel=3e-4)


def test_what_is_inverted_numerically_from_characteristic_functions_is_left():
    found = as_guarantee(theirs(eps_pureDP=1.0, approxDP=lambda delta: 0.1, log_phi_p2q=lambda x: 0.5))
    assert found.epsilon(1e-5) > 0.99


def test_relations():
    replaced = theirs(eps_pureDP=1.0, neighboring="replace_one")
    assert as_guarantee(replaced).adjacency == "replace_one"
    assert as_guarantee(theirs(eps_pureDP=1.0, replace_one=True)).adjacency == "replace_one"
    with pytest.raises(AdjacencyError):
        as_guarantee(replaced, adjacency="add_or_remove_one")
    with pytest.raises(AdjacencyError, match="remove_only"):
        as_guarantee(theirs(eps_pureDP=1.0, neighboring="remove_only"))
    assert as_guarantee(theirs(eps_pureDP=1.0), adjacency="replace_one").adjacency == "replace_one"


@pytest.mark.parametrize(
    ("thing", "match"),
    [
        (theirs(), "no finite epsilon"),
        (theirs(eps_pureDP=1.0, group_size=2), "group_size"),
        (theirs(eps_pureDP=1.0, local_flag=True), "local"),
        (theirs("NoisyScreenMechanism", eps_pureDP=1.0), "depends on the data"),
    ],
)
def test_others_are_refused(thing, match):
    with pytest.raises(ArgumentError, match=match):
        as_guarantee(thing)


@pytest.mark.full
def test_the_library_itself():
    zoo = pytest.importorskip("autodp.mechanism_zoo")
    transformers = pytest.importorskip("autodp.transformer_zoo")
    sampled = {"prob": 0.01, "sigma": 1.0, "coeff": 1000}
    four, two = gaussian(noise_multiplier=4), laplace(scale=4)
    mixed = transformers.Composition()([zoo.GaussianMechanism(4.0), zoo.LaplaceMechanism(4.0)], [3, 2])
    amplified = transformers.AmplificationBySampling()(zoo.GaussianMechanism(2.0), 0.1)
    for theirs, exact in (
        (zoo.ExactGaussianMechanism(2.0), gaussian(noise_multiplier=2)),
        (zoo.GaussianMechanism(2.0), gaussian(noise_multiplier=2)),
        (zoo.LaplaceMechanism(2.0), laplace(scale=2)),
        (zoo.RandresponseMechanism(0.7), pure_dp(epsilon=math.log(0.7 / 0.3))),
        (zoo.zCDP_Mechanism(0.05), zcdp(rho=0.05)),
        (zoo.PureDP_Mechanism(1.0), pure_dp(epsilon=1.0)),
        (zoo.ExponentialMechanism(1.0), None),
        (mixed, compose(four, four, four, two, two)),
        (zoo.SubsampleGaussianMechanism(sampled), dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=1000)),
        (amplified, dp_sgd(noise_multiplier=2.0, sampling_rate=0.1, steps=1)),
    ):
        ours = as_guarantee(theirs)
        for delta in DELTAS:
            assert ours.epsilon(delta) <= theirs.get_eps(delta) * 1.002
            assert exact is None or ours.epsilon(delta) >= exact.epsilon(delta) * (1 - 1e-12)
