"""Public facts of a search: its costs, its curve, and JSON for every distribution."""

import json
import math
from itertools import pairwise

import pytest

from dpselect.accounting import best_of
from dpselect.privacy import compose, pure_dp
from dpselect.repetitions import TruncatedNegativeBinomial
from dpselect.report.facts import search_facts
from tests.report.pages import FACTS, LAW, PARTS, SEARCH, page


def test_the_costs_are_those_of_the_accountant():
    """Of this search, of one run, of the published bound, and of compositions of numbers that the law names."""
    delta = 1e-6
    costs = {cost["label"]: cost["epsilon"] for cost in FACTS["costs"]}
    runs = math.ceil(LAW.mean)
    high = LAW.quantile(0.99)
    assert costs == {
        "one run alone": max(part.epsilon(delta) for part in PARTS),
        "this search": SEARCH.epsilon(delta),
        "the same search, by the published Renyi bound": max(
            best_of(part, LAW, bound="renyi").epsilon(delta) for part in PARTS
        ),
        f"{runs} runs one by one, the law's mean": compose(*[PARTS[0]] * runs).epsilon(delta),
        f"{high} runs one by one, the law's 99th percentile": compose(*[PARTS[0]] * high).epsilon(delta),
    }
    assert costs["this search"] < costs["the same search, by the published Renyi bound"]


def test_the_stated_point_lies_on_the_curve():
    at = FACTS["curve"]["epsilon"].index(FACTS["epsilon"])
    assert FACTS["curve"]["search"][at] <= 1e-6 * (1 + 1e-9)
    assert all(a >= b for a, b in pairwise(FACTS["curve"]["search"]))


@pytest.mark.full
def test_facts_are_json_for_laws_without_a_limit_and_pure_privacy():
    law = TruncatedNegativeBinomial.with_mean(eta=1, mean=30)
    base = pure_dp(epsilon=0.1)
    facts = search_facts(parts=(base,), search=best_of(base, law), law=law, delta=0.0)
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    assert len(facts["law"]["probabilities"]) <= 121
    assert "no hard limit" in page(facts=facts)
