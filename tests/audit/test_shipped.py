"""Every public mechanism keeps its claim under an audit, and none can be forgotten.

Error rates. With m mechanisms an audit at confidence 1 - a/m refutes a claim that is true with probability at most a/m,
so that some of them is refuted with probability at most a = 1e-4 over keys; the keys are fixed. The power of each audit
at its number of draws is what its planted claim shows: where an entry has one, a claim of that share of epsilon is
refuted.
"""

from __future__ import annotations

import re

import pytest

from dpselect.audit import audit, audit_outputs
from dpselect.privacy import approximate_dp, pure_dp
from dpselect.randomness import keyed_source
from dpselect.testing.audit_contract import AuditContract
from tests.audits.shipped import Shipped, pure_part
from tests.audits.shipped_mechanisms import EXEMPT, SHIPPED, drawing_callables, shipped
from tests.root import ROOT

FAMILY_ERROR = 1e-4
CONFIDENCE = 1.0 - FAMILY_ERROR / len(SHIPPED)
HURRY = 6  # a sixth of the draws
QUICK = [entry for entry in SHIPPED if not entry.heavy]
PLANTED = [entry for entry in SHIPPED if entry.planted is not None]


def names(entries):
    return [entry.name for entry in entries]


@pytest.mark.full
def test_every_public_callable_that_draws_is_audited_or_excused():
    """A new mechanism goes into `tests.audits.shipped_mechanisms`."""
    drawing = set(drawing_callables())
    audited = {name for entry in SHIPPED for name in entry.covers}
    assert drawing - audited - set(EXEMPT) == set()
    stale = {name for name in set(EXEMPT) - drawing if not name.startswith("integrations.")}  # extras may be missing
    assert stale == set(), "an excuse for what is not there"
    assert {"ordered.median", "holdout.SavedAnalysis"} <= drawing, "what has no argument `random` but hands one on"
    assert not audited & set(EXEMPT)
    assert all(EXEMPT.values())


@pytest.mark.full
def test_the_registry_sees_a_mechanism_that_is_new(monkeypatch):
    """The test above can fail."""
    import dpselect.mechanisms

    def leaks(data, *, random=None):
        return data

    monkeypatch.setattr(dpselect.mechanisms, "leaks", leaks, raising=False)
    monkeypatch.setattr(dpselect.mechanisms, "__all__", [*dpselect.mechanisms.__all__, "leaks"])
    assert "mechanisms.leaks" in drawing_callables()


def test_entries_have_names_of_their_own_and_are_found_by_them():
    assert len(set(names(SHIPPED))) == len(SHIPPED)
    assert shipped("sparse_vector").name == "sparse vector"


@pytest.mark.cases(6)
@pytest.mark.parametrize("entry", QUICK, ids=names(QUICK))
def test_a_shipped_mechanism_keeps_its_claim(entry):
    found = audit(
        pure_part(entry.make()),
        draws=max(entry.draws // HURRY, 40),
        confidence=CONFIDENCE,
        random=keyed_source(entry.name),
    )
    assert not found.violated, found.describe()


@pytest.mark.slow
@pytest.mark.parametrize("entry", SHIPPED, ids=names(SHIPPED))
def test_a_shipped_mechanism_keeps_its_claim_under_more_draws_that_refute_a_planted_one(entry):
    """With the whole curve of its guarantee. The planted claim is judged at confidence .99, on the same draws; that it
    is missed is no false alarm, and depends on the key alone."""
    drawn, claim = entry.sample(), entry.make().claim
    found = audit_outputs(*drawn, claim, confidence=CONFIDENCE, random=keyed_source("claim"))
    assert not found.violated, found.describe()
    if entry.planted is not None:
        false = entry.planted_claim(claim)
        assert audit_outputs(*drawn, false, confidence=0.99, random=keyed_source("planted")).violated


def test_most_entries_have_a_planted_claim():
    """What the others lack is said in docs/evidence/audit-power.md."""
    assert len(PLANTED) >= 79
    with pytest.raises(ValueError, match="no planted claim"):
        next(entry for entry in SHIPPED if entry.planted is None).planted_claim(pure_dp(epsilon=1.0))


def test_a_planted_claim_is_a_share_of_epsilon_or_of_delta():
    claim, make = approximate_dp(epsilon=2.0, delta=0.1), shipped
    of_epsilon = Shipped(name="", make=make, covers=(), draws=1, planted=0.5).planted_claim(claim)
    assert (of_epsilon.epsilon(0.1), of_epsilon.failure) == (1.0, 0.1)
    of_delta = Shipped(name="", make=make, covers=(), draws=1, planted=0.5, of_delta=True).planted_claim(claim)
    assert (of_delta.epsilon(0.05), of_delta.failure) == (2.0, 0.05)


class TestCountsWithLaplaceNoise(AuditContract):
    draws = 2_000

    @pytest.fixture
    def subject(self):
        return shipped("counts_with_laplace_noise")


class TestGaussianNoise(AuditContract):
    """A claim with a curve: planted at a delta that so many draws see, with each of 12 keys (8 at a delta of 1e-3)."""

    draws = 20_000
    planted_delta = 0.02

    @pytest.fixture
    def subject(self):
        return shipped("steps_of_gaussian_noise")


@pytest.mark.full
def test_the_contract_on_the_page_runs():
    page = (ROOT / "docs" / "evidence/audit-power.md").read_text(encoding="utf-8")
    names = {}
    exec(compile("\n".join(re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)), "audit-power.md", "exec"), names)
    contract = names["TestMyCount"]()
    subject = names["TestMyCount"].subject.__wrapped__(contract)
    for test in [name for name in dir(contract) if name.startswith("test_")]:
        getattr(contract, test)(subject)
