"""Draws from NumPy's and Python's own states: the same for one key, and nothing is left of them."""
# ruff: noqa: NPY002

import random
import threading

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.tuning import Space, Uniform
from dpselect.tuning.other_draws import seeded_draws
from dpselect.tuning.trial import Job, attempt


def drawn(*_):
    return float(np.random.rand()), random.random()


def within(key):
    with seeded_draws(keyed_source(key)):
        return drawn()


def test_draws_follow_the_key():
    assert within(1) == within(1)
    assert set(within(1)).isdisjoint(within(2))


@pytest.mark.parametrize("error", [None, ValueError])
def test_the_states_outside_are_left_alone(error):
    np.random.seed(1)
    random.seed(1)
    expected = drawn(), drawn()
    np.random.seed(1)
    random.seed(1)
    first = drawn()
    try:
        with seeded_draws(keyed_source(1)):
            np.random.seed(5)
            random.seed(5)
            if error is not None:
                raise error
    except ValueError:
        pass
    assert (first, drawn()) == expected


def test_another_generator_of_numpy_stays():
    before = np.random.get_bit_generator()
    try:
        other = np.random.PCG64(1)
        np.random.set_bit_generator(other)
        assert within(1) == within(1)
        assert np.random.get_bit_generator() is other
    finally:
        np.random.set_bit_generator(before)


def test_threads_restore_after_the_last():
    random.seed(1)
    expected = random.random()
    random.seed(1)
    inside, outside = threading.Event(), threading.Event()

    def other():
        with seeded_draws(keyed_source(2)):
            inside.set()
            outside.wait(10)

    thread = threading.Thread(target=other)
    with seeded_draws(keyed_source(1)):
        thread.start()
        assert inside.wait(10)
    outside.set()
    thread.join()
    assert random.random() == expected


def test_a_trial_draws_by_its_key():
    job = Job(lambda params, random: (0.0, drawn()), Space({"x": Uniform(0.0, 1.0)}), 1 << 10)
    one, same, other = (attempt(job, 0, key * 32).payload for key in (b"k", b"k", b"l"))
    assert one == same != other
