"""Audits of structured outputs: what is taken apart, what is found, what is never called violated, and the power."""

import math
from collections import Counter
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pytest
from scipy import stats

from dpselect.audit import audit, function_subject
from dpselect.audit.dissection import dissect
from dpselect.audit.outputs import Exact, as_outputs
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from tests.audits import structured_sound, structured_zoo
from tests.audits.structured_parts import subject
from tests.audits.structured_sound import SOUND
from tests.audits.structured_zoo import LEAKING

CONFIDENCE = 1.0 - 1e-6


def of_tiers(mechanisms):
    """Every third of them in the full tier, all others in the slow one."""
    marks = (pytest.mark.full, pytest.mark.slow, pytest.mark.slow)
    return [pytest.param(one, marks=marks[place % 3]) for place, one in enumerate(mechanisms)]


class TestLeaks:
    @pytest.mark.parametrize(
        "mechanism",
        [
            structured_zoo.label_beside_the_count,
            structured_zoo.histogram_over_the_keys_that_occur,
            structured_zoo.int_or_float,
        ],
        ids=lambda one: one.__name__,
    )
    def test_gross_ones_show_in_few_draws(self, mechanism):
        assert audit(subject(mechanism), draws=300, random=keyed_source("few")).violated

    @pytest.mark.parametrize("mechanism", of_tiers(LEAKING), ids=lambda one: one.__name__)
    def test_every_one_is_found_at_20000_draws(self, mechanism):
        assert audit(subject(mechanism), draws=20_000, random=keyed_source("all")).violated

    def test_there_are_enough_of_them(self):
        names = [mechanism.__name__ for mechanism in (*LEAKING, *SOUND)]
        assert len(set(names)) == len(names)
        assert len(LEAKING) >= 30
        assert len(SOUND) >= 10


class TestSound:
    @pytest.mark.parametrize("mechanism", of_tiers(SOUND), ids=lambda one: one.__name__)
    def test_none_is_called_violated(self, mechanism):
        """Each has a false alarm with probability 1e-6 over keys."""
        found = audit(subject(mechanism), draws=20_000, confidence=CONFIDENCE, random=keyed_source("sound"))
        assert not found.violated, found.describe()

    @pytest.mark.parametrize("mechanism", [structured_sound.sound_order, structured_sound.sound_rounding])
    def test_few_draws(self, mechanism):
        found = audit(subject(mechanism), draws=400, confidence=CONFIDENCE, random=keyed_source("sound"))
        assert not found.violated
        assert found.verdict == "cannot tell"

    @pytest.mark.full
    @pytest.mark.statistical
    @pytest.mark.parametrize("mechanism", [structured_sound.sound_label, structured_sound.sound_rounding])
    def test_false_alarms_are_no_more_than_promised(self, mechanism):
        """Of one law on both sides, exactly at its claim of 0; at the promised rate this fails with chance 1e-6."""
        on_data = function_subject(
            lambda data, random: mechanism(data, random), data=("a",), neighbour=("a",), claim=pure_dp(epsilon=0.0)
        )
        alarms = sum(
            audit(on_data, draws=200, confidence=0.8, random=keyed_source(f"null {run}")).violated for run in range(40)
        )
        assert alarms <= stats.binom.isf(1e-6, 40, 0.2)


@dataclass
class Box:
    content: object


ANYTHING = (
    *(0, 1, True, 2.0, 2**70, -0.0, math.nan, math.inf, None, "", "a 1.50 b", "-7"),
    *('{"a": [1, {"b": 2}]}', "[1", b"\x00a"),
    *([], [1, "a"], (1, "a"), {"a": 1, "b": [None]}, {1, 2}, frozenset({"x"}), Box([1]), datetime(2030, 1, 2, 3)),
    *(np.zeros((2, 3)), np.array([]), np.array(["a"]), np.array([None], dtype=object)),
    *(1 + 2j, ValueError("no"), range(3)),
    *(np.float32(0.1), np.int8(3), np.bool_(True), Counter("aab"), [[[[[[[[[1]]]]]]]]], {"a": math.nan}),
)


class TestDissection:
    def test_every_feature_is_a_number_or_a_text_of_the_one_output(self):
        for value in ANYTHING:
            features = dissect(Exact(value))
            assert features
            assert all(type(found) in (float, str) for _, found in features)
            assert str(features) == str(dissect(Exact(value)))
            names = Counter((name, type(found)) for name, found in features)
            assert names, value

    def test_numbers_that_numpy_made_alike_have_no_type(self):
        """An array of integers becomes one of floats where a draw has a fraction."""
        whole, mixture = np.array([1, 2]), np.array([1, 2.5])
        strange = np.array([1, None], dtype=object)
        features = [dissect(as_outputs(array).objects()[0]) for array in (whole, mixture, strange)]
        assert features[0] == features[1] == features[2]
        assert dissect(Exact(1)) != dissect(Exact(1.0))

    def test_an_output_that_cannot_be_looked_at_counts_by_its_type(self):
        class Shy:
            def __repr__(self):
                return "shy"

            @property
            def to_dict(self):
                raise RuntimeError("no")

        assert ("type of output", "Shy") in dissect(Exact(Shy()))

    def test_the_size_of_what_is_taken_apart_is_bounded(self):
        assert len(dissect({str(n): [n] * 50 for n in range(5000)})) <= 600


@pytest.mark.slow
def test_structured_outputs_are_analysed_in_seconds():
    import time

    began = time.process_time()
    audit(subject(structured_sound.sound_dataclass), draws=20_000, random=keyed_source("time"))
    assert time.process_time() - began < 20.0
