"""Names and keys that code asks for and nothing defines: those that are found, and those that may be there."""

from __future__ import annotations

import contextlib
import functools
import pickle

import numpy as np

from dpselect.selection.unresolved import missing_key, missing_name


def helper(value):
    return typo_in_a_helper(value)  # noqa: F821


def makes_a_name():
    global made_later
    made_later = 1


class Callable:
    def __call__(self, params, random):
        return in_a_method  # noqa: F821

    def method(self, params, random):
        return in_another  # noqa: F821


def in_a_with_block(params, random):
    with open("x"):
        return opened  # noqa: F821


def in_a_comprehension(params, random):
    return [of_each for _ in params]  # noqa: F821


def in_a_generator(params, random):
    yield yielded  # noqa: F821


def in_a_class(params, random):
    class Inner:
        here = 1
        there = here + nowhere  # noqa: F821

    return Inner


def unfilled():
    def early(params, random):
        return late

    yield early
    late = 1
    yield early


def test_names_that_are_nowhere_are_found():
    found = {
        "typo_in_a_helper": [lambda random: helper(1), functools.partial(lambda a, random: helper(1), 1)],
        "in_a_method": [Callable()],
        "in_another": [Callable().method],
        "opened": [in_a_with_block],
        "of_each": [in_a_comprehension],
        "yielded": [in_a_generator],
        "nowhere": [in_a_class],
        "inner": [lambda random: (lambda: inner)()],  # noqa: F821
        "late": [next(unfilled())],
    }
    for name, functions in found.items():
        for function in functions:
            missing = missing_name(function)
            assert missing is not None, name
            assert (missing.name, missing.file) == (name, __file__)


def guarded(params, random):
    try:
        return perhaps
    except NameError:
        return 0


def suppressed(params, random):
    with contextlib.suppress(NameError):
        return perhaps  # noqa: F821


def makes_its_own(params, random):
    global own_name
    own_name = 1
    return own_name


def by_reflection(params, random):
    globals()["reflected"] = 1
    return reflected  # noqa: F821


def python_2(params, random):
    return unicode("") if isinstance(params, bytes) else 1  # noqa: F821


def annotated(params: NotThere, random: NotThere) -> NotThere:  # noqa: F821
    value: NotThere = 1  # noqa: F821
    return value


def test_nothing_is_found_where_it_may_be_there():
    early = unfilled()
    filled = [next(early), next(early)][1]
    for function in (
        guarded,
        suppressed,
        makes_its_own,
        by_reflection,
        python_2,
        annotated,
        filled,
        lambda random: made_later,
        print,
        np.mean,
        int,
        functools.partial(print, 1),
        pickle.dumps,
    ):
        assert missing_name(function) is None, function


def test_no_function_of_this_library_asks_for_a_name_that_is_nowhere():
    """Hundreds of functions in which nothing is missing."""
    import importlib
    import inspect
    import pkgutil

    import dpselect.selection
    import dpselect.tuning

    looked_at = 0
    for package in (dpselect.selection, dpselect.tuning):
        for entry in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            module = importlib.import_module(entry.name)
            for _, function in inspect.getmembers(module, inspect.isfunction):
                assert missing_name(function) is None, function
                looked_at += 1
    assert looked_at > 200


def subscripts_twice(params, random):
    first = params["rate"]
    return first * params["depht"], None


class Subscripting:
    def __call__(self, params, random):
        return params["depht"], None


def branching(params, random):
    if params["rate"] > 0.5:
        return params["depth"], None
    return 0.0, None


def with_defaults(params, random):
    params = {"depth": 1, **params}
    return params["depth"], None


def handed_on(params, random):
    params.setdefault("depth", 1)
    return params["depth"], None


def used(params, random):
    return random.laplace(1)[0] - params["rate"], params["kind"]


def test_parameters_that_the_space_lacks_are_found_where_that_is_certain():
    assert missing_key(subscripts_twice, {"rate": 1.0}) == "depht"
    assert missing_key(Subscripting(), {"rate": 1.0}) == "depht"
    for function in (branching, with_defaults, handed_on, used, print, lambda: 1):
        assert missing_key(function, {"rate": 1.0, "kind": "a"}) is None
