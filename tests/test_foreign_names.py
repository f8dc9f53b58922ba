"""Calls with wrong arguments, and with the names of other libraries, are answered with what to type."""

import inspect
import pickle
import subprocess
import sys
import warnings
from types import FunctionType

import pytest
from pydantic import BaseModel

from dpselect.accounting import adaptive_best_of, best_of
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.foreign_names import OPTIONS, foreign_names_of
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.learners import DPSGDClassifier
from dpselect.ledger import InsufficientBudget, Ledger
from dpselect.mechanisms import SparseVector, exponential_mechanism
from dpselect.ordered import median, quantile
from dpselect.privacy import compose, dp_sgd, gaussian, laplace, pure_dp
from dpselect.randomness.session import Session
from dpselect.repetitions import Geometric, Harmonic, Logarithmic, Poisson
from dpselect.selection import select_best
from dpselect.tuning import Categorical, tune
from tests.project.public_calls import ROOMS, public

SEARCH = {"space": {"x": Categorical([1, 2])}, "base": pure_dp(epsilon=1)}


def run(params, random):
    return 0.0, params["x"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: gaussian(sigma=4), r"gaussian has no argument sigma: did you mean noise_multiplier= \(standard dev"),
        (lambda: dp_sgd(epochs=3), r"write steps=100 \(epochs / sampling_rate\)"),
        (lambda: laplace(epsilon=1), r"give scale= \(sensitivity / epsilon\)"),
        (lambda: pure_dp(eps=1), "did you mean epsilon="),
        (lambda: Logarithmic(mean=10), r"use Logarithmic.with_mean\(mean=10\)"),
        (lambda: Geometric(mean=3), r"use Geometric.with_mean\(mean=3\)"),
        (lambda: Harmonic(mean=3), "give limit="),
        (lambda: tune(run, **SEARCH, n_trials=10), "tune has no argument n_trials: the number of runs is drawn"),
        (lambda: tune(run, **SEARCH, repetitions=10), r"repetitions must be a distribution .* Harmonic\(limit=30\)"),
        (lambda: gaussian(4), r"gaussian takes nothing without a name: write gaussian\(noise_multiplier=...\)"),
        (lambda: gaussian(), r"gaussian needs noise_multiplier: write gaussian\(noise_multiplier=...\)"),
        (lambda: dp_sgd(1.0, 0.01, 9), r"write dp_sgd\(noise_multiplier=..., sampling_rate=..., steps=...\)"),
        (lambda: exponential_mechanism([1, 2], 1, 1), r"\(scores, sensitivity=..., epsilon=...\)"),
        (lambda: exponential_mechanism([1, 2], eps=1), "exponential_mechanism has no argument eps: did you mean eps"),
        (lambda: SparseVector(c=1), "did you mean max_positives="),
        (lambda: pure_dp(epsilon=1).epsilon(target_delta=0), "Guarantee.epsilon has no argument target_delta: did you"),
        (lambda: Geometric.with_mean(n_trials=3), "Geometric.with_mean has no argument n_trials: did you mean mean="),
        (lambda: median([1, 2], low=0, upper=9, epsilon=1), "median has no argument low: did you mean lower="),
        (lambda: median([1, 2], lower=0, upper=9, eps=1), "median has no argument eps: did you mean epsilon="),
        (lambda: quantile([1], q=0.5, bounds=(0, 1), epsilon=1), "quantile has no argument bounds: give lower= and up"),
        (lambda: DPSGDClassifier(clip_nrm=1), "DPSGDClassifier has no argument clip_nrm: did you mean clip_norm="),
        (lambda: PrivateSearchCV(None, {}, random_state=1), "PrivateSearchCV has no argument random_state: .*keyed_so"),
    ],
)
def test_what_to_type_instead(call, said):
    with pytest.raises(TypeError, match=said):
        call()


@pytest.mark.parametrize(
    ("law", "said"), [(Harmonic, r"write Harmonic\(limit=...\)"), (Poisson, r"write Poisson\(mean=...\)")]
)
def test_a_law_without_a_mean_of_its_own_says_what_it_takes(law, said):
    with pytest.raises(AttributeError, match=f"has no with_mean: {said}"):
        law.with_mean(10)
    with pytest.raises(AttributeError, match=f"type object {law.__name__!r} has no attribute 'with_median'"):
        law.with_median(10)


BASE = pure_dp(epsilon=1)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: best_of(1.5, Harmonic(limit=3)),
            r"base must be .*; for an epsilon of 1.5 write pure_dp\(epsilon=1.5\)$",
        ),
        (lambda: compose(1, BASE), r"for an epsilon of 1 write pure_dp\(epsilon=1\)$"),
        (
            lambda: exponential_mechanism([1, 2], sensitivity=0, epsilon=1),
            "^sensitivity must be greater than 0, got 0. Write sensitivity=1$",
        ),
        (lambda: median(["low", "high"], lower=0, upper=1, epsilon=1), r"give categories=\[...\], in order"),
        (
            lambda: best_of(BASE, 12),
            r"Harmonic\(limit=30\), got int; a fixed number is Fixed\(count=12\) and costs more",
        ),
        (lambda: adaptive_best_of(BASE, 12, lower_ratio=0.8, upper_ratio=1.6), r"is Fixed\(count=12\)"),
        (lambda: select_best(lambda _: (0, 1), repetitions=12, guarantee=BASE), r"is Fixed\(count=12\)"),
        (
            lambda: PrivateSearchCV(DPSGDClassifier(), {}, repetitions=12, classes=[0, 1]).plan(),
            r"is Fixed\(count=12\)",
        ),
    ],
)
def test_a_wrong_value_says_what_to_write(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call()


def test_a_guarantee_of_another_adjacency_says_what_to_make(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("a", epsilon=9)
        with pytest.raises(AdjacencyError, match="make the guarantee with adjacency='add_or_remove_one', or a budget"):
            budget.reserve(pure_dp(epsilon=1, adjacency="replace_one"), label="x")


@pytest.mark.parametrize("design", ["one-run", "one-stage", "two-stage", "portfolio"])
def test_a_total_without_delta_says_what_is_missing(design):
    space = {} if design == "one-run" else {"learning_rate": [0.1, 1.0]}
    learner = DPSGDClassifier(noise_multiplier=1.0, steps=2)
    for law in [None, Harmonic(limit=3)] if design == "one-stage" else [None]:
        search = PrivateSearchCV(learner, space, design=design, epsilon=3, repetitions=law, classes=[0, 1])
        with pytest.raises(ArgumentError, match=r"^give delta=, e.g. 1e-6: this estimator adds noise"):
            search.plan()


def test_a_second_gaussian_charge_names_delta_and_the_cure(tmp_path):
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("a", epsilon=9, delta=1e-6)
        step = gaussian(noise_multiplier=9)
        budget.reserve(step, label="first")
        with pytest.raises(
            InsufficientBudget, match=r"Delta is used up .epsilon would fit.. Next time give .*delta=1e-07"
        ):
            budget.reserve(step, label="second")
        shared = ledger.create_budget("b", epsilon=9, delta=1e-6)
        shared.reserve(step, label="first", delta=6e-7)
        with pytest.raises(InsufficientBudget, match=r"Too little delta is left .* budget.at\(delta=4e-08\)"):
            shared.reserve(step, label="second")
        assert shared.at(delta=4e-8).reserve(step, label="second", identifier="2")
        with pytest.raises(InsufficientBudget, match=r"nothing was charged$"):
            shared.reserve(pure_dp(epsilon=10), label="third")


@pytest.mark.full
def test_a_budget_answers_though_nobody_asked_for_its_class():
    script = """
import tempfile
from dpselect.ledger import InsufficientBudget, Ledger
from dpselect.privacy import pure_dp
with tempfile.TemporaryDirectory() as folder, Ledger.open(folder + "/ledger.db") as ledger:
    ledger.create_budget("b", epsilon=1).reserve(pure_dp(epsilon=1), lable="x")
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert ended.stderr.endswith("TypeError: Budget.reserve has no argument lable: did you mean label=?\n")


def test_a_learner_is_called_by_the_name_that_was_typed():
    with pytest.raises(TypeError, match="DPSGDClassifier has no argument epsilon: noise is set by noise_multiplier="):
        DPSGDClassifier(epsilon=3)


def test_names_that_nobody_knows_are_answered_with_all_that_there_are():
    with pytest.raises(TypeError, match="gaussian has no argument colour: it takes noise_multiplier=, adjacency="):
        gaussian(noise_multiplier=1, colour="red")


def test_errors_within_a_call_are_not_touched():
    with pytest.raises(TypeError, match=r"^noise_multiplier must be a number, got 'four'. Write noise_multiplier=4.0$"):
        gaussian(noise_multiplier="four")


def test_nothing_else_changes():
    assert list(inspect.signature(gaussian).parameters) == ["noise_multiplier", "adjacency"]
    assert list(inspect.signature(Logarithmic).parameters) == ["gamma"]
    law = Logarithmic(gamma=0.1)
    assert pickle.loads(pickle.dumps(law)) == law
    assert isinstance(law, Logarithmic)
    for one in (gaussian, tune, median, Logarithmic, DPSGDClassifier, Ledger.open, Logarithmic.pmf):
        assert pickle.loads(pickle.dumps(one)) == one
        assert one.__doc__


def test_a_warning_names_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        DPSGDClassifier(noise_multiplier=1.0, steps=1, sampling_rate=0.5).fit([[0.1], [0.2]], [0, 1])
    assert {each.filename for each in caught} == {__file__}


OWN_TOOLS = ("numerics", "randomness")
"""What the library itself is made of: called a million times in a search, so nothing stands between."""


NOTHING_OF_OURS = {
    *("direction", "error_score", "iid", "maximize", "minimize", "return_train_score"),
    *("callbacks", "catch", "gc_after_trial", "pruner", "show_progress_bar"),
    *("dual", "l1_ratio", "solver", "tol", "verbose", "warm_start"),
}
"""Arguments of scikit-learn and Optuna that have no counterpart, with the reason in the answer."""


def takes(function):
    for each in inspect.signature(function).parameters.values():
        if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY):
            yield each.name
    for other in getattr(function, OPTIONS, ()):
        yield from takes(other)


def is_called(one):
    """Not what the library alone makes or others write (exceptions, protocols), nor what checks `**names` itself."""
    owner = one.owners[0]
    if isinstance(owner, type) and (issubclass(owner, BaseException | BaseModel) or getattr(owner, "_is_protocol", 0)):
        return False
    if inspect.isabstract(one.value):
        return False
    raw = vars(one.value).get("__init__") if isinstance(one.value, type) else getattr(one.value, "__func__", one.value)
    if not isinstance(raw, FunctionType) or raw.__module__.startswith("sklearn"):
        return False
    others = any(each.kind is each.VAR_KEYWORD for each in inspect.signature(one.value).parameters.values())
    return hasattr(one.value, OPTIONS) or not others


def first(one):
    """What a call of it begins with: nothing, or a stand-in for the object whose method it is."""
    if not one.is_method or not isinstance(one.value, FunctionType):
        return ()
    if not issubclass(one.owners[0], Session):
        return (None,)
    session = object.__new__(one.owners[0])
    Session.__init__(session)
    return (session,)


def answer(one, foreign):
    with pytest.raises(TypeError) as caught:
        one.value(*first(one), **{foreign: None})
    return str(caught.value)


CALLED = [one for one in public() if one.name.rpartition(".")[0] not in OWN_TOOLS and is_called(one)]
FOREIGN = {foreign for one in CALLED for our in takes(one.value) for foreign in foreign_names_of(our)}
OF_ROOM = {room: [one for one in CALLED if one.name.startswith(f"{room}.")] for room in ROOMS if room not in OWN_TOOLS}


@pytest.mark.parametrize("room", OF_ROOM)
def test_every_public_callable_answers_the_names_of_others(room):
    silent = []
    for one in OF_ROOM[room]:
        known = set(takes(one.value))
        meant = {foreign: {our for our in known if foreign in foreign_names_of(our)} for foreign in FOREIGN - known}
        for foreign, ours in meant.items():
            said = answer(one, foreign) if ours else ""
            named = foreign in NOTHING_OF_OURS or any(
                f"{our}=" in said for our in {*ours, "with_mean(mean", "executor"}
            )
            if ours and not (f"has no argument {foreign}: " in said and named):
                silent.append(f"{one.name}({foreign}=): {said}")
    assert not silent


@pytest.mark.parametrize("room", OF_ROOM)
def test_every_public_callable_answers_a_misspelt_name_of_its_own(room):
    silent = []
    for one in OF_ROOM[room]:
        known = set(takes(one.value)) - {"self"}
        for our in known:
            foreign = our[:2] + our[3:]
            if len(our) > 5 and foreign not in known and f"has no argument {foreign}: " not in answer(one, foreign):
                silent.append(f"{one.name}({foreign}=)")
    assert not silent


def test_many_callables_answer_and_about_120_names_are_known():
    assert len(CALLED) > 400
    assert len(FOREIGN) >= 120
