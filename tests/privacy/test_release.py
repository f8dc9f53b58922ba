"""A release after post-processing: its value, its price, and what the oracle says of both."""

from __future__ import annotations

from dataclasses import replace
from operator import itemgetter

import pytest

from dpselect.errors import PromiseError
from dpselect.ledger import Ledger
from dpselect.mechanisms.noise_reduction import (
    LaplaceReduction,
)
from dpselect.privacy import ClaimSpender, OutputGuarantee, Release, Spender, pure_dp
from dpselect.privacy.release import Receipt
from tests.mechanisms.test_noise_reduction import CUT, RATES, STOPS, gradual_law, violation


def test_post_processing_keeps_the_price_and_the_oracle_agrees():
    """Any function of the levels, with the cell kept: the laws of (cell, f) satisfy the same prices."""
    guarantee = LaplaceReduction(epsilons=RATES, sensitivity=1).guarantee
    levels = (3.0, 1.0)
    release = Release(value=levels, guarantee=guarantee.worst(), realised=guarantee.observed(levels))
    after = release.processed(lambda levels: max(levels) > 2)
    assert after.value == (2, True)
    assert after.realised.price == 1.0
    assert after.guarantee.epsilon(delta=0) == 1.6
    laws = []
    for value in (0, 1):
        law = {}
        for path, mass in gradual_law(value, RATES, STOPS["at a large answer"], 14).items():
            key = (len(path), max(path) > 2)
            law[key] = law.get(key, 0.0) + mass
        laws.append(law)
    assert violation(*laws, replace(guarantee, cell=itemgetter(0))) < CUT


def test_a_release_holds_a_guarantee_and_no_price_in_its_place():
    with pytest.raises(PromiseError):
        Release(value=1, guarantee=OutputGuarantee(cell=bool, epsilons={True: 1.0}).observed(1))
    release = Release(value=3, guarantee=pure_dp(epsilon=1))
    assert (release.receipt, release.replayable, release.realised) == (None, False, None)
    assert release.processed(lambda value: value + 1).value == 4
    assert release.processed(str).guarantee is release.guarantee


def test_a_notebook_shows_a_receipt_a_key_and_nothing_found():
    shown = Release(value=None, guarantee=pure_dp(epsilon=1))._repr_html_()
    assert "nothing" in shown
    assert "charged" not in shown
    assert "Drawn from a key" not in shown
    receipt = Receipt(account="rows", identifier="i", charged={"epsilon": 1.0})
    shown = Release(value=3, guarantee=pure_dp(epsilon=1), receipt=receipt, replayable=True)._repr_html_()
    assert "charged" in shown
    assert "rows" in shown
    assert "Drawn from a key" in shown


def test_budgets_spend_and_can_be_claimed(tmp_path):
    budget = Ledger.open(tmp_path / "b.db").create_budget("rows", epsilon=3, delta=0)
    assert isinstance(budget, Spender)
    assert isinstance(budget, ClaimSpender)
    assert not isinstance(object(), Spender)
