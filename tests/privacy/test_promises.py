"""A realised price is offered to every public callable that asks for what a mechanism promises: all refuse it.

The table below holds otherwise valid arguments. A public callable with a parameter that takes a guarantee, and without
a row in the table, fails the test.
"""

import importlib
import inspect
import pkgutil
import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import dpselect
from dpselect.accounting import best_of, gated, iterative
from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.accounting.candidates.sampled_percentile import SmoothedCount, SmoothedOdds
from dpselect.adaptive.transfer import certifies, certifies_interval, trade_off_bound, transfer_bound
from dpselect.errors import AdjacencyError, ArgumentError, PromiseError
from dpselect.learners import GatedRelease
from dpselect.ledger import Ledger
from dpselect.mechanisms import LaplaceReduction
from dpselect.ordered.order_statistics.one import QuantileRelease
from dpselect.ordered.order_statistics.several import QuantilesRelease
from dpselect.ordered.slices import ReorderSliceCompute, SlicePrice
from dpselect.privacy import Adjacency, Guarantee, OutputGuarantee, compose, pure_dp
from dpselect.privacy.output.filter import OutputFilter, additive
from dpselect.privacy.output.guarantee import RealisedPrice
from dpselect.privacy.paying import Payment
from dpselect.repetitions import Fixed, Logarithmic
from dpselect.report.facts import search_facts
from dpselect.selection.hyperparameters import TwoSetGuarantee, TwoSetRelease
from dpselect.tuning import TwoStageDesign, Uniform, tune
from dpselect.tuning.tuner import check_store

GATE = OutputGuarantee(cell=lambda output: output is None, epsilons={True: 0.1, False: 1.0})
PRICE = GATE.observed(None)
BASE = pure_dp(epsilon=0.5)
LAW = Logarithmic.with_mean(mean=5)
ODDS = SmoothedOdds(samples=200, smoothing=60.0, sensitivity=0.5)
COUNT = SmoothedCount(samples=50, smoothing=30.0, sensitivity=0.8)


class Refused(BaseException):
    """Something ran, drew or was charged though the guarantee was none."""


def never(*_: Any, **__: Any) -> Any:
    raise Refused


class Unspent:
    """A spender that must not be asked."""

    reserve = settle = staticmethod(never)


def estimator():
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression()


def search_cv(base: Any) -> Any:
    from dpselect.integrations.sklearn import PrivateSearchCV

    search = PrivateSearchCV(estimator(), {"C": [1.0]}, base=base, repetitions=LAW)
    return search.fit(np.zeros((20, 2)), np.repeat([0, 1], 10))


def past_study() -> Any:
    from dpselect.integrations.optuna.study import PastStudy, PastTrial

    return PastStudy(name="s", directions=1, trials=(PastTrial(number=0, state="COMPLETE", begun=1),))


def two_stages(run, price):
    """A search in which a design's price is asked for."""
    design = TwoStageDesign(last=run, price=price)
    return tune(run, space={}, base=lambda _: BASE, design=design, epsilon=1, delta=1e-6)


def table(tmp_path: Any) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Every public name with a parameter that takes a guarantee: how to call it, and the arguments beside that one."""
    from dpselect import (
        accounting as a,
        audit,
        learners,
        mechanisms,
        ordered,
        privacy,
        selection,
        tuning,
    )
    from dpselect.privacy.output import calculus

    ledger = Ledger.open(tmp_path / "ledger.db")
    budget = ledger.create_budget("rows", epsilon=5, delta=1e-4)
    one_run = {"train": never, "score": never, "canary_rows": np.zeros((4, 1)), "canary_labels": np.zeros(4)}
    score = learners.PublicValidation(np.zeros((1, 1)), np.zeros(1))
    stopping = learners.EarlyStopping(stops=[1, 2], delta=1e-5, score=score, rule=never, spender=Unspent())
    choose = {"candidate": never}
    quantile = {"value": 0.0, "q": 0.5, "rate": 1, "domain_size": 4}
    ranks = {"sample_rank": 0.375, "rank": 0.25}
    intervals = {"sample": (0.4, 0.6), "population": (0.25, 0.75), "failure_probability": 0.05}
    two = {"training": BASE, "validation": BASE}
    box = dict.fromkeys(("dimensions", "domain_size", "slice_size", "consumed"), 1)
    box |= dict.fromkeys(("failure_probability", "rate", "slice_epsilon", "count_epsilon", "least_count"), 0.5)
    tuned = {"space": {"x": Uniform(0, 1)}, "repetitions": LAW}
    store = {"payload_bytes": 100, "declare_score": False, "constant_runs": False, "fingerprint": "", "resume": False}
    by_function = {"repetitions": LAW, "epsilon": 1.0, "delta": 1e-6}
    return {
        "accounting.adaptive_best_of": (
            a.adaptive_best_of,
            {"repetitions": LAW, "lower_ratio": 0.5, "upper_ratio": 2.0},
        ),
        "accounting.best_of": (best_of, {"repetitions": LAW}),
        "accounting.calibrate": (a.calibrate, {"epsilon": 1.0, "delta": 1e-6}),
        "accounting.conditional_sampling": (conditional_sampling, {"floor": 0.1}),
        "accounting.gated": (gated, {"test_epsilon": 0.1, "test_shift": 0.01, "train_shift": 0.005}),
        "accounting.iterative": (iterative, {"steps": [BASE] * 2, "stops": [1, 2], "delta": 1e-5, "check": None}),
        "accounting.mixture": (a.mixture, {}),
        "accounting.plan": (a.plan, {"delta": 1e-6, "epsilon": 2.0, "max_runs": 4}),
        "accounting.plan_subset": (a.plan_subset, {**by_function, "sampling_rates": (0.2,)}),
        "accounting.threshold_stopping": (a.threshold_stopping, {"stop_probability": 0.1}),
        "accounting.tune_on_subset": (a.tune_on_subset, {"search": BASE, "final": BASE, "sampling_rate": 0.1}),
        "adaptive.certifies": (certifies, {**ranks, "failure_probability": 0.05}),
        "adaptive.certifies_interval": (certifies_interval, intervals),
        "adaptive.trade_off_bound": (trade_off_bound, {"probability": 0.5}),
        "adaptive.transfer_bound": (transfer_bound, ranks),
        "audit.FiniteSubject": (audit.FiniteSubject, {"name": "s", "data": {0: 1.0}, "neighbour": {0: 1.0}}),
        "audit.OneRunAudit": (audit.OneRunAudit, {**one_run, "name": "s", "inside": 1, "outside": 1}),
        "audit.Subject": (audit.Subject, {"name": "s", "draw": never}),
        "audit.audit_guesses": (audit.audit_guesses, {"guesses": [1, -1], "included": [True, False]}),
        "audit.audit_outputs": (audit.audit_outputs, {"data": np.zeros(9), "neighbour": np.zeros(9)}),
        "audit.command_subject": (
            audit.command_subject,
            {"command": ["true"], "data": tmp_path / "a", "neighbour": tmp_path / "b"},
        ),
        "audit.function_subject": (audit.function_subject, {"function": never, "data": [1], "neighbour": []}),
        "integrations.optuna.tune": (
            importlib.import_module("dpselect.integrations.optuna").tune,
            {"objective": never, "direction": "maximize", "repetitions": LAW, "ledger": Unspent()},
        ),
        "integrations.optuna.price.price_study": (
            importlib.import_module("dpselect.integrations.optuna.price").price_study,
            {"study": past_study()},
        ),
        "integrations.sklearn.PrivateSearchCV": (search_cv, {}),
        "learners.EarlyStopping.full_guarantee": (stopping.full_guarantee, {}),
        "learners.EarlyStopping.guarantee": (stopping.guarantee, {}),
        "learners.EarlyStopping.open": (stopping.open, {}),
        "learners.GatedRelease": (
            GatedRelease,
            {"max_error": 0.1, "test_epsilon": 0.1, "test_shift": 0.01},
        ),
        "ledger.Budget.reserve": (budget.reserve, {"label": "x"}),
        "ledger.Ledger.create_budget": (
            ledger.create_budget,
            {"name": "n", "epsilon": 1, "delta": 1e-6, "accounting": "pld"},
        ),
        "ledger.PricedBudget.reserve": (budget.at(delta=1e-6).reserve, {"label": "x", "identifier": "i"}),
        "mechanisms.GradualRelease": (mechanisms.GradualRelease, {"level": never, "replayable": False}),
        "ordered.QuantileRelease": (QuantileRelease, quantile),
        "ordered.QuantilesRelease": (QuantilesRelease, {"value": [], "plan": None, "domain_size": 4}),
        "ordered.RectanglePlan": (ordered.RectanglePlan, box),
        "ordered.slices.ReorderSliceCompute": (
            ReorderSliceCompute,
            {"rows": [1, 2], "slice_epsilon": 0.05, "computation": BASE, "swap": None, "spender": Unspent()},
        ),
        "ordered.slices.SlicePrice": (
            SlicePrice,
            {"slice_epsilon": 0.05, "insertion": BASE, "slices": 4},
        ),
        "privacy.OutputGuarantee": (privacy.OutputGuarantee, {"cell": never, "epsilons": {True: 1.0}}),
        "privacy.Payment": (Payment, {"spender": Unspent(), "identifier": "i"}),
        "privacy.Payment.open": (Payment.open, {"spender": Unspent(), "label": "x"}),
        "privacy.paid": (privacy.paid, {"run": never, "spender": Unspent(), "label": "x"}),
        "privacy.Release": (privacy.Release, {"value": None}),
        "privacy.compose": (compose, {}),
        "privacy.output.calculus.coarsen": (calculus.coarsen, {"merge": bool}),
        "privacy.output.calculus.first_answer": (calculus.first_answer, {"none": True}),
        "privacy.output.calculus.mixture": (
            lambda branches: calculus.mixture({"a": (0.5, GATE), "b": (0.5, branches)}),
            {},
        ),
        "privacy.output.calculus.parallel": (calculus.parallel, {"first": GATE, "second": GATE}),
        "privacy.output.calculus.pointwise_minimum": (calculus.pointwise_minimum, {}),
        "privacy.output.filter.OutputFilter.start": (OutputFilter(additive(epsilon=1)).start, {}),
        "privacy.output.oracle.satisfies": (
            importlib.import_module("dpselect.privacy.output.oracle").satisfies,
            {"pairs": []},
        ),
        "privacy.worst_of": (privacy.worst_of, {}),
        "report.search_facts": (search_facts, {"parts": [BASE], "search": BASE, "law": LAW, "delta": 1e-6}),
        "selection.PercentileSparseVector": (selection.PercentileSparseVector, {"epsilon": 1.0}),
        "selection.PrivateCandidate": (selection.PrivateCandidate, {"run": never}),
        "selection.SampledSparseVector": (
            selection.SampledSparseVector,
            {"statistic": ODDS, "epsilon": 1.0, "max_queries": 2},
        ),
        "selection.TwoSetGuarantee": (TwoSetGuarantee, {**two, "total": BASE}),
        "selection.TwoSetRelease": (TwoSetRelease, {**two, "value": None, "guarantee": BASE}),
        "selection.SelectBest": (selection.SelectBest, {"repetitions": Fixed(count=2)}),
        "selection.SelectAbove": (selection.SelectAbove, {"threshold": 0.5, "stop_probability": 0.1}),
        "selection.amplified": (selection.amplified, {"mean": 0.5, "margin": 0.1, "failure_probability": 0.1}),
        "selection.estimators.Scorer": (
            importlib.import_module("dpselect.selection.estimators").Scorer,
            {"score": never},
        ),
        "selection.estimators.Scorer.beside": (
            importlib.import_module("dpselect.selection.estimators").public_score(never).beside,
            {"disjoint_rows": False},
        ),
        "selection.estimators.estimator_candidate": (
            importlib.import_module("dpselect.selection.estimators").estimator_candidate,
            {
                "estimator": estimator(),
                "X": [[0.0]],
                "scorer": importlib.import_module("dpselect.selection.estimators").public_score(never),
            },
        ),
        "selection.SelectIncreasing": (selection.SelectIncreasing, {"repetitions": LAW}),
        "selection.ThresholdSearch": (
            selection.ThresholdSearch,
            {"thresholds": [0.5], "target": 0.5, "statistic": COUNT, "epsilon": 1.0},
        ),
        "selection.select_above": (selection.select_above, {**choose, "threshold": 0.5, "stop_probability": 0.1}),
        "selection.SelectAcceptable": (selection.SelectAcceptable, {"acceptable": never, "floor": 0.1}),
        "selection.select_best": (selection.select_best, {**choose, "repetitions": Fixed(count=2)}),
        "selection.SelectHyperparameters": (
            selection.SelectHyperparameters,
            {"candidates": 2, "repetitions": LAW, "validation_epsilon": 1.0},
        ),
        "selection.SelectWithDummies": (
            selection.SelectWithDummies,
            {"threshold": 0.5, "runs": 5, "gamma": 0.1},
        ),
        "selection.SelectWithoutThreshold.by_theorem": (
            selection.SelectWithoutThreshold.by_theorem,
            {"candidates": 2, "thresholds": 2, "epsilon": 1.0, "delta": 1e-6},
        ),
        "selection.two_set_guarantee": (
            selection.two_set_guarantee,
            {**two, "price": lambda base: base, "may_overlap": False},
        ),
        "tuning.TuneResult": (tuning.TuneResult, {"value": None, "params": None}),
        "tuning.check_store": (
            check_store,
            {**tuned, **store, "store": tmp_path / "store.db", "has_ledger": False},
        ),
        "tuning.SharedRelease": (tuning.SharedRelease, {"objective": never}),
        "tuning.TwoStageDesign": (partial(two_stages, never), {}),
        "tuning.tune": (tuning.tune, {**tuned, "objective": never, "ledger": Unspent()}),
    }


BOUNDS = {
    "accounting.adaptive_best_of": (None, "profile", "renyi", "pure", "composition"),
    "accounting.best_of": (None, "optimal", "renyi", "pure", "profile", "published"),
    "accounting.conditional_sampling": (None, "optimal", "published"),
    "accounting.iterative": ("optimal", "sum"),
    "accounting.threshold_stopping": ("optimal", "paper"),
}
"""Every value of `bound=`."""

FURTHER = (
    "integrations.optuna",
    "integrations.optuna.price",
    "integrations.sklearn",
    "privacy.output.calculus",
    "privacy.output.filter",
    "privacy.output.oracle",
    "selection.estimators",
)
"""Documented modules that are not on the face of their room."""

EXEMPT = {
    "privacy.ClaimSpender.reserve": "a protocol: Budget and PricedBudget are in the table",
    "privacy.Spender.reserve": "a protocol: Budget and PricedBudget are in the table",
    "integrations.optuna.price.StudyPrice": "a result, which nothing takes",
    "integrations.sklearn.SearchPlan": "a result, which nothing takes",
    "tuning.SearchRequest": "arguments of `tune` under their names, which checks them",
}
TAKES = re.compile(r"\b(Guarantee|OutputGuarantee|Steps|Base|Budgeted)\b")


def takers() -> list[tuple[str, str, str]]:
    """(name, parameter, annotation) of every public parameter that takes a guarantee."""
    rooms = [m.name for m in pkgutil.iter_modules(dpselect.__path__) if m.name not in ("testing", "cli", "errors")]
    found, seen = [], set()
    for place in (*rooms, *FURTHER):
        module = importlib.import_module(f"dpselect.{place}")
        for name in getattr(module, "__all__", ()):
            thing = getattr(module, name)
            if not callable(thing) or id(thing) in seen:
                continue
            seen.add(id(thing))
            parts = {f"{place}.{name}": thing}
            if inspect.isclass(thing):
                methods = ((k, getattr(v, "__func__", v)) for k, v in vars(thing).items() if not k.startswith("_"))
                parts |= {f"{place}.{name}.{k}": v for k, v in methods if inspect.isfunction(v)}
            for label, part in parts.items():
                try:
                    parameters = inspect.signature(part).parameters.values()
                except (TypeError, ValueError):
                    continue
                notes = [(p, str(p.annotation)) for p in parameters]
                found += [(label, p.name, note) for p, note in notes if TAKES.search(note)]
    return found


def offers(note: str) -> list[Any]:
    """The price itself, and inside of what the parameter takes."""
    found: list[Any] = [PRICE]
    if "Sequence" in note or "Steps" in note or "list[" in note or "tuple[" in note:
        found += [[PRICE], [BASE, PRICE]]
    if "Callable" in note or "Steps" in note or "Base" in note:
        found.append(lambda *_: PRICE)
    return found


TAKERS = [taker for taker in takers() if taker[0] not in EXEMPT]


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return table(tmp_path_factory.mktemp("prices"))


@pytest.mark.parametrize(("name", "parameter", "note"), TAKERS, ids=[f"{n}-{p}" for n, p, _ in TAKERS])
def test_no_public_callable_takes_a_realised_price(rows, name, parameter, note):
    assert name in rows, f"{name} takes a guarantee: give it a row in the table"
    call, given = rows[name]
    bounds = BOUNDS.get(name, (None,))
    for offered in offers(note):
        for bound in bounds:
            arguments = dict(given)
            if name in BOUNDS:
                arguments["bound"] = bound
            if parameter == "guarantees" and note == "Guarantee":  # *guarantees
                for position in ((offered,), (BASE, offered), (offered, BASE)):
                    with pytest.raises(PromiseError):
                        call(*position)
                continue
            arguments[parameter] = offered
            with pytest.raises(PromiseError) as refused:
                call(**arguments)
            assert "realised price" in str(refused.value) or not isinstance(offered, RealisedPrice)


# ---- what holds a price holds the promise beside it ----------------------------------------------------------------


def test_a_realised_price_is_no_guarantee_and_shows_what_it_is():
    assert not isinstance(PRICE, Guarantee)
    assert (PRICE.price, PRICE.delta, PRICE.cell, PRICE.adjacency) == (0.1, 0.0, True, Adjacency.ADD_OR_REMOVE_ONE)
    assert PRICE.terms == {"mechanism": "output", "epsilon": 0.1, "delta": 0.0}
    assert "realised price" in PRICE.theorem
    approximate = OutputGuarantee(cell=bool, epsilons={True: 0.1}, delta=1e-6).observed(True)
    assert approximate.epsilon(delta=1e-6) == approximate.epsilon(delta=1) == 0.1
    assert approximate.epsilon(delta=9e-7) == float("inf")
    with pytest.raises(ArgumentError, match="delta"):
        approximate.epsilon(delta=-1)
    assert "secret" not in repr(OutputGuarantee(cell=str, epsilons={"secret": 1.0}).observed("secret"))


def test_a_gated_release_promises_its_worst_case_whatever_outcome():
    gate = {"training": pure_dp(epsilon=1.0), "test_epsilon": 0.1, "test_shift": 0.001, "train_shift": 0.001}
    for error, price in ((0.9, 0.1), (-0.9, 1.0)):
        release = GatedRelease(max_error=0.1, **gate)(lambda random: "model", lambda model, e=error: e)
        assert release.guarantee.epsilon(delta=0) == 1.0
        assert release.realised.epsilon(delta=0) == pytest.approx(price, rel=2e-6)
        assert compose(release.guarantee, release.guarantee).epsilon(delta=0) == pytest.approx(2.0)


def test_a_gradual_release_has_both():
    release = LaplaceReduction(epsilons=[0.1, 1.0], sensitivity=1).open(0).until(lambda value: True)
    assert (release.realised.epsilon(delta=0), release.guarantee.epsilon(delta=0)) == (0.1, 1.0)


# ---- one adjacency, whenever a guarantee is named -------------------------------------------------------------------


def test_a_function_of_steps_keeps_one_adjacency():
    mixed = lambda n: pure_dp(epsilon=0.1 * n, adjacency="replace_one" if n == 2 else "add_or_remove_one")  # noqa: E731
    for bound in ("optimal", "sum"):
        with pytest.raises(AdjacencyError):
            iterative(mixed, stops=[2, 3], delta=1e-5, bound=bound)
        with pytest.raises(AdjacencyError):  # a single step has another adjacency than the work up to a stop
            iterative(mixed, stops=[2], delta=1e-5, bound=bound)
    with pytest.raises(AdjacencyError):
        iterative([BASE, pure_dp(epsilon=0.1, adjacency="replace_one")], stops=[1, 2], delta=1e-5)


def test_a_filter_keeps_one_adjacency():
    spent = OutputFilter(additive(epsilon=5))
    spent.start(GATE)
    spent.finish(None)
    with pytest.raises(AdjacencyError):
        spent.start(OutputGuarantee(cell=bool, epsilons={True: 0.1}, adjacency="replace_one"))
    spent.start(GATE)
