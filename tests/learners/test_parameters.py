"""Parameters by name, as scikit-learn's estimators have them: read in order, set in place, unknown names refused."""

from dataclasses import dataclass

import pytest

from dpselect.errors import ArgumentError
from dpselect.learners.parameters import Parameterised


@dataclass(kw_only=True, eq=False, repr=False)
class Example(Parameterised):
    size: int = 3
    label: str | None = None


def test_parameters_by_name():
    example = Example(size=5)
    assert list(example.get_params().items()) == [("label", None), ("size", 5)]
    assert example.get_params(deep=False) == example.get_params()
    assert example.set_params(label="a", size=6) is example
    assert (example.size, example.label) == (6, "a")
    assert example.set_params() is example


def test_a_name_that_is_none_is_refused_with_those_that_there_are():
    example = Example()
    with pytest.raises(ArgumentError, match="no parameter is named 'sise'; there are label, size"):
        example.set_params(sise=1)
    assert not hasattr(example, "sise")
