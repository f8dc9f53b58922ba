"""The one-file budget: exact sums, idempotent reservations, durable before return."""

from __future__ import annotations

import math
import stat
import threading
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, StudyError
from dpselect.privacy import Guarantee, OutputGuarantee, Spender, approximate_dp, gaussian, pure_dp
from dpselect.storage import durable
from dpselect.tuning import FileSpender


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.db"


def test_it_is_a_spender(path):
    assert isinstance(FileSpender(path, epsilon=1, delta=0), Spender)


def test_reserve_and_settle(path):
    spender = FileSpender(path, epsilon=3, delta="1e-5")
    receipt = spender.reserve(approximate_dp(epsilon=2.0, delta=1e-5), label="s", identifier="one")
    assert receipt.charged == {"epsilon": 2.0, "delta": 1e-5}
    assert spender.settle("one") == receipt == spender.settle("one")
    assert FileSpender(path, epsilon=3, delta="1e-5").spent() == (Fraction(2), Fraction("1e-5"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_reservation_is_charged_once_per_identifier(path):
    spender = FileSpender(path, epsilon=1, delta=0)
    for _ in range(3):
        spender.reserve(pure_dp(epsilon=1.0), label="s", identifier="one")
    assert spender.spent() == (1, 0)
    with pytest.raises(ArgumentError, match="one"):
        spender.reserve(pure_dp(epsilon=0.5), label="s", identifier="one")


def test_a_settled_reservation_pays_for_no_other_run(path):
    spender = FileSpender(path, epsilon=1, delta=0)
    spender.reserve(pure_dp(epsilon=1.0), label="s", identifier="one")
    spender.settle("one")
    with pytest.raises(ArgumentError, match="settled"):
        spender.reserve(pure_dp(epsilon=1.0), label="s", identifier="one")


def test_never_above_the_budget(path):
    spender = FileSpender(path, epsilon=1, delta=0)
    for name in "ab":
        spender.reserve(pure_dp(epsilon=0.5), label="s", identifier=name)
    with pytest.raises(BudgetError):
        spender.reserve(pure_dp(epsilon=1e-300), label="s", identifier="c")
    assert spender.spent() == (1, 0)


def test_sums_are_exact(path):
    """Of three doubles 0.1 the sum is above 0.3, and there is no room for a hair besides a full budget."""
    spender = FileSpender(path, epsilon="0.75", delta=0)
    for name in "abc":
        spender.reserve(pure_dp(epsilon=0.25), label="s", identifier=name)
    assert spender.spent() == (Fraction(3, 4), 0)
    with pytest.raises(BudgetError):
        spender.reserve(pure_dp(epsilon=1e-300), label="s", identifier="d")
    other = FileSpender(path.with_name("other.db"), epsilon=0.3, delta=0)
    for name in "ab":
        other.reserve(pure_dp(epsilon=0.1), label="s", identifier=name)
    with pytest.raises(BudgetError):
        other.reserve(pure_dp(epsilon=0.1), label="s", identifier="c")


@given(st.floats(min_value=5e-324, max_value=1e6), st.floats(min_value=5e-324, max_value=0.1))
@settings(max_examples=20)
def test_no_charge_is_below_its_price_for_any_double(tmp_path_factory, epsilon, delta):
    """The shortest decimal of a double is below it half of the time; a budget of the same double fits all the same."""
    path = tmp_path_factory.mktemp("spender") / "budget.db"
    spender = FileSpender(path, epsilon=epsilon, delta=delta)
    step = approximate_dp(epsilon=epsilon, delta=delta)
    spender.reserve(step, label="s", identifier="a")
    for spent, price in zip(spender.spent(), (step.epsilon(delta), delta), strict=True):
        assert Fraction(price) <= spent == max(Fraction(price), Fraction(repr(price)))


def test_a_charge_is_never_priced_at_a_larger_delta_than_is_booked(path, monkeypatch):
    """A third has no double; the one nearest to it is below, the one nearest to two thirds above."""
    price, seen = Guarantee.epsilon, []
    monkeypatch.setattr(Guarantee, "epsilon", lambda self, delta: seen.append(delta) or price(self, delta))
    for delta in (Fraction(1, 3), Fraction(2, 3)):
        seen.clear()
        spender = FileSpender(path.with_name(str(delta.numerator)), epsilon=9, delta=delta)
        spender.reserve(gaussian(noise_multiplier=5.0), label="s", identifier="a")
        assert seen
        assert all(Fraction(asked) <= delta for asked in seen)


def test_delta_adds_up_too(path):
    spender = FileSpender(path, epsilon=100, delta="2e-6", delta_each="1e-6")
    for name in "ab":
        spender.reserve(gaussian(noise_multiplier=5.0), label="s", identifier=name)
    with pytest.raises(BudgetError):
        spender.reserve(gaussian(noise_multiplier=5.0), label="s", identifier="c")


def test_an_output_guarantee_is_charged_at_its_worst(path):
    guarantee = OutputGuarantee(cell=bool, epsilons={True: 1.0, False: 0.25})
    spender = FileSpender(path, epsilon=1, delta=0)
    assert spender.reserve(guarantee, label="s", identifier="a").charged["epsilon"] == 1.0
    assert spender.settle("a", cell=False).charged["epsilon"] == 1.0


def test_what_has_no_finite_price_is_refused(path):
    with pytest.raises(BudgetError):
        FileSpender(path, epsilon=1, delta=0).reserve(gaussian(noise_multiplier=9.0), label="s", identifier="a")


def test_adjacencies_do_not_mix(path):
    spender = FileSpender(path, epsilon=2, delta=0)
    spender.reserve(pure_dp(epsilon=1.0), label="s", identifier="a")
    with pytest.raises(AdjacencyError):
        spender.reserve(pure_dp(epsilon=1.0, adjacency="replace_one"), label="s", identifier="b")


def test_durable_before_return(path, monkeypatch):
    spender = FileSpender(path, epsilon=1, delta=0)
    commits = []
    real = durable.commit

    def commit(connection):
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
        real(connection)
        commits.append(1)

    monkeypatch.setattr(durable, "commit", commit)
    spender.reserve(pure_dp(epsilon=1.0), label="s", identifier="a")
    assert commits == [1]


def test_two_at_once_do_not_overspend(path):
    refused = []

    def reserve(name):
        try:
            FileSpender(path, epsilon=2, delta=0).reserve(pure_dp(epsilon=1.0), label="s", identifier=name)
        except BudgetError:
            refused.append(name)

    threads = [threading.Thread(target=reserve, args=(str(n),)) for n in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert FileSpender(path, epsilon=2, delta=0).spent() == (2, 0)


@pytest.mark.parametrize(
    "budget",
    [
        {"epsilon": 0, "delta": 0},
        {"epsilon": -1, "delta": 0},
        {"epsilon": math.nan, "delta": 0},
        {"epsilon": math.inf, "delta": 0},
        {"epsilon": "much", "delta": 0},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 0, "delta_each": 1e-9},
    ],
)
def test_bad_budgets(path, budget):
    with pytest.raises(ArgumentError):
        FileSpender(path, **budget)


def test_unknown_identifier_and_bad_files(path, tmp_path):
    with pytest.raises(ArgumentError, match="nobody"):
        FileSpender(path, epsilon=1, delta=0).settle("nobody")
    path.write_bytes(b"not a database" * 100)
    with pytest.raises(StudyError):
        FileSpender(path, epsilon=1, delta=0).spent()
    with pytest.raises(StudyError):
        FileSpender(tmp_path / "missing" / "b.db", epsilon=1, delta=0).spent()


@pytest.mark.parametrize("wrong", ["", "a\0b", "\ud800", "line\nbreak", "x" * 201, "x" * 10**6, "\x1b[31m"])
def test_names_that_cannot_be_stored_or_shown(path, wrong):
    spender = FileSpender(path, epsilon=1, delta=0)
    calls = [
        lambda: spender.reserve(pure_dp(epsilon=0.5), label=wrong, identifier="a"),
        lambda: spender.reserve(pure_dp(epsilon=0.5), label="s", identifier=wrong),
        lambda: spender.settle(wrong),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match="printable characters") as caught:
            call()
        assert len(str(caught.value)) < 400
    assert not path.exists()
