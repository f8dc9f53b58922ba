"""One trial: its keys, its parameters, and the outputs that make it a failed run."""

from __future__ import annotations

import pytest

from dpselect.tuning import Space, Uniform
from dpselect.tuning.trial import (
    Job,
    attempt,
    decode_value,
    encode_value,
    pool_settings,
    preparation_key,
    trial_key,
    trial_params,
)

SPACE = Space({"x": Uniform(0.0, 1.0)})

pytestmark = pytest.mark.usefixtures("state")


def test_trial_keys_are_distinct():
    keys = {trial_key(bytes(32), index) for index in range(1000)} | {trial_key(b"m" * 32, 0)}
    assert len(keys) == 1001


def test_the_key_of_a_shared_release_is_none_of_a_trial():
    assert preparation_key(bytes(32)) not in {trial_key(bytes(32), index) for index in range(1000)}
    assert preparation_key(bytes(32)) != preparation_key(b"m" * 32)


def test_a_key_may_end_in_a_place_of_its_pool():
    key = b"k" * 32
    pool = pool_settings(SPACE, key, 3)
    assert [trial_params(SPACE, key + place.to_bytes(4, "big")) for place in range(3)] == pool
    assert trial_params(SPACE, key) == pool[0]
    assert len({setting["x"] for setting in pool}) == 3


def test_values_come_back_and_bytes_cost_one_more():
    for value in (b"", b"model", [1, {"a": 2.5}], None):
        assert decode_value(encode_value(value)) == value
    assert encode_value(b"model") == b"bmodel"


@pytest.mark.parametrize(
    "returned", [("0.5", None), (0.5, b"12345"), (0.5,), 3, (0.5, (i for i in ())), ("0.5", b"1234")]
)
def test_an_output_of_another_form_or_size_is_a_failed_run(returned):
    job = Job(objective=lambda params, random: returned, space=SPACE, payload_bytes=5)
    assert attempt(job, 0, b"k" * 32) is None


def test_a_run_has_its_index_its_score_and_its_value():
    job = Job(objective=lambda params, random: (params["x"], b"1234"), space=SPACE, payload_bytes=5)
    found = attempt(job, 7, b"k" * 32)
    assert (found.index, found.score, found.payload) == (7, trial_params(SPACE, b"k" * 32)["x"], b"b1234")
    assert len(found.tag) == 16
