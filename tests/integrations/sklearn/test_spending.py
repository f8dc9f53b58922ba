"""Spenders of a search: the whole is reserved in place of a part, and a pickled copy spends nothing."""

import pickle

import pytest

from dpselect.errors import BudgetError
from dpselect.integrations.sklearn.spending import LedgerNotPickled, whole_price
from dpselect.ledger import Ledger
from dpselect.privacy import ClaimSpender, pure_dp

PART, WHOLE = pure_dp(epsilon=0.5), pure_dp(epsilon=1.5)


class Plain:
    """A spender without claims that notes its calls."""

    def __init__(self):
        self.calls = []

    def reserve(self, guarantee, *, label, identifier):
        self.calls.append((guarantee, label, identifier))
        return "reserved"

    def settle(self, identifier, *, cell=None):
        self.calls.append((identifier, cell))
        return "settled"


def test_a_plain_spender_reserves_the_whole_and_settles_as_asked():
    plain = Plain()
    spender = whole_price(plain, WHOLE)
    assert not isinstance(spender, ClaimSpender)
    assert spender.reserve(PART, label="search", identifier="a") == "reserved"
    assert spender.settle("a", cell="none") == "settled"
    assert plain.calls == [(WHOLE, "search", "a"), ("a", "none")]


def test_a_budget_reserves_the_whole_once_and_keeps_its_claims(tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=2, delta=0)
    spender = whole_price(budget, WHOLE)
    assert isinstance(spender, ClaimSpender)
    spender.reserve(PART, label="search", identifier="a")
    assert float(budget.spent().epsilon) == 1.5
    spender.settle("a")
    assert float(budget.spent().epsilon) == 1.5
    with pytest.raises(BudgetError):
        spender.reserve(PART, label="search", identifier="b")


def test_a_pickled_copy_refuses_to_reserve_and_to_settle():
    copied = pickle.loads(pickle.dumps(LedgerNotPickled()))
    for call in (copied.reserve, copied.settle):
        with pytest.raises(BudgetError, match="its ledger stayed behind"):
            call(PART, label="search", identifier="a")
