"""What an audit found, described in JSON."""

import json
import math

import pytest

from dpselect.audit import audit
from dpselect.audit.result import Audit
from dpselect.randomness import keyed_source
from tests.audit.black_box_cases import NULLS


def test_describe_is_json():
    found = audit(NULLS["gaussian"], draws=400, random=keyed_source(3))
    described = json.loads(json.dumps(found.describe()))
    assert described["method"] == "black-box"
    assert described["note"] == "An audit finds faults; it never proves privacy."
    assert described["delta"] == 1e-5
    assert described["claimed_epsilon"] == pytest.approx(4.377178, abs=1e-5)


def found(**changes):
    facts = {"violated": False, "epsilon_lower": 0.5, "delta": 0.0, "claimed_epsilon": 1.0, "confidence": 0.99}
    words = {"name": "coin", "direction": "data over neighbour", "event": "output >= 1", "draws": 100}
    return Audit(**{**facts, **words, "method": "black-box", **changes})


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"violated": True}, "violated"),
        ({"violated": True, "power": 0.1}, "violated"),
        ({"power": 0.95}, "not violated"),
        ({"power": 0.9499}, "cannot tell"),
        ({"power": None}, "cannot tell"),
        ({"method": "exact"}, "not violated"),
    ],
)
def test_not_violated_needs_a_power_of_95_percent(changes, verdict):
    assert found(**changes).verdict == verdict


def test_lines_for_a_terminal():
    planted = {"epsilon": 2.0, "delta": 0.0, "form": "x" * 100, "enough": 900}
    lines = found(power=0.5, epsilon_limit=0.75, shown={"planted": planted}).lines()
    assert lines[0] == "coin: black-box, 100 draws of each data set"
    assert lines[1].startswith("CANNOT TELL")
    assert lines[2] == "epsilon at delta 0: at least 0.5, claimed 1"
    assert lines[3] == "event: output >= 1 (data over neighbour)"
    text = "\n".join(lines)
    assert f"(epsilon 2, planted in {'x' * 56} ...)" in text
    assert "about 900 draws of each data set" in text
    assert "so many draws can show an epsilon of 0.75 at most in this form of output" in text
    assert "too few to contradict the claim" in text
    assert "called violated in 0.01 of all audits at most" in text
    violation = {"epsilon": 0.25, "delta": 0.5, "claimed_delta": 0.375}
    shown = found(violated=True, confidence=1.0, method="exact", shown={"violation": violation}).lines()
    assert shown[:2] == ["coin: from the exact laws", "VIOLATED: the claim is false"]
    assert shown[2] == "at epsilon 0.25: delta at least 0.5, claimed 0.375"
    assert shown[-1] == "An audit finds faults; it never proves privacy."
    assert not [line for line in shown if "confidence" in line or "so many" in line]


def test_infinity_is_none_in_json():
    described = found(epsilon_lower=math.inf, shown={"a": {"b": math.inf}}).describe()
    assert (described["epsilon_lower"], described["epsilon_limit"], described["shown"]) == (
        None,
        None,
        {"a": {"b": None}},
    )
