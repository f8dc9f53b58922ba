"""Everything that takes private data is paid in one way: `spender` and `label`, before the data are looked at, once."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import pkgutil
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpselect
from dpselect import adaptive, mechanisms as m, ordered, selection as s
from dpselect.accounting.candidates.sampled_percentile import SmoothedOdds
from dpselect.accounting.candidates.sampled_search import smoothed_count
from dpselect.errors import BudgetError
from dpselect.ledger import Ledger
from dpselect.privacy import OutputGuarantee, Release, pure_dp
from dpselect.privacy.paying import PaidSession
from dpselect.privacy.release import Receipt
from dpselect.randomness import RandomSource, keyed_source
from tests.project import public_calls
from tests.project.public_calls import Public, from_calls, from_examples, public
from tests.project.public_samples import DATA, PUBLIC_HERE

BASE = pure_dp(epsilon=0.1)
SCORES = [3.0, 9.0, 1.0, 4.0]
ROWS = [float(i % 50) for i in range(400)]


def candidate(random):
    return float(random.uniform(1)[0]), "found"


ODDS = SmoothedOdds(samples=20, smoothing=20.0, sensitivity=2.0)
COUNT = smoothed_count(BASE, samples=2000, thresholds=2, delta=1e-6, slack=0.25)
THRESHOLDS = s.ThresholdSearch(thresholds=[0.8, 0.2], target=0.5, base=BASE, statistic=COUNT, epsilon=1.0)
GATE = {"training": BASE, "max_error": 0.5, "test_epsilon": 0.1, "test_shift": 0.001, "train_shift": 0.001}
STAGE = m.ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=1e-6)
SV = {"epsilon_threshold": 0.5, "epsilon_queries": 0.5, "max_positives": 2}
LEVELS = m.LaplaceReduction(epsilons=[0.1, 0.2], sensitivity=1)
COLUMN = ordered.Column(ROWS, lower=0, upper=63)
GRID = adaptive.integer_grid(0, 63)


def watched(session, ask):
    """What a session answers, and its close: the price of the whole."""
    ask(session)
    session.close()
    return session


Call = Callable[..., Any]
SESSIONS: dict[str, Call] = {
    "mechanisms.SparseVector": lambda **o: watched(m.SparseVector(**SV, **o), lambda sv: sv.above_many(SCORES, 50.0)),
    "mechanisms.LaplaceReduction.open": lambda **o: watched(LEVELS.open(5, **o), lambda session: session.release()),
    "mechanisms.BrownianReduction.open": lambda **o: watched(
        m.BrownianReduction(noise_multipliers=[9, 4], delta=1e-6, sensitivity=1).open([5.0], **o),
        lambda session: session.release(),
    ),
    "selection.PercentileSparseVector": lambda **o: watched(
        s.PercentileSparseVector(guarantee=BASE, epsilon=1.0, **o), lambda search: search.above(3.0)
    ),
    "selection.SampledSparseVector": lambda **o: watched(
        s.SampledSparseVector(guarantee=BASE, statistic=ODDS, epsilon=8.0, max_queries=2, **o),
        lambda search: search.above(candidate, 0.5),
    ),
    "selection.PercentileSparseVector.first": lambda **o: s.PercentileSparseVector(
        guarantee=BASE, epsilon=1.0, **o
    ).first([-3.0, 3.0]),
    "selection.SampledSparseVector.first": lambda **o: s.SampledSparseVector(
        guarantee=BASE, statistic=ODDS, epsilon=8.0, max_queries=2, **o
    ).first([(candidate, 0.5)]),
}
"""Sessions pay as they answer: how each is opened and asked."""


def of_example(name: str) -> Call | None:
    """A public callable with `spender` and `label`, called as its docstring's example calls it."""
    found = PUBLIC[name]
    call = from_calls(found) if inspect.isclass(found.value) else from_examples(found)
    return None if call is None else call.call


def calls(takers: dict[str, bool]) -> dict[str, Call]:
    """Every public callable that is paid by a spender, and by no session that has tests of its own."""
    paid = (name.removesuffix(".__call__") for name, pays in takers.items() if pays)
    own = [name for name in paid if name not in SESSIONS and name not in BASES and name in PUBLIC]
    examples = {name: of_example(name) for name in own if not SESSIONS_ALREADY_PAID_EACH_ANSWER.fullmatch(name)}
    return {**SESSIONS, **{name: call for name, call in examples.items() if call is not None}}


# ---- every public callable that takes private data ------------------------------------------------------------------

_PART = "a part of what is priced, and paid, as a whole"
_SESSION = "an answer of a session, which pays for it"
_RECORD = "a record, or what was released: no private row goes in"
_PUBLIC = "public numbers"
_NOTHING = "draws without data, or promises nothing by itself"
_LEARNER = "scikit-learn's signature; `guarantee()` says the price before a row is seen, and `paid` pays for one fit"
UNPAID: dict[str, str] = {
    r"(mechanisms|learners|selection|adaptive|ordered)\.\w+\.(draw|prepared|bind|form)": _PART,
    r"(mechanisms|learners|selection|adaptive|ordered)\.\w+\.(normalised|examined|distance)": _PART,
    r"mechanisms\.Mechanism.*": "the base of those in the table",
    r"mechanisms\.(add_on_grid|round_to_grid|gaussian_steps|discrete_\w+)": _NOTHING,
    r"mechanisms\.SparseVector\.\w+": _SESSION,
    r"(caching|randomness|repetitions|accounting|numerics)\..*": _NOTHING,
    r"adaptive\.(AdaptiveAnalysis|MultiplicativeWeights|Verification|AdaptiveMeans)\.\w+": _SESSION,
    r"adaptive\.EffectiveRounds.*": "promises nothing to a row",
    r"adaptive\.(plan_\w+|[cC]hoice\w+|\w+Plan|SearchNoise\.draw)": _PUBLIC,
    r"\w+\.(Verified|Score|Terms|Tuned|\w*Release|SparseAnswers|TrialOutput|TuneResult|Adjacency)": _RECORD,
    r"audit\..*": "an audit runs on planted data",
    r"holdout\.HoldoutLabels": "kept until `Holdout.create` seals them, which pays",
    r"holdout\.(Holdout\.score|SavedAnalysis\.\w+)": _SESSION,
    r"holdout\.Gate\.(ask|create)": "promises nothing to a task; its purse is a failure probability",
    r"learners\.((DPSGD|OutputPerturbation)Classifier|DPSGDRegressor).*": _LEARNER,
    r"learners\.Private(LeastSquares|NaiveBayes|Ridge).*": _LEARNER,
    r"learners\.PrivateBoosting(Classifier|Regressor).*": _LEARNER,
    r"learners\.\w+\.(predict|predict_proba|score|decision_function|fit|__call__)": _LEARNER,
    r"learners\.(EarlyStopping\.open|PrivateValidation|PublicValidation)": "paid by `EarlyStopping`",
    r"ordered\.(Column\w*|Column\.\w+|interior_points\.ScoreRuns|CumulativeInteriorPoint)": _PART,
    r"ordered\.(slices\.Ordered|Rectangle\.predict|open_column|[\w.]+\.__call__|\w+\.quasi_concave_hull)": _PART,
    r"ordered\.slices\.ReorderSliceCompute\.\w+": _SESSION,
    r"preprocessing\..*": "learns nothing; what leaves it is as private as what came in",
    r"ordered\.median": "hands all options on to `quantile`",
    r"selection\.\w+\.(above|first|__call__)": _SESSION,
    r"selection\.(\w+_mixture|\w+_candidate|log_odds)": _PART,
    r"(study|integrations|report)\..*": "a study pays for a whole search",
    r"tuning\.(tune|encode_value|split_rows|SharedRelease)": "`tune(ledger=)` pays for a whole search",
    r"tuning\.\w+\.sample": _PUBLIC,
}
"""Public callables that take private data, or draw, without a spender: patterns, each with the reason."""

MORE = {
    "candidate",
    "estimator",
    "train",
    "query",
    "distance",
    "attempts",
    "queries",
    "objective",
    "random",
    "log_odds",
}
SESSIONS_ALREADY_PAID_EACH_ANSWER = re.compile(
    r"adaptive\.(AdaptiveAnalysis|AdaptiveMeans|MultiplicativeWeights|Verification)$"
    r"|holdout\..*|learners\.(Private\w+Classifier|GatedLogisticRegression)$"
    r"|ordered\.(slices\.\w+|\w*InteriorPoint|interior_point|learn_\w+|\w+Learner|\w+\.maximize_\w+|QuasiConcave)$"
    r"|selection\.Selector$"
)
"""With a spender, and held to it in tests of their own."""


def takers() -> dict[str, bool]:
    """Every public callable that takes private data or draws: whether it takes `spender` and `label`."""
    found, seen = {}, set()
    rooms = [
        x.name
        for x in pkgutil.iter_modules(dpselect.__path__)
        if x.name not in ("testing", "cli", "errors", "capabilities", "cures", "foreign_names")
    ]
    for room in [*rooms, "ordered.interior_points", "ordered.slices"]:
        module = importlib.import_module(f"dpselect.{room}")
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not callable(thing) or id(thing) in seen:
                continue
            seen.add(id(thing))
            parts = {f"{room}.{name}": thing}
            if inspect.isclass(thing):
                for key in dir(thing):
                    function = getattr(
                        inspect.getattr_static(thing, key), "__func__", inspect.getattr_static(thing, key)
                    )
                    if inspect.isfunction(function) and (key == "__call__" or not key.startswith("_")):
                        parts[f"{room}.{name}.{key}"] = function
            for label, part in parts.items():
                with contextlib.suppress(TypeError, ValueError):
                    names = set(inspect.signature(part).parameters)
                    if any(x in DATA | MORE and f"{label}:{x}" not in PUBLIC_HERE for x in names):
                        found[label] = {"spender", "label"} <= names
    return found


TAKERS = takers()
BASES = ("mechanisms.Mechanism",)
PUBLIC = {found.name: found for found in public()}
CALLS = calls(TAKERS)


class Recorder:
    """Writes down what is asked of it, and every draw in between."""

    def __init__(self) -> None:
        self.events: list[Any] = []

    def reserve(self, guarantee, *, label, identifier):
        self.events.append(("reserve", guarantee, label, identifier))
        return Receipt(account="test", identifier=identifier, charged={})

    def settle(self, identifier, *, cell=None):
        self.events.append(("settle", identifier))
        return Receipt(account="test", identifier=identifier, charged={})

    def kinds(self) -> list[str]:
        """The kinds of events, each once in a row."""
        kinds = [event[0] for event in self.events]
        return [kind for i, kind in enumerate(kinds) if not i or kind != kinds[i - 1]]


@pytest.fixture(autouse=True)
def _nothing_found():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def on_each_draw(monkeypatch, source, then):
    """Call `then` before each draw from the source."""
    for name in ("_take", "unit_coins"):
        draw = getattr(RandomSource, name)

        def seen(self, *given, draw=draw):
            if self is source:
                then()
            return draw(self, *given)

        monkeypatch.setattr(RandomSource, name, seen)


@pytest.fixture
def spender(monkeypatch):
    """A recorder of payments and of draws from the source that is given."""
    found, source = Recorder(), keyed_source(3)
    on_each_draw(monkeypatch, source, lambda: found.events.append(("draw",)))
    found.source = source
    return found


def worst(guarantee):
    return guarantee.worst() if isinstance(guarantee, OutputGuarantee) else guarantee


@pytest.mark.cases(20)
@pytest.mark.parametrize("name", CALLS)
def test_reserved_once_before_anything_is_drawn_and_settled_once_after(name, spender):
    found = CALLS[name](spender=spender, label="mine", random=spender.source)
    assert spender.kinds() == ["reserve", "draw", "settle"]
    (reserved,) = (event for event in spender.events if event[0] == "reserve")
    (settled,) = (event for event in spender.events if event[0] == "settle")
    _, guarantee, label, identifier = reserved
    assert label == "mine"
    assert settled[1] == identifier
    if isinstance(found, (Release, PaidSession)):
        assert found.receipt.identifier == identifier
        promised = worst(found.guarantee)
        for delta in (1e-5, 1e-2):
            assert worst(guarantee).epsilon(delta) >= promised.epsilon(delta)
    other = CALLS[name](random=keyed_source(3))
    if isinstance(other, (Release, PaidSession)):
        assert other.receipt is None


@pytest.mark.cases(30)
@pytest.mark.parametrize("name", CALLS)
def test_an_exception_in_the_run_leaves_it_charged(name, spender, monkeypatch):
    def interrupt():
        raise KeyboardInterrupt

    on_each_draw(monkeypatch, spender.source, interrupt)
    with pytest.raises(KeyboardInterrupt):
        CALLS[name](spender=spender, random=spender.source)
    assert spender.kinds() == ["reserve"]
    assert spender.events[0][2]  # a default label


@pytest.mark.cases(31)
@pytest.mark.parametrize("name", CALLS)
def test_what_the_budget_does_not_allow_draws_nothing(name, spender):
    def refuse(*_, **__):
        raise BudgetError("nothing left")

    spender.reserve = refuse
    with pytest.raises(BudgetError):
        CALLS[name](spender=spender, random=spender.source)
    assert not spender.events


class Sum(m.Mechanism):
    """A mechanism from outside of the package (which adds no noise).

    >>> Sum()([1.0, 2.0], random=keyed_source(1)).value
    3.0
    """

    guarantee = BASE

    def prepared(self, rows):
        return lambda random: float(sum(rows)) + 0.0 * random.below(2)


class Early(Sum):
    """The same, drawn before it is paid for.

    >>> Early()([1.0, 2.0], random=keyed_source(1)).value
    3.0
    """

    def __call__(self, *data, spender=None, label="early", random=None):
        self.draw(*data, random=random)
        return super().__call__(*data, spender=spender, label=label, random=random)


@pytest.mark.full
@pytest.mark.parametrize("kind", [Sum, Early])
def test_a_new_mechanism_is_called_as_its_example_calls_it(kind, spender, monkeypatch):
    """Nothing else names it: the contract above holds for the first, and finds the second."""
    monkeypatch.setattr(m, kind.__name__, kind, raising=False)
    monkeypatch.setattr(m, "__all__", [*m.__all__, kind.__name__])
    monkeypatch.setitem(PUBLIC, f"mechanisms.{kind.__name__}", Public("", kind, (kind.__doc__,), (kind,)))
    monkeypatch.setitem(public_calls._everything(), kind.__name__, kind)
    calls(takers())[f"mechanisms.{kind.__name__}"](spender=spender, label="mine", random=spender.source)
    assert (spender.kinds() == ["reserve", "draw", "settle"]) is (kind is Sum)


def test_a_session_that_is_closed_gives_back_what_was_not_used(tmp_path):
    budget = Ledger.open(tmp_path / "b.db").create_budget("rows", epsilon=9, delta=1e-3)
    with m.SparseVector(**SV, spender=budget, random=keyed_source(1)) as session:
        with pytest.raises(BudgetError):  # the budget is locked
            m.noisy_count(1, epsilon=0.1, spender=budget)
        session.above(-1e6, 0.0)
    assert session.receipt.charged["epsilon"] == session.guarantee.price(0) < session.guarantee.worst_epsilon
    assert session.close() == session.receipt
    for ask in (lambda: session.above(0.0, 0.0), lambda: session.above_many([0.0], 0.0)):
        with pytest.raises(BudgetError, match="closed"):
            ask()
    spent = budget.spent().epsilon
    with pytest.raises(ZeroDivisionError), m.SparseVector(**SV, spender=budget) as session:
        session.above(0, 1 / 0)
    assert float(budget.spent().epsilon - spent) == session.guarantee.worst_epsilon


def test_a_sparse_vector_is_paid_by_its_negatives_too(tmp_path, monkeypatch):
    """At `refined_guarantee`, and in full once an answer was interrupted: then no one knows how many there were."""
    budget = Ledger.open(tmp_path / "b.db").create_budget("rows", epsilon=9)
    answers = []
    with m.SparseVector(**SV, refined=True, spender=budget, random=keyed_source(1)) as session:
        price = session.refined_guarantee
        answers += [session.above(-1e6, 0.0), *session.above_many([-1e6, 1e6], 0.0)]
    assert answers == [False, False, True]
    assert session.receipt.charged["epsilon"] == price.observed(answers).price < session.guarantee.price(1)
    spent = budget.spent().epsilon
    with m.SparseVector(**SV, refined=True, spender=budget) as session:
        monkeypatch.setattr(type(session._test), "single", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            session.above(-1e6, 0.0)
        monkeypatch.undo()
        session.above(-1e6, 0.0)
    assert float(budget.spent().epsilon - spent) == price.worst_epsilon


def test_a_session_that_stops_is_settled_at_its_levels(tmp_path):
    budget = Ledger.open(tmp_path / "b.db").create_budget("rows", epsilon=9)
    assert LEVELS.open(5, spender=budget).until(lambda level: True).receipt.charged["epsilon"] == 0.1
    assert float(budget.spent().epsilon) == 0.1


@pytest.mark.parametrize("wrong", [[[1.0]], ["a", "b"], []])
def test_scores_of_a_wrong_kind_are_refused_before_they_are_paid_for(wrong, spender):
    for mechanism in (m.PermuteAndFlip(sensitivity=1, epsilon=1), m.ChoosingMechanism(growth=1, epsilon=1, delta=1e-6)):
        with pytest.raises((TypeError, ValueError)):
            mechanism(wrong, spender=spender)
    assert not spender.events


def test_a_number_of_scores_that_does_not_fit_is_refused_before_it_is_paid_for(spender):
    wrong = (
        m.TopK(count=5, sensitivity=1, epsilon=1),
        m.LargeMarginMechanism(candidates=3, sensitivity=1, epsilon=1, delta=1e-6),
        m.GeneralisedExponentialMechanism(sensitivities=[1.0], epsilon=1),
    )
    for mechanism in wrong:
        with pytest.raises(ValueError, match="must be"):
            mechanism(SCORES, spender=spender)
    assert not spender.events


def test_a_stream_of_scores_is_read_only_when_it_is_paid_for(spender):
    def read():
        spender.events.append(("read",))
        yield np.array(SCORES)

    m.PermuteAndFlip(sensitivity=1, epsilon=1)(m.ScoreChunks(read), spender=spender)
    assert spender.kinds() == ["reserve", "read", "settle"]


@pytest.mark.parametrize("name", TAKERS)
def test_whatever_takes_private_data_is_paid_or_has_a_reason(name):
    own = name.removesuffix(".__call__")
    if TAKERS[name]:
        assert own in CALLS or SESSIONS_ALREADY_PAID_EACH_ANSWER.fullmatch(own) or own in BASES
    else:
        assert any(re.fullmatch(pattern, name) for pattern in UNPAID), f"{name}: spender= and label=, or a reason"


@pytest.mark.parametrize("pattern", UNPAID)
def test_each_reason_is_needed(pattern):
    assert any(re.fullmatch(pattern, name) for name, pays in TAKERS.items() if not pays)


# ---- code of the caller that sees the data --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [ValueError, SystemExit, GeneratorExit])
@pytest.mark.parametrize(
    "call",
    [
        lambda code, **o: STAGE(10_000, code, **o),
        lambda code, **o: STAGE(code, lambda random: 1, **o),
        lambda code, **o: m.Cascade([STAGE])([(10_000, code)], **o),
        lambda code, **o: m.SparseRelease(
            epsilon_threshold=5.0, epsilon_queries=5.0, epsilon_release=0.5, max_positives=1
        )([1e6], threshold=0.0, answer=code, **o),
    ],
    ids=["answer", "distance", "attempts", "sparse"],
)
def test_what_the_callers_code_raises_passes_through_and_stays_charged(call, kind, spender):
    def fails(*_):
        raise kind("of the data")

    with pytest.raises(kind, match="of the data"):
        call(fails, spender=spender)
    assert spender.kinds() == ["reserve"]
