"""What is tried before a search is charged: the function's arguments and names, and a run on synthetic rows."""

import functools

import pytest

from dpselect.errors import ArgumentError
from dpselect.selection.rehearsal import (
    check_function,
    made_up,
    output_of,
    rehearsal_source,
    rehearse_candidate,
    uncharged,
)


def run(random):
    return 1.0, None


def misspelt(random):
    return scoer(random), None  # noqa: F821


def test_a_function_must_be_callable_with_its_arguments():
    check_function("candidate", run, ["random"])
    check_function("candidate", functools.partial(lambda a, random: (a, random), 1), ["random"])
    check_function("candidate", lambda *given, **more: given, ["random"])
    check_function("candidate", lambda random, extra=None: random, ["random"])
    with pytest.raises(TypeError, match=r"candidate must be callable: candidate\(random\)"):
        check_function("candidate", 3, ["random"])
    for wrong in (lambda: 1, lambda one, two: 1, lambda random, *, needed: 1):
        with pytest.raises(ArgumentError, match=r"candidate cannot be called as candidate\(random\)"):
            check_function("candidate", wrong, ["random"])


def test_a_name_that_is_nowhere_is_told():
    with pytest.raises(ArgumentError, match=r"candidate asks for the name 'scoer'.*nothing was drawn or charged"):
        check_function("candidate", misspelt, ["random"])


def test_the_function_to_try_is_the_one_given_or_the_one_offered():
    class Offering:
        def __call__(self, random):
            raise AssertionError("the data are looked at")

        def rehearsal(self):
            return run

    assert made_up("candidate", run, True, ["random"]) is None
    assert made_up("candidate", Offering(), True, ["random"]) is run
    assert made_up("candidate", Offering(), run, ["random"]) is run
    assert made_up("candidate", misspelt, False, ["random"]) is None
    with pytest.raises(ArgumentError, match="rehearse asks for the name 'scoer'"):
        made_up("candidate", run, misspelt, ["random"])
    with pytest.raises(TypeError, match="True, False or a function, got str"):
        made_up("candidate", run, "yes", ["random"])
    with pytest.raises(TypeError, match="candidate must be callable"):
        made_up("candidate", None, False, ["random"])


def test_the_output_of_a_run_is_a_number_and_a_value():
    assert output_of((True, "x")) == (1.0, "x")
    for wrong, said in (
        (1.0, "a pair"),
        ((1.0, 2, 3), "a pair"),
        (("0.5", None), "must be a number, and is str"),
        ((b"1", None), "must be a number, and is bytes"),
        ((None, None), "must be a number, and is NoneType"),
        ((10**400, None), "must be a number, and is int"),
    ):
        with pytest.raises(ArgumentError, match=said):
            output_of(wrong)


def test_a_rehearsal_draws_from_a_public_source_and_notes_that_nothing_was_charged():
    seen = []
    rehearse_candidate("candidate", run, lambda random: (seen.append(random.bits(32)), None) and (1.0, None))
    assert seen == [rehearsal_source().bits(32)]
    with pytest.raises(KeyError) as caught, uncharged("a rehearsal"):
        raise KeyError("rate")
    assert caught.value.__notes__ == ["in a rehearsal, on made-up or public rows; nothing was drawn or charged"]
    with pytest.raises(ArgumentError, match="a pair"):
        rehearse_candidate("candidate", run, lambda random: 1.0)
