"""A die as a candidate, and a test of frequencies."""

from dpselect.randomness import keyed_source


def die(random):
    face = random.below(3)
    return float(face), face


def output_of(outcome):
    return outcome.output if outcome else None


def frequencies(select, draws=6000):
    source = keyed_source("selection")
    values = [select(source) for _ in range(draws)]
    return {value: values.count(value) / draws for value in set(values)}


def assert_law(found, expected, draws=6000):
    """Within five standard errors in every value: false alarm below 2e-6, a probability off by 0.04 is caught."""
    for value, probability in expected.items():
        error = (probability * (1 - probability) / draws) ** 0.5
        assert abs(found.get(value, 0.0) - probability) < 5 * error, value
    assert set(found) <= set(expected)
