"""Candidates with a few outputs, and a test that a search has its distribution."""

import math

import numpy as np

from dpselect.randomness import keyed_source

DRAWS = 1500


def levels(masses):
    """A candidate with score 1 - i/size for output i, drawn with these probabilities."""
    edges = np.cumsum(masses)

    def candidate(random):
        output = int(np.searchsorted(edges, random.uniform(1)[0]))
        return 1.0 - output / len(masses), output

    return candidate


def coin(bias):
    return lambda random: (float(random.uniform(1)[0] < bias), None)


def assert_law(select, expected, draws=DRAWS):
    """Frequencies of `select(source)` within five standard errors of `expected`, a mapping.

    False alarm below 6e-7 for each value; a probability that is off by 0.065 or more is caught at 1,500 draws.
    """
    source = keyed_source("selection algorithms")
    found = [select(source) for _ in range(draws)]
    for value, probability in expected.items():
        error = math.sqrt(max(probability * (1 - probability), 1e-6) / draws)
        assert abs(found.count(value) / draws - probability) < 5 * error + 5 / draws, value
    assert set(found) <= set(expected)


def once(monkeypatch, module, name):
    """Work out a price once: a search that is repeated for its law has one price."""
    function, known = getattr(module, name), {}

    def remembered(*arguments, **keywords):
        if not known:
            known["price"] = function(*arguments, **keywords)
        return known["price"]

    monkeypatch.setattr(module, name, remembered)
