"""The contract of stores of a ledger, as tests to be run against a real database.

With pytest, subclass and say where an empty database is:

    class TestMyStore(LedgerContract):
        @pytest.fixture
        def where(self, tmp_path):
            return str(tmp_path / "budget.db")
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from fractions import Fraction
from typing import TypeVar

from dpselect.errors import AdjacencyError, ArgumentError, BudgetError, ClaimError
from dpselect.ledger import AlreadySettledError, InsufficientBudget, InteractionOpenError, Ledger, StaleRecordError
from dpselect.ledger.transfer import export_lines, import_lines
from dpselect.privacy import OutputGuarantee, gaussian, pure_dp
from dpselect.privacy.release import Receipt

__all__ = ["GATE", "LedgerContract", "refusal"]

GATE = OutputGuarantee(cell=lambda output: output is not None, epsilons={True: 1.0, False: 0.1}, delta=1e-8)
"""A gated release: a model costs 1, none 0.1."""


Refusal = TypeVar("Refusal", bound=BaseException)


def refusal(call: Callable[[], object], kind: type[Refusal]) -> Refusal:
    """The exception of this kind that the call raises."""
    try:
        call()
    except kind as error:
        return error
    raise AssertionError(f"{kind.__name__} was not raised")


class LedgerContract:
    """Tests of one store. `where` names an empty database (a fixture)."""

    def test_reserve_charges_the_worst_and_settle_refunds_epsilon_only(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
            with budget.reserve(GATE, label="one") as charge:
                assert budget.spent().epsilon == 1
                charge.settle(None)
            spent, left = budget.spent(), budget.remaining()
        assert (spent.epsilon, spent.delta) == (Fraction(1, 10), Fraction(1, 10**8))
        assert (left.epsilon, left.delta) == (Fraction(29, 10), Fraction(99, 10**8))

    def test_what_is_not_settled_stays_charged(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")

            def crash() -> None:
                with budget.reserve(GATE, label="one"):
                    raise KeyboardInterrupt

            refusal(crash, KeyboardInterrupt)
            assert budget.spent().epsilon == 1

    def test_it_is_all_there_when_opened_again(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            charge = ledger.create_budget("b", epsilon=3, delta="1e-6").reserve(GATE, label="one", identifier="x")
            identity = ledger.id
        with Ledger.open(where, create=False) as ledger:
            assert ledger.id == identity
            budget = ledger.budget("b")
            assert budget.spent().epsilon == 1
            assert budget.settle("x", cell=False).charged["epsilon"] == 0.1
            assert ledger.verify(charge)

    def test_an_overdraft_names_both_amounts_and_changes_nothing(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon="0.3")
            for _ in range(3):
                budget.reserve(pure_dp(epsilon=0.1), label="s")
            before = ledger.head()
            error = refusal(lambda: budget.reserve(pure_dp(epsilon=1e-300), label="s"), InsufficientBudget)
            assert isinstance(error, BudgetError)
            assert error.requested["epsilon"] == Fraction("1e-300")
            assert error.remaining["epsilon"] == 0
            assert ledger.head() == before
            budget.reserve(pure_dp(epsilon=0), label="free")
            assert ledger.verify()

    def test_identifiers_are_idempotent(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
            first = budget.reserve(GATE, label="one", identifier="x")
            assert budget.reserve(GATE, label="one", identifier="x") == first
            refusal(lambda: budget.reserve(GATE, label="two", identifier="x"), ArgumentError)
            refusal(lambda: budget.reserve(pure_dp(epsilon=1), label="one", identifier="x"), ArgumentError)
            settled = budget.settle("x", cell=True)
            assert budget.settle("x", cell=True) == settled
            refusal(lambda: budget.settle("x", cell=False), AlreadySettledError)
            refusal(lambda: budget.settle("x"), AlreadySettledError)
            # a second run under it would not be paid for
            refusal(lambda: budget.reserve(GATE, label="one", identifier="x"), AlreadySettledError)
            assert budget.spent().epsilon == 1

    def test_a_bound_reservation_is_settled_by_its_latest_claim_with_one_release(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3)

            def bound(binding: str, claim: str) -> Receipt:
                return budget.reserve(pure_dp(epsilon=1), label="s", identifier="x", binding=binding, claim=claim)

            bound("draws", "first")
            bound("draws", "second")
            assert budget.claim("x", binding="draws", claim="third") is None
            for claim in ("first", "second", "fourth"):
                refusal(lambda claim=claim: budget.settle("x", claim=claim, release="hash"), ClaimError)  # type: ignore[misc]
            refusal(lambda: bound("others", "fourth"), ClaimError)
            refusal(lambda: budget.claim("x", binding="others", claim="fourth"), ClaimError)
            refusal(lambda: budget.claim("y", binding="draws", claim="fourth"), ClaimError)
            receipt = budget.settle("x", claim="third", release="hash")
            assert budget.claim("x", binding="draws", claim="fifth") == "hash"
            assert budget.settle("x", claim="fifth", release="hash") == receipt
            refusal(lambda: budget.settle("x", claim="fifth", release="another"), ClaimError)
            refusal(lambda: bound("draws", "sixth"), ClaimError)
            assert budget.spent().epsilon == 1
            assert ledger.verify()

    def test_settling_wrongly_leaves_the_reservation(self, where: str) -> None:
        signs = OutputGuarantee(cell=lambda x: "up" if x > 0 else "odd", epsilons={"up": 0.5})
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3)
            charge = budget.reserve(signs, label="one", identifier="x")
            refusal(lambda: charge.settle(-1), ArgumentError)
            refusal(lambda: budget.settle("x", cell="odd"), ArgumentError)
            refusal(lambda: budget.settle("no one"), ArgumentError)
            assert budget.spent().epsilon == Fraction(1, 2)
            charge.settle(1)
            refusal(lambda: charge.settle(1), AlreadySettledError)

    def test_budgets_above_are_charged_in_the_same_step(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            above = ledger.create_budget("all", epsilon=1)
            one = ledger.create_budget("ann", epsilon="0.8", parent="all")
            two = ledger.create_budget("bob", epsilon="0.8", parent="all")
            one.reserve(pure_dp(epsilon=0.7), label="s")
            error = refusal(lambda: two.reserve(pure_dp(epsilon=0.4), label="s"), InsufficientBudget)
            assert (error.budget, error.remaining["epsilon"]) == ("all", Fraction(3, 10))
            assert two.spent().epsilon == 0
            assert two.remaining().epsilon == Fraction(3, 10)
            two.reserve(pure_dp(epsilon=0.3), label="s")
            assert above.remaining().epsilon == 0
            assert ledger.verify()

    def test_adjacencies_do_not_mix(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3)
            replaced = pure_dp(epsilon=1, adjacency="replace_one")
            refusal(lambda: budget.reserve(replaced, label="s"), AdjacencyError)
            refusal(lambda: ledger.create_budget("c", epsilon=1, parent="b", adjacency="replace_one"), AdjacencyError)
            assert budget.spent().epsilon == 0

    def test_an_open_interaction_keeps_others_out(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=9, delta="1e-6")
            below = ledger.create_budget("c", epsilon=9, delta="1e-6", parent="b")
            running = below.reserve(GATE, label="training")
            refusal(lambda: budget.reserve(GATE, label="sparse vector", interactive=True), InteractionOpenError)
            running.settle(None)
            budget.reserve(GATE, label="sparse vector", identifier="v", interactive=True)
            refusal(lambda: below.reserve(GATE, label="training"), InteractionOpenError)
            budget.settle("v", cell=False)
            below.reserve(GATE, label="training")
            assert ledger.verify()

    def test_filters_count_beside_sums(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=9, delta="1e-5")
            block = ledger.create_budget("g", epsilon=2, delta="1e-6", parent="b", accounting="renyi")
            assert budget.spent().epsilon == 2
            assert budget.spent().delta == Fraction(1, 10**6)
            count = 0
            while True:
                try:
                    block.reserve(gaussian(noise_multiplier=20), label="step")
                except InsufficientBudget:
                    break
                count += 1
            assert count > 30  # adding epsilons up at delta 1e-6 would end after nine
            assert budget.spent().epsilon == 2
            assert ledger.verify()

    def test_a_named_head_must_be_in_the_record(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
            receipt = budget.reserve(GATE, label="one")
            budget.reserve(GATE, label="two", after=receipt)
            budget.reserve(GATE, label="three", after=receipt.head)
            before = ledger.head()
            refusal(lambda: budget.reserve(GATE, label="four", after="ab" * 32), StaleRecordError)
            assert ledger.head() == before

    def test_export_and_import_keep_every_head(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3, delta="1e-6")
            budget.reserve(GATE, label="one").settle(None)
            lines = list(export_lines(ledger))
            heads = [head for _, head, _ in ledger.entries()]
            refusal(lambda: import_lines(lines, where), ArgumentError)
        assert len(lines) == len(heads) == 4

    def test_writing_while_reading(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=3)
            seen = [budget.reserve(pure_dp(epsilon=1), label="s").sequence for _ in ledger.entries()]
            assert seen == [3, 4]

    def test_threads_do_not_overspend(self, where: str) -> None:
        with Ledger.open(where) as ledger:
            budget = ledger.create_budget("b", epsilon=1)
            refused: list[Exception] = []

            def spend() -> None:
                for _ in range(4):
                    try:
                        budget.reserve(pure_dp(epsilon=0.1), label="s")
                    except InsufficientBudget as error:
                        refused.append(error)

            threads = [threading.Thread(target=spend) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(refused) == 6
            assert budget.remaining().epsilon == 0
            assert ledger.verify()
