"""Optuna 5.0.0: what its tests of trials and distributions assert, of our trials, and its own trials side by side.

`tests/trial_tests/test_trial.py` and `tests/test_distributions.py`.
"""

from __future__ import annotations

import itertools
import math
import warnings

import pytest

optuna = pytest.importorskip("optuna")

from dpselect.integrations.optuna import IndependentTrial  # noqa: E402
from dpselect.integrations.optuna.trial import draw  # noqa: E402
from dpselect.randomness import keyed_source  # noqa: E402

pytestmark = pytest.mark.peers

Float, Int = optuna.distributions.FloatDistribution, optuna.distributions.IntDistribution
Choice = optuna.distributions.CategoricalDistribution


def trial(key=1):
    return IndependentTrial(keyed_source(key))


def outcome(call):
    """Its value, or the kind of the error, and whether it warns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = call()
        except ValueError:
            return "ValueError", False
        except (TypeError, OverflowError) as error:
            return type(error).__name__, False
    return found, any(one.category is RuntimeWarning for one in caught)


SAME_NAME = [
    (lambda t: t.suggest_float("x", 10, 20), lambda t: t.suggest_float("x", 10, 30)),
    (lambda t: t.suggest_float("x", 10, 20, log=True), lambda t: t.suggest_float("x", 10, 30, log=True)),
    (lambda t: t.suggest_float("x", 10, 20, step=2), lambda t: t.suggest_float("x", 10, 22, step=2)),
    (lambda t: t.suggest_int("x", 10, 20), lambda t: t.suggest_int("x", 10, 22)),
    (lambda t: t.suggest_int("x", 10, 20, log=True), lambda t: t.suggest_int("x", 10, 22, log=True)),
    (lambda t: t.suggest_categorical("x", [10, 20]), lambda t: t.suggest_categorical("x", [10, 20])),
]


def test_a_name_that_is_asked_for_again(compare):
    """`test_check_distribution_*`: another range warns and keeps the value; another kind is a ValueError."""
    with compare("optuna") as peer:
        for (first, wider), other in itertools.product(SAME_NAME, SAME_NAME):
            one = trial()
            value = first(one)
            peer.holds(outcome(lambda o=one, f=first: f(o)) == (value, False), "again")
            found, warned = outcome(lambda o=one, w=wider: w(o))
            peer.holds(found == value and warned is not isinstance(one.distributions["x"], Choice), found, warned)
            theirs = optuna.create_study().ask()
            first(theirs)
            expected = outcome(lambda t=theirs, c=other[0]: c(t))[0]
            ours = outcome(lambda o=one, c=other[0]: c(o))[0]
            peer.holds((ours == "ValueError") == (expected == "ValueError"), ours, expected)


def test_ranges_of_one_value(compare):
    """`test_suggest_low_equals_high`: the value itself, by each method and each option."""
    with compare("optuna") as peer:
        one = trial()
        for number, value in enumerate((1.0, 1e-6, -3.5, 7.25, 1e9)):
            peer.holds(one.suggest_float(f"a{number}", value, value) == value, value)
            peer.holds(one.suggest_uniform(f"b{number}", value, value) == value, value)
            peer.holds(one.suggest_discrete_uniform(f"c{number}", value, value, 1.0) == value, value)
            peer.holds(one.suggest_float(f"d{number}", value, value, step=0.5) == value, value)
            if value > 0:
                peer.close(one.suggest_float(f"e{number}", value, value, log=True), value, relative=1e-15)
                peer.close(one.suggest_loguniform(f"f{number}", value, value), value, relative=1e-15)
        for number, value in enumerate((1, -4, 0, 10**6)):
            peer.holds(one.suggest_int(f"g{number}", value, value) == value, value)
            peer.holds(one.suggest_int(f"h{number}", value, value, step=3) == value, value)
            if value > 0:
                peer.holds(one.suggest_int(f"i{number}", value, value, log=True) == value, value)
        peer.holds(one.suggest_categorical("only", ["x"]) == "x")


RANGES = [(0.0, 10.0, 3.0), (-0.5, 0.5, 0.3), (-8.5, -5.0, 1.0), (1e-3, 1e-2, 3e-3), (0.0, 1.0, 0.1), (2.0, 2.5, 1.0)]
INTEGERS = [(0, 10, 3), (-5, 5, 2), (1, 9, 4), (10, 11, 7), (-20, -3, 5), (0, 100, 33)]


@pytest.mark.filterwarnings("ignore")
def test_steps(compare):
    """`test_suggest_discrete_uniform_range` and `test_suggest_int_range`: a multiple of the step, inside the range."""
    with compare("optuna") as peer:
        for low, high, step in RANGES:
            values = [trial(key).suggest_float("x", low, high, step=step) for key in range(60)]
            peer.holds(all(Float(low, high, step=step)._contains(value) for value in values), low, high, step)
            peer.holds(len(set(values)) == math.floor((high - low) / step + 1e-9) + 1, low, high, step, set(values))
        for low, high, step in INTEGERS:
            values = [trial(key).suggest_int("x", low, high, step=step) for key in range(60)]
            peer.holds(set(values) == set(range(low, high + 1, step)), low, high, step, set(values))
            peer.holds(all(isinstance(value, int) for value in values), low, high)


WRONG = [
    lambda t: t.suggest_float("x", 1, 2, step=0.5, log=True),
    lambda t: t.suggest_float("x", 1, 2, step=0),
    lambda t: t.suggest_float("x", 1, 2, step=-1),
    lambda t: t.suggest_float("x", 2, 1),
    lambda t: t.suggest_float("x", 0, 1, log=True),
    lambda t: t.suggest_float("x", -1, 1, log=True),
    lambda t: t.suggest_float("x", math.nan, 1),
    lambda t: t.suggest_int("x", 1, 20, step=0),
    lambda t: t.suggest_int("x", 1, 20, step=-1),
    lambda t: t.suggest_int("x", 1, 20, step=2, log=True),
    lambda t: t.suggest_int("x", 2, 1),
    lambda t: t.suggest_int("x", 0, 20, log=True),
    lambda t: t.suggest_int("x", -1, 20, log=True),
    lambda t: t.suggest_int("x", 20, 10, log=True),
    lambda t: t.suggest_categorical("x", []),
]


def test_wrong_ranges(compare):
    """`test_suggest_float_invalid_step`, `test_suggest_int_log_invalid_range`, `test_float_init_error` and others."""
    with compare("optuna") as peer:
        for number, call in enumerate(WRONG):
            peer.refuses(ValueError, lambda c=call: c(trial()), number)
            # theirs takes NaN as an end of a range and fails in the draw
            theirs = outcome(lambda c=call: c(optuna.create_study().ask()))[0]
            peer.holds(theirs in ("ValueError", "OverflowError"), number, theirs)


def test_what_a_trial_tells(compare):
    """`test_distributions` and `test_persisted_param`: parameters and distributions by name, in the order asked."""
    with compare("optuna") as peer:
        one, theirs = trial(), optuna.create_study().ask()
        calls = [
            lambda t: t.suggest_float("a", 0, 10),
            lambda t: t.suggest_float("b", 0.1, 10, log=True),
            lambda t: t.suggest_float("c", 0, 10, step=1),
            lambda t: t.suggest_int("d", 0, 10),
            lambda t: t.suggest_int("e", 1, 10, log=True),
            lambda t: t.suggest_categorical("f", ["x", "y", "z"]),
        ]
        for call in calls:
            value = call(one)
            call(theirs)
            peer.holds(list(one.params) == list(theirs.params))
            peer.holds(list(one.params.values())[-1] == value)
            peer.holds(one.distributions == theirs.distributions)
        for name in one.params:
            peer.holds(type(one.params[name]) is type(theirs.params[name]), name)


LAWS = [
    *(Float(low, high) for low, high in ((0.0, 1.0), (-1e300, 1e300), (1e-300, 1e-299), (-5.0, -4.0), (3.0, 3.0))),
    *(Float(low, high, log=True) for low, high in ((1e-9, 1.0), (1e-300, 1e300), (0.5, 0.75), (10.0, 1e5))),
    *(Float(low, high, step=step) for low, high, step in ((0.0, 1.0, 0.25), (-2.0, 2.0, 0.5), (0.0, 9.0, 3.0))),
    *(Int(low, high) for low, high in ((0, 1), (-(10**15), 10**15), (5, 5), (-3, 17))),
    *(Int(low, high, log=True) for low, high in ((1, 2), (1, 10**6), (7, 9), (100, 101))),
    *(Int(low, high, step=step) for low, high, step in ((0, 10, 5), (-9, 9, 3), (1, 1000, 37))),
    *(Choice(values) for values in ((None, True, 1, "a", 2.5), (1,), ("x", "y"), tuple(range(50)))),
]


def test_live_distributions(compare):
    """Each draw is in their distribution, and passes their own check and round trip of values."""
    with compare("optuna", live=True) as peer:
        for number, law in enumerate(LAWS):
            source = keyed_source(f"law {number}")
            values = [draw(law, source) for _ in range(40)]
            inside = [law.to_internal_repr(value) for value in values]
            peer.holds(all(map(law._contains, inside)), law, values)
            peer.holds([law.to_external_repr(value) for value in inside] == values, law, values)
            peer.holds(law.single() is (len(set(map(repr, values))) == 1), law, values)
