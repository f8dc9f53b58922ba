"""Mixtures of Gaussians as guarantees: their arguments, and numbers that do not quite add up."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import compose, dp_sgd, gaussian
from dpselect.privacy.mechanisms.mixed_gaussian import mixed_gaussian


def test_one_shift_is_gaussian_noise_and_two_a_sample():
    assert mixed_gaussian([2.0], [1.0], 4.0).epsilon(1e-6) == pytest.approx(
        gaussian(noise_multiplier=2).epsilon(1e-6), rel=1e-4
    )
    steps = compose(*[mixed_gaussian([0, 1], [0.99, 0.01], 1.0)] * 100)
    assert steps.epsilon(1e-6) == pytest.approx(
        dp_sgd(noise_multiplier=1, sampling_rate=0.01, steps=100).epsilon(1e-6), rel=1e-3
    )
    assert mixed_gaussian([0.0], [1.0], 1.0).epsilon(0) == 0.0


def test_equal_shifts_count_together_and_rounding_counts_at_the_largest():
    plain = mixed_gaussian([1.0, 2.0], [0.8, 0.2], 1.0).delta(1.0)
    assert mixed_gaussian([2.0, 1.0, 1.0], [0.2, 0.3, 0.5], 1.0).delta(1.0) == plain
    short = mixed_gaussian([1.0, 2.0], [0.8 - 5e-10, 0.2], 1.0).delta(1.0)
    assert plain < short < plain + 1e-8
    assert mixed_gaussian([0.0, 1.0, 2.0], [0.7, 0.2, 0.1 + 5e-10], 1.0).delta(1.0) > 0.0


def test_shifts_too_small_or_too_large_to_discretise_are_priced_from_above():
    assert 0.0 <= mixed_gaussian([0.0, 1e-200], [0.5, 0.5], 1.0).epsilon(1e-6) < 1e-9
    far = mixed_gaussian([0.0, 1e4], [0.5, 0.5], 1.0)
    assert far.epsilon(1e-6) >= 4e7
    assert mixed_gaussian([1e149], [1.0], 1.0).epsilon(1e-6) >= 5e297


@pytest.mark.parametrize(
    ("shifts", "shares", "match"),
    [
        ([1.0], [0.5, 0.5], "same length"),
        ([], [], "same length"),
        ([-1.0], [1.0], "sensitivities"),
        ([1.0], [1.5], "sampling_probs"),
        ([1.0, 2.0], [0.5, 0.4], "add up to 1"),
        ([0.0, 1e200], [0.5, 0.5], "at most 1e150 standard deviations"),
    ],
)
def test_numbers_that_describe_no_mixture_are_refused(shifts, shares, match):
    with pytest.raises(ArgumentError, match=match):
        mixed_gaussian(shifts, shares, 1.0)
