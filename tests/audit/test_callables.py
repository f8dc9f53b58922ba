"""Functions of a data set as subjects of audits."""

import math

import numpy as np
import pytest

from dpselect.audit import audit
from dpselect.audit.callables import collected, function_subject
from dpselect.audit.outputs import as_outputs
from dpselect.audit.result import DATA_OVER_NEIGHBOUR
from dpselect.errors import ArgumentError
from dpselect.privacy import Release, pure_dp
from dpselect.randomness import keyed_source


class TestFunctions:
    def test_exceptions_are_outputs_and_their_messages_are_not(self):
        def fails(rows):
            if len(rows) > 1:
                raise KeyError(f"secret {rows}")
            return 0.0

        found = audit(function_subject(fails, data=[1, 2], neighbour=[1], claim=pure_dp(epsilon=1)), draws=400)
        assert found.violated
        assert "raised KeyError" in found.event or found.direction != DATA_OVER_NEIGHBOUR
        assert "secret" not in repr(found)

    def test_random_and_releases(self):
        def mechanism(rows, random):
            release = Release(
                value=float(random.bernoulli(0.75 if len(rows) > 1 else 0.25, 1)[0]), guarantee=pure_dp(epsilon=1)
            )
            return release

        pair = {"data": [1, 2], "neighbour": [1]}
        found = function_subject(mechanism, claim=pure_dp(epsilon=math.log(3)), **pair)
        one, two = (audit(found, draws=2000, random=keyed_source("same")) for _ in range(2))
        assert not one.violated
        assert one == two
        assert 0.8 < one.epsilon_lower < math.log(3)

    def test_rows_text_and_anything(self):
        assert as_outputs(collected([[1, 2], (3, 4), np.array([5, 6])])).columns.tolist() == [[1, 2], [3, 4], [5, 6]]
        assert as_outputs(collected([np.zeros(2), np.ones(2)])).columns.tolist() == [[0, 0], [1, 1]]
        assert collected([0.5, 1.0]).dtype == np.float64
        assert as_outputs(collected([1, 2.5, True])).columns.tolist() == [[1], [2.5], [1]]
        for strange in ([[1], [1, 2]], [None, 1.0], [2**100, 1], [{}, []], [[], []], ["a", 1]):
            assert len(as_outputs(collected(strange))) == 2

    def test_refusals(self):
        claim = pure_dp(epsilon=1)
        with pytest.raises(ArgumentError, match="called with the data alone"):
            function_subject(lambda one, two: 0, data=1, neighbour=2, claim=claim)
        changes = function_subject(lambda rows: rows.append(1), data=[1], neighbour=[], claim=claim)
        with pytest.raises(ArgumentError, match="changes the data"):
            audit(changes, draws=100)
        for same in (math.nan, [math.nan], np.array([math.nan])):
            audit(function_subject(lambda rows: 0, data=same, neighbour=1, claim=claim), draws=8)

    def test_long_outputs_are_named_in_short(self):
        found = function_subject(lambda rows: rows * 500, data="a", neighbour="b", claim=pure_dp(epsilon=1))
        assert len(audit(found, draws=100).event) < 400
