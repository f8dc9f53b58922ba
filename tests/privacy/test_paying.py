"""`paid` and `Payment`: reserved before the run, settled once after it, never given back by an exception."""

from __future__ import annotations

import inspect
from fractions import Fraction

import pytest

from dpselect.errors import ArgumentError, BudgetError, PromiseError, StartingProcessError
from dpselect.ledger import Ledger
from dpselect.mechanisms import SparseVector
from dpselect.privacy import OutputGuarantee, Release, paid, pure_dp
from dpselect.privacy.paying import Payment, paid as paid_function
from dpselect.privacy.release import Receipt

GATE = OutputGuarantee(cell=lambda output: output is not None, epsilons={True: 1.0, False: 0.25})


class Recorder:
    """Writes down what is asked of it, in order."""

    def __init__(self):
        self.events = []

    def reserve(self, guarantee, *, label, identifier):
        self.events.append(("reserve", guarantee, label, identifier))
        return Receipt(account="test", identifier=identifier, charged={})

    def settle(self, identifier, *, cell=None):
        self.events.append(("settle", identifier, cell))
        return Receipt(account="test", identifier=identifier, charged={"epsilon": 0.5})


@pytest.fixture
def budget(tmp_path):
    return Ledger.open(tmp_path / "b.db").create_budget("rows", epsilon=3, delta=0)


def test_reserved_then_run_then_settled():
    spender, price = Recorder(), pure_dp(epsilon=0.5)
    release = paid(lambda: spender.events.append("run") or 7, price, spender=spender, label="seven")
    (_, guarantee, label, identifier), ran, settled = spender.events
    assert (guarantee, label, ran, settled) == (price, "seven", "run", ("settle", identifier, None))
    assert isinstance(release, Release)
    assert (release.value, release.guarantee, release.realised) == (7, price, None)
    assert release.receipt.identifier == identifier
    assert release.receipt.charged == {"epsilon": 0.5}


def test_an_output_is_settled_at_its_price(budget):
    release = paid(lambda: None, GATE, spender=budget, label="a gate")
    assert release.guarantee.epsilon(delta=0) == 1.0
    assert release.realised.epsilon(delta=0) == 0.25
    assert release.receipt.charged["epsilon"] == 0.25
    assert budget.spent().epsilon == Fraction(1, 4)
    assert release._repr_html_().count("realised epsilon") == 1
    assert not Release(value=1, guarantee=pure_dp(epsilon=1.0)).replayable


def test_prices_by_a_function_are_settled_at_what_outcome(budget):
    levels = OutputGuarantee(cell=len, epsilons=lambda cell: cell / 4, supremum=1.0)
    assert paid(lambda: "ab", levels, spender=budget, label="levels").receipt.charged["epsilon"] == 0.5
    assert budget.spent().epsilon == Fraction(1, 2)


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_an_exception_leaves_the_whole_price_charged(budget, error):
    def run():
        raise error

    with pytest.raises(error):
        paid(run, GATE, spender=budget, label="a gate")
    assert budget.spent().epsilon == 1


def test_nothing_runs_that_the_budget_does_not_allow(budget):
    ran = []
    with pytest.raises(BudgetError):
        paid(lambda: ran.append(1), pure_dp(epsilon=4.0), spender=budget, label="too much")
    assert not ran
    assert budget.spent().epsilon == 0


def test_each_run_is_charged():
    spender = Recorder()
    for _ in range(3):
        paid(lambda: 1, pure_dp(epsilon=0.5), spender=spender, label="one")
    assert len({event[3] for event in spender.events if event[0] == "reserve"}) == 3


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"label": ""}, ArgumentError),
        ({"label": "a\nb"}, ArgumentError),
        ({"label": 3}, TypeError),
        ({"spender": "a budget"}, TypeError),
        ({"guarantee": GATE.observed(None)}, PromiseError),
        ({"guarantee": 1.0}, PromiseError),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_charged(change, error):
    spender, ran = Recorder(), []
    options = {"guarantee": GATE, "spender": spender, "label": "a gate", **change}
    with pytest.raises(error):
        paid(lambda: ran.append(1), **options)
    assert not ran
    assert not spender.events


def test_without_a_spender_nothing_is_paid():
    release = paid(lambda: 7, GATE, spender=None, label="a gate", replayable=True)
    assert (release.value, release.receipt, release.replayable) == (7, None, True)


def test_a_process_that_is_being_started_pays_for_nothing(monkeypatch):
    def refuse(what):
        raise StartingProcessError(what)

    monkeypatch.setattr(inspect.getmodule(paid_function), "refuse_while_starting", refuse)
    spender = Recorder()
    with pytest.raises(StartingProcessError):
        paid(lambda: 7, GATE, spender=spender, label="a gate")
    assert not spender.events


def test_a_payment_of_a_run_that_is_repeated_is_charged_once(budget):
    for _ in range(2):
        payment = Payment.open(GATE, spender=budget, label="a study", identifier="study-1")
    assert budget.spent().epsilon == 1
    assert payment.close(None) == payment.close(None)
    assert budget.spent().epsilon == Fraction(1, 4)
    # a process that comes later knows the identifier alone
    assert Payment(budget, GATE, "study-1").close(None).charged["epsilon"] == 0.25


def session(spender):
    return SparseVector(epsilon_threshold=1.0, epsilon_queries=2.0, max_positives=1, spender=spender, label="questions")


def test_a_session_is_reserved_when_made_and_settled_once_when_closed():
    spender = Recorder()
    with session(spender) as asked:
        assert [event[0] for event in spender.events] == ["reserve"]
        assert asked.receipt.charged == {}
    assert [event[0] for event in spender.events] == ["reserve", "settle"]
    assert asked.receipt.charged == {"epsilon": 0.5}
    assert asked.close() is asked.receipt
    assert len(spender.events) == 2
    with pytest.raises(BudgetError, match="closed"):
        asked.above(1.0, threshold=0.0)


def test_a_session_that_ends_in_an_exception_stays_charged_in_full(budget):
    with pytest.raises(ZeroDivisionError), session(budget) as asked:
        1 / 0
    assert budget.spent().epsilon == 3
    asked.close()
    assert budget.spent().epsilon == 1  # of no positive answer


def test_a_session_without_a_spender_has_no_receipt():
    with session(None) as asked:
        asked.above(-1e9, threshold=0.0)
    assert (asked.receipt, asked.close()) == (None, None)
