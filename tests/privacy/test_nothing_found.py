"""The warning of an empty release: when it comes, what it says of no run, and whose line it names."""

import warnings

import pytest

from dpselect.errors import NothingFoundWarning
from dpselect.privacy.nothing_found import nothing_found, warn_if_nothing_found


@pytest.mark.parametrize("released", [0, 0.0, False, "", [], float("nan")])
def test_a_release_of_anything_warns_of_nothing(released):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_nothing_found(released, no_runs=0.5)


def test_an_empty_release_warns_at_the_callers_line():
    with pytest.warns(NothingFoundWarning) as caught:
        warn_if_nothing_found(None, no_runs=0.25)
    assert [str(each.message) for each in caught] == [nothing_found(0.25)]
    assert caught[0].filename == __file__


def test_the_probability_of_no_run_is_told_to_three_digits_if_there_is_one():
    assert "probability 0.123" in nothing_found(0.12345)
    assert "probability 1e-09" in nothing_found(1e-9)
    assert "probability" not in nothing_found(0.0)
    assert "the release is paid for anyway" in nothing_found(0.0)
