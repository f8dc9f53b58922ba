"""Outputs as keys and columns: each is read by itself."""

import math

import numpy as np
import pytest

from dpselect.audit import audit, audit_outputs, function_subject
from dpselect.audit.callables import collected
from dpselect.audit.outputs import as_outputs, consists_of_numbers, joined
from dpselect.privacy import laplace, pure_dp
from dpselect.randomness import keyed_source
from tests.audit.black_box_cases import on_grid, subject


class TestOutputs:
    def test_reading_one_output_depends_on_no_other(self):
        """Or the choice of an event would see the judging draws."""
        parts = [
            np.array(["a", "long text"]),
            np.array([1.5, 2.0]),
            np.array([2]),
            np.array([True, None], dtype=object),
        ]
        together = joined([as_outputs(part) for part in parts])
        mixture = np.array([value for part in parts for value in part.tolist()], dtype=object)
        alone = [as_outputs(mixture[place : place + 1]).keys[0] for place in range(mixture.size)]
        assert together.keys.tolist() == as_outputs(mixture).keys.tolist() == alone

    ANYTHING = (
        *(0, 1, True, 2**53 + 1, -(2**63), 2**63, 2**64 + 1, 10**400, 0.5, -0.0, 2.0**53, math.nan, math.inf),
        *(np.float32(0.1), np.uint64(2**63), np.uint8(3), np.bool_(True), 1 + 2j, np.complex128(3 - 1j)),
        *("a", "", "raised", b"a", None, (), [], (1,), [1, 2], (1, 2.5), [2**53 + 1, 2], (0.5, "a"), [[1, 2], [3, 4]]),
        *([[1], [2, 3]], np.zeros(2), np.array(3.0), np.array([2**63], dtype=np.uint64), np.ones(2) * 1j, {2}),
    )

    def test_what_a_function_returns_is_read_by_itself(self):
        """NumPy would make floats of integers beside a fraction, and no rows of rows beside a failure.

        Then the judging counts are not binomial: a rare output of another kind once made 10 false alarms of 60 audits
        of one law on both sides, at a promised 0.1, where none or one is usual.
        """
        alone = [as_outputs(collected([value])) for value in self.ANYTHING]
        source = keyed_source("neighbours")
        for _ in range(300):
            places = (source.words(3) % len(self.ANYTHING)).astype(int)
            together = as_outputs(collected([self.ANYTHING[place] for place in places]))
            for row, place in enumerate(places):
                assert together.keys[row] == alone[place].keys[0]
                columns = alone[place].with_features(together.columns.shape[1]).columns[0]
                np.testing.assert_array_equal(together.columns[row], columns)

    @pytest.mark.parametrize("array", [np.array([2**63, 5], dtype=np.uint64), np.arange(6.0).reshape(2, 3)])
    def test_arrays_and_their_elements_are_read_alike(self, array):
        assert as_outputs(array).keys.tolist() == as_outputs(collected(list(array))).keys.tolist()

    def test_equal_and_unequal_outputs(self):
        def key(value):
            return as_outputs(collected([value])).keys[0]

        assert key(1) == key(1.0) == key(True) == key(np.float32(1))
        assert key(math.nan) == key(-math.nan)
        different = [
            0.0,
            -0.0,
            1,
            2**62 + 1,
            2**62,
            0.5,
            math.inf,
            -math.inf,
            math.nan,
            "1",
            "",
            None,
            (1, 2),
            (2, 1),
            b"1",
        ]
        assert len({key(value) for value in different}) == len(different)
        rows = as_outputs(np.array([["ab", "c"], ["a", "bc"], ["", "abc"]])).keys
        assert len(set(rows)) == 3

    def test_million_keys_are_distinct(self):
        assert np.all(np.diff(np.sort(as_outputs(np.arange(1_000_000)).keys)) > 0)

    def test_complex_numbers_and_moments(self):
        draw = lambda other, n, random: on_grid(random.normal(n)) + 1j * other  # noqa: E731
        assert audit(subject(pure_dp(epsilon=1), draw), draws=400, random=keyed_source(1)).violated
        moments = np.array(["2020-01-01", "2021-01-01"], dtype="datetime64[D]")
        assert audit_outputs(moments[:1].repeat(200), moments[1:].repeat(200), pure_dp(epsilon=1)).violated

    def test_two_arrays_of_other_kinds_and_lengths(self):
        found = audit_outputs(np.zeros(300), np.array(["failed"] * 200), pure_dp(epsilon=1), random=keyed_source(1))
        assert found.violated
        assert found.shown["judged"] == {"data": 150, "neighbour": 100}

    def test_the_order_of_frozen_outputs_does_not_matter(self):
        noise = [np.sort(on_grid(keyed_source(key).laplace(4000))) for key in "ab"]
        assert not audit_outputs(noise[0], noise[1] + 1, laplace(scale=1), random=keyed_source(1)).violated


def test_a_masked_array_is_known_by_its_mask_too():
    drawn = collected([np.ma.array([3.25, 1.0], mask=[False, hidden]) for hidden in (True, False, True)])
    found = as_outputs(drawn, "draws")
    assert found.keys[0] == found.keys[2] != found.keys[1]
    assert not consists_of_numbers(drawn[0].value)


def test_a_leak_in_the_mask_of_an_array_is_found():
    def masked(rows, random):
        return np.ma.array([3.0 + random.laplace(1)[0], 1.0], mask=[False, rows == 1])

    leak = function_subject(masked, data=1, neighbour=0, claim=pure_dp(epsilon=1))
    assert audit(leak, draws=300, random=keyed_source("mask")).violated
