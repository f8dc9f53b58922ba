"""What a ledger charges: prices by kind of budget, filters and sequences, parts, cells, budgets that are refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from dpselect.adaptive.means import AdaptiveMeans
from dpselect.errors import ArgumentError, BudgetError
from dpselect.ledger import AlreadySettledError, InsufficientBudget, InteractionOpenError, Ledger
from dpselect.ledger.refusals import AdaptiveReservationError
from dpselect.mechanisms import InterquantileRange, SparseVector
from dpselect.privacy import Guarantee, OutputGuarantee, Spender, approximate_dp, compose, gaussian, pure_dp
from dpselect.repetitions import Fixed, Harmonic
from dpselect.testing.ledger_contract import GATE
from dpselect.tuning import Categorical, tune

ASSETS = Path(__file__).parent / "assets"


def test_it_is_a_spender_and_pays_for_a_search(path):
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
        assert isinstance(budget, Spender)
        assert isinstance(budget.at(delta="1e-6"), Spender)
        space = {"x": Categorical([1, 2])}
        result = tune(
            lambda params, random: (1.0, params["x"]),
            space=space,
            base=pure_dp(epsilon=0.5),
            repetitions=Harmonic(limit=3),
            ledger=budget,
        )
        assert result.receipt.charged["epsilon"] == pytest.approx(float(budget.spent().epsilon))
        assert budget.spent().delta == 0
        assert ledger.verify(result.receipt)
        tune(
            lambda params, random: (1.0, params["x"]),
            space=space,
            base=gaussian(noise_multiplier=9),
            repetitions=Harmonic(limit=3),
            ledger=budget.at(delta="1e-6"),
        )
        assert budget.spent().delta == Fraction(1, 10**6)


def test_a_pure_guarantee_is_priced_at_the_delta_that_is_given_and_keeps_its_own_where_one_is_asked_for(path):
    step = pure_dp(epsilon=1)
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=3, delta="0.2")
        budget.at(delta="0.1").reserve(step, label="s", identifier="at")
        assert budget.spent().delta == Fraction(1, 10)
        assert 0.8528 < budget.spent().epsilon < 0.853  # log(e - .1 (1 + e))
        budget.asked_at(delta="0.1").reserve(step, label="s", identifier="asked")
        assert budget.spent().delta == Fraction(1, 10)
        assert 1.8528 < budget.spent().epsilon < 1.853


def test_deltas_of_guarantees_without_an_epsilon_of_their_own(path):
    step = gaussian(noise_multiplier=9)
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=3, delta="1e-6", delta_each="1e-7")
        budget.reserve(step, label="s")
        assert budget.spent().delta == Fraction(1, 10**7)
        assert budget.spent().epsilon >= Fraction(step.epsilon(1e-7))
        budget.reserve(step, label="s", delta="2e-7")
        assert budget.spent().delta == Fraction(3, 10**7)
        budget.reserve(approximate_dp(epsilon=0.1, delta=1e-8), label="s")
        assert budget.spent().delta == Fraction(31, 10**8)
        pure = ledger.create_budget("p", epsilon=3)
        with pytest.raises(BudgetError, match="no finite epsilon"):
            pure.reserve(step, label="s")
        with pytest.raises(ArgumentError):
            budget.reserve(GATE, label="s", delta="1e-7")


def test_a_sequence_fixed_in_advance(path):
    """Tighter than any filter, and only it: the natural filter on loss distributions is not valid."""
    steps = [gaussian(noise_multiplier=5), pure_dp(epsilon=0.2), gaussian(noise_multiplier=5)]
    with Ledger.open(path) as ledger:
        exact = compose(*steps).epsilon(1e-6)
        budget = ledger.create_budget("b", epsilon=2, delta="1e-6", accounting="pld", sequence=steps)
        assert Fraction(exact) <= budget.spent().epsilon < Fraction(exact) * Fraction(1000001, 1000000)
        budget.reserve(steps[0], label="s")
        for other in (steps[0], pure_dp(epsilon=0.1)):
            with pytest.raises(AdaptiveReservationError, match="number 2"):
                budget.reserve(other, label="s")
        before = budget.spent()
        budget.reserve(steps[1], label="s")
        budget.reserve(steps[2], label="s")
        assert budget.spent().epsilon == before.epsilon
        with pytest.raises(InsufficientBudget):
            budget.reserve(steps[2], label="s")
        assert ledger.verify()
        with pytest.raises(InsufficientBudget):
            ledger.create_budget("c", epsilon=1, delta="1e-6", accounting="pld", sequence=steps * 9)
        with pytest.raises(ArgumentError, match="no budgets below"):
            ledger.create_budget("e", epsilon=1, delta="1e-6", accounting="pld", sequence=steps[:1], parent="b")
        with pytest.raises(ArgumentError, match="sequence"):
            ledger.create_budget("d", epsilon=1, delta="1e-6", accounting="pld")


def test_cells_are_told_as_they_were_declared(path):
    import numpy as np

    gate = OutputGuarantee(cell=lambda x: x > 0, epsilons={True: 1.0, False: 0.1})
    pairs = OutputGuarantee(cell=lambda x: x, epsilons=lambda x: 0.1 * x[0], supremum=0.5)
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=3)
        budget.reserve(gate, label="s").settle(np.float64(-1.0))
        charge = budget.reserve(pairs, label="s", identifier="p")
        with pytest.raises(ArgumentError):
            budget.settle("p", cell=(2, 0))  # prices by a function are not in the record
        charge.settle((2, 0))
        assert budget.spent().epsilon == Fraction(3, 10)
        assert [body["cell"] for _, _, body in ledger.entries() if body["kind"] == "settle"] == ["false", "[2,0]"]
        odd = OutputGuarantee(cell=lambda x: x, epsilons={1.5: 1.0})
        with pytest.raises(ArgumentError, match="cell"):
            budget.reserve(odd, label="s")
        assert ledger.verify()


def test_prices_by_a_function_are_settled_after_a_crash(path):
    session = SparseVector(epsilon_threshold=0.1, epsilon_queries=0.4, max_positives=4)
    asked = {"label": "session", "identifier": "s", "interactive": True}
    with Ledger.open(path) as ledger:
        ledger.create_budget("rows", epsilon=1).reserve(session.refined_guarantee, **asked)
    with Ledger.open(path) as ledger:  # another process, which still has the answers
        budget = ledger.budget("rows")
        with pytest.raises(InteractionOpenError, match="reservation 's' of budget 'rows'"):
            budget.reserve(pure_dp(epsilon=0.1), label="next")
        with pytest.raises(ArgumentError, match="reserve again under this identifier"):
            budget.settle("s", cell=(1, 1))
        reserved = budget.spent().epsilon
        again = budget.reserve(session.refined_guarantee, **asked)
        assert budget.spent().epsilon == reserved
        again.settle([True, False])
        assert budget.spent().epsilon == Fraction(1, 10)
        assert ledger.verify()
        with pytest.raises(AlreadySettledError, match="no other run"):
            budget.reserve(session.refined_guarantee, **asked)


def test_sessions_under_one_label_pay_each(path):
    """An identifier made of a label would find the first session's reservation, and the second would be free."""
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("rows", epsilon=9, delta="1e-5", adjacency="replace_one", delta_each="1e-6")
        spent = []
        for _ in range(2):
            session = AdaptiveMeans(np.zeros(20_000), queries=10, failure_probability=0.1, spender=budget)
            session.mean(lambda rows: rows, lower=0, upper=1)
            spent.append(budget.spent().epsilon)
    assert spent[1] == 2 * spent[0] > 0


def test_parameters_add_up_as_they_are_typed(path):
    """Not as doubles do: 0.1 + 0.4 fit 0.5, and three tests at 0.2 leave 0.4 of 1."""
    with Ledger.open(path) as ledger:
        session = SparseVector(epsilon_threshold=0.1, epsilon_queries=0.4, max_positives=4)
        ledger.create_budget("session", epsilon="0.5").reserve(session.guarantee, label="session")
        clinic = ledger.create_budget("clinic", epsilon=1, delta="1e-5", adjacency="replace_one")
        spread = InterquantileRange(granularity=1.0, epsilon_test=0.2, epsilon_answer=0.2, delta=1e-6)
        clinic.reserve(spread.guarantee, label="spread").settle((2, 1.0))
        assert clinic.remaining().epsilon == Fraction(2, 5)


def test_bad_arguments_of_reserve(path):
    with Ledger.open(path) as ledger:
        budget = ledger.create_budget("b", epsilon=1)
        for wrong in ({"label": ""}, {"label": "s", "identifier": ""}, {"label": "s", "delta": -1}):
            with pytest.raises(ArgumentError):
                budget.reserve(pure_dp(epsilon=0.1), **wrong)
        with pytest.raises(TypeError):
            budget.reserve(pure_dp(epsilon=0.1), label=3)
        with pytest.raises(ArgumentError, match="already"):
            ledger.create_budget("b", epsilon=1)
        with pytest.raises(ArgumentError, match="no one"):
            ledger.budget("no one")
        assert budget.spent().epsilon == 0


def test_nothing_is_priced_at_a_larger_delta_than_is_booked(path, monkeypatch):
    """A third has no double; the one nearest to it is below, the one nearest to two thirds above."""
    price, seen = Guarantee.epsilon, []
    monkeypatch.setattr(Guarantee, "epsilon", lambda self, delta: seen.append(delta) or price(self, delta))
    with Ledger.open(path) as ledger:
        for delta in (Fraction(1, 3), Fraction(2, 3)):
            seen.clear()
            ledger.create_budget(str(delta), epsilon=9, delta=delta).reserve(gaussian(noise_multiplier=5.0), label="s")
            assert seen
            assert all(Fraction(asked) <= delta for asked in seen)


# -- the delta that a search is asked for


def test_a_search_is_charged_the_delta_that_its_caller_asks_for(path):
    """Not all of the budget's: what has an epsilon of its own keeps it, and a filter is priced as a whole."""
    ledger = Ledger.open(path)
    budget = ledger.create_budget("b", epsilon=4, delta="1e-5")
    asked = {"space": {"x": Categorical([1])}, "repetitions": Fixed(count=1), "epsilon": 1.0, "delta": 1e-6}

    def run(ledger, base):
        tune(lambda params, random: (0.0, None), base=base, ledger=ledger, rehearse=False, **asked)

    for number in range(1, 4):
        run(budget, gaussian(noise_multiplier=5.0))
        assert budget.spent().delta == number * Fraction(1, 10**6)
    assert budget.spent().epsilon <= 3
    spent = budget.spent()
    run(budget, pure_dp(epsilon=0.5))
    assert budget.spent().delta == spent.delta
    filtered = ledger.create_budget("f", epsilon=4, delta="1e-5", accounting="renyi")
    run(filtered, gaussian(noise_multiplier=5.0))
    assert filtered.asked_at(delta=1e-6) is filtered


def test_a_search_of_scikit_learn_is_charged_its_own_delta(path):
    pytest.importorskip("sklearn")
    from dpselect.integrations.sklearn import PrivateSearchCV
    from dpselect.learners import DPSGDClassifier

    budget = Ledger.open(path).create_budget("b", epsilon=4, delta="1e-5")
    X = np.array([[0.5, -0.5], [-0.5, 0.5]] * 20)
    PrivateSearchCV(
        DPSGDClassifier(steps=2, nominal_rows=40),
        {"learning_rate": [0.5, 1.0]},
        epsilon=1.0,
        delta=1e-6,
        ledger=budget,
        nominal_rows=40,
        rehearse=False,
    ).fit(X, [0, 1] * 20)
    assert budget.spent().delta == Fraction(1, 10**6)
