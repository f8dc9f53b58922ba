"""Distributions of K by name, with their parameters or by their mean."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.repetitions import Fixed, Geometric, Harmonic, Logarithmic, TruncatedNegativeBinomial
from dpselect.repetitions.by_name import expect_law, families, from_description, law_named, law_names, law_usage


def test_a_name_and_its_settings():
    assert law_named("geometric", {"gamma": 0.25}) == Geometric(gamma=0.25)
    assert law_named("harmonic", {"limit": 30, "at_most": 3}) == Harmonic(limit=30).at_most(3)
    assert law_named("capped", {"law": Geometric(gamma=0.5), "limit": 3}).limit == 3


def test_laws_with_gamma_take_a_mean():
    assert law_named("geometric", {"mean": 10}) == Geometric.with_mean(mean=10)
    assert law_named("logarithmic", {"mean": 10}) == Logarithmic.with_mean(mean=10)
    want = TruncatedNegativeBinomial.with_mean(eta=0.5, mean=10)
    assert law_named("negative-binomial", {"eta": 0.5, "mean": 10}) == want


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("grid", {}, "grid: different candidates once each"),
        ("nonesuch", {}, "unknown distribution 'nonesuch'; one of beta-binomial"),
        ("geometric", {"rate": 3}, "distribution 'geometric' takes 'mean=|gamma=', got 'rate'"),
        ("geometric", {"mean": 3, "gamma": 0.5}, "distribution 'geometric' takes 'mean=|gamma=', got 'gamma', 'mean'"),
        ("negative-binomial", {"mean": 3}, "distribution 'negative-binomial' takes 'eta=,mean=|gamma=', got 'mean'"),
        ("poisson", {}, "distribution 'poisson' takes 'mean=', got none"),
    ],
)
def test_other_names_and_settings_are_refused(name, given, message):
    with pytest.raises(ArgumentError) as refused:
        law_named(name, given)
    assert str(refused.value).startswith(message)


def test_descriptions_nest():
    law = Harmonic(limit=5).tilted(0.5).at_most(3)
    assert from_description(law.describe()) == law
    with pytest.raises(ArgumentError, match="unknown distribution 'None'"):
        from_description({})


def test_usage_lists_the_laws_of_a_few_numbers():
    usage = law_usage()
    assert usage["binomial"] == "trials=,probability="
    assert usage["geometric"] == "mean=|gamma="
    assert usage["poisson"] == "mean="
    assert set(law_names()) - set(usage) == {"tabulated"}
    assert not {"at-most", "capped", "tilted"} & set(law_names())


def test_families_are_named_once():
    names = [family.name for family in families()]
    assert len(set(names)) == len(names)
    assert {"harmonic", "Poisson", "uniform"} <= set(names)


def test_a_plain_number_is_refused_with_what_to_write():
    expect_law(Fixed(count=7))
    with pytest.raises(TypeError, match=r"got int; a fixed number is Fixed\(count=7\) and costs more"):
        expect_law(7)
    for other in (0, 1000, True, "geometric"):
        with pytest.raises(TypeError, match=r"Fixed\(count=10\)"):
            expect_law(other)


@pytest.mark.parametrize(("name", "said"), [("poison", "did you mean 'poisson'"), ("10", "write fixed:count=10")])
def test_an_unknown_name_says_what_was_meant(name, said):
    with pytest.raises(ArgumentError, match=said):
        law_named(name, {})
