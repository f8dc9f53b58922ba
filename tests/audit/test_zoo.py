"""Audits of the broken zoo: each specimen is caught, and passes once its defect is removed.

Exact audits have no error. Those by samples have fixed keys. A corrected specimen is refuted with probability at most
1e-6 (confidence .999999), so that some of the 36 is with at most 4e-5 over keys. A broken one is audited at confidence
.99 with as many draws as caught it in all of 100 measured runs (20 at a million draws: docs/evidence/audit-power.md),
so that it is missed over keys with probability below .045 (.21), or those runs had one chance in a hundred.
"""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from dpselect.audit import audit, exact_audit, sampled
from dpselect.cli.app import app
from dpselect.randomness import keyed_source
from tests.audits import naive_selectors
from tests.audits.broken_sparse_vectors import BROKEN, corrected
from tests.audits.zoo import ZOO
from tests.root import ROOT

CONFIDENCE = 1.0 - 1e-6
DOCS = ROOT / "docs"

by_name = pytest.mark.parametrize("specimen", ZOO, ids=lambda one: one.name)

INVISIBLE = {"best_of_rare_candidates", "decreasing_thresholds", "gives_up_at_a_limit"}
"""What they leak too much is at most 2e-6 in probability."""


@pytest.mark.cases(15)
@by_name
def test_an_exact_audit_catches_the_broken_and_passes_the_corrected(specimen):
    found, right = exact_audit(specimen.broken()), exact_audit(specimen.corrected())
    assert found.violated
    assert found.epsilon_lower > found.claimed_epsilon
    assert not right.violated
    assert right.confidence == 1.0


@pytest.mark.cases(18)
@by_name
def test_an_audit_by_samples_passes_the_corrected(specimen):
    subject = sampled(specimen.corrected())
    assert not audit(subject, draws=20_000, confidence=CONFIDENCE, random=keyed_source("right")).violated


@pytest.mark.cases(10)
@by_name
def test_an_audit_by_samples_catches_the_broken_where_a_table_says_so(specimen):
    draws = draws_in_the_table()[specimen.name]
    if draws is None:
        assert specimen.name in INVISIBLE
        return
    assert audit(sampled(specimen.broken()), draws=draws, random=keyed_source("broken")).violated


def draws_in_the_table():
    """From docs/evidence/audit-power.md: the fewest draws at which all runs caught it, None where none did."""
    page = (DOCS / "evidence/audit-power.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| ([\d,]+|exact only) \|$", page, re.MULTILINE)
    return {name: None if least == "exact only" else int(least.replace(",", "")) for name, least in rows}


def test_the_table_has_every_specimen_and_each_is_in_the_zoo():
    names = [specimen.name for specimen in ZOO]
    assert len(set(names)) == len(names)
    assert set(draws_in_the_table()) == set(names)
    page = (DOCS / "evidence/zoo.md").read_text(encoding="utf-8")
    for name in names:
        assert f"`{name}`" in page, name


@pytest.mark.parametrize("name", sorted(INVISIBLE))
def test_what_samples_cannot_see_is_small(name):
    """At most 2e-6 above the claim, at every epsilon: a million draws cannot tell that from nothing."""
    found = exact_audit({one.name: one for one in ZOO}[name].broken())
    excess = found.shown["violation"]
    assert 0.0 < excess["delta"] - excess["claimed_delta"] < 2e-6


@pytest.mark.parametrize("variant", BROKEN, ids=lambda one: one.__name__)
def test_the_corrected_sparse_vector_plays_the_same_game(variant):
    """Its answers are possible, so that passing says something."""
    law = variant()
    cap = law.max_positives or 2
    subject = corrected(c=cap).audit_subject(law.game)
    assert min(subject.data["these answers"], subject.neighbour["these answers"]) > 1e-6


@pytest.mark.parametrize(
    ("entry", "violated"),
    [
        ("naive_selectors:best_of_all_candidates", True),
        ("public_mistakes:crash_on_underflow", True),
        ("miscounted_runs:off_by_one", True),
        ("broken_sparse_vectors:no_cap", True),
        ("broken_sparse_vectors:corrected", False),
    ],
)
def test_the_command_audits_a_specimen(entry, violated):
    result = CliRunner().invoke(app, ["audit", f"tests.audits.{entry}", "--json"])
    assert result.exit_code == (1 if violated else 0), result.output
    assert json.loads(result.stdout)["violated"] is violated


def test_a_defect_gives_both_of_its_programs():
    defect = naive_selectors.best_of_all_candidates()
    assert exact_audit(defect.audit_subject()).epsilon_lower == pytest.approx(5.0, abs=1e-9)
    assert exact_audit(defect.audit_subject(corrected=True)).epsilon_lower < 1.5
