"""A dry run of an objective: what would make every run fail without a message shows before anything is charged."""

import pytest

from dpselect.errors import ArgumentError
from dpselect.tuning import Categorical, LogUniform, Space
from dpselect.tuning.rehearsal import ends, rehearse_objective
from dpselect.tuning.trial import encode_value

SPACE = Space({"rate": LogUniform(0.1, 10.0), "kind": Categorical(["a", "b", "c"])})


def rehearse(objective, trial, **options):
    rehearse_objective(objective, trial, SPACE, **{"payload_bytes": 1000, **options})


def test_both_ends_of_the_space_are_tried():
    assert list(ends(SPACE)) == [{"rate": 0.1, "kind": "a"}, {"rate": 10.0, "kind": "c"}]
    seen = []

    def trial(params, random):
        seen.append(params)
        return 0.0, None

    rehearse(trial, trial)
    assert seen == list(ends(SPACE))


def test_a_parameter_that_the_space_lacks_is_named():
    def misspelt(params, random):
        return params["rates"], None

    with pytest.raises(ArgumentError, match="takes the parameter 'rates', which the space does not have"):
        rehearse(misspelt, True)
    rehearse(misspelt, False)


def test_a_value_must_have_room_and_survive_pickling():
    def valued(value):
        return lambda params, random: (0.0, value)

    size = len(encode_value([1, 2, 3]))
    rehearse(valued([1, 2, 3]), valued([1, 2, 3]), payload_bytes=size)
    with pytest.raises(ArgumentError, match=f"payload_bytes must be at least {size}"):
        rehearse(valued([1, 2, 3]), valued([1, 2, 3]), payload_bytes=size - 1)
    with pytest.raises(ArgumentError, match="must survive pickling, and generator does not"):
        rehearse(valued(None), valued(x for x in ()))


def test_an_objective_without_scores_returns_its_value_and_gets_the_noise():
    seen = []

    def trial(params, random, noise):
        seen.append(noise)
        return b"value"

    rehearse(trial, trial, noise=2.5, scored=False)
    assert seen == [2.5, 2.5]
