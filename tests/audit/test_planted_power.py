"""The power of an audit: would it have seen a leak of twice the claim?"""

import math

import numpy as np
import pytest
from scipy import stats

from dpselect.audit import Subject, audit, audit_outputs
from dpselect.audit.result import Audit
from dpselect.privacy import approximate_dp, laplace, pure_dp
from dpselect.randomness import keyed_source


class TestPower:
    def test_not_violated_needs_power(self):
        """The same sound mechanism: many draws tell, few do not."""
        coin = Subject(
            name="coin",
            draw=lambda other, n, random: random.bernoulli(0.25 if other else 0.75, n),
            claim=pure_dp(epsilon=1.1),
        )
        few, many = (audit(coin, draws=draws, random=keyed_source("power")) for draws in (400, 20_000))
        assert (few.verdict, many.verdict) == ("cannot tell", "not violated")
        assert few.power < 0.95 <= many.power
        assert "what would do" in "\n".join(few.lines())
        assert few.shown["planted"]["enough"] > 400

    def test_a_large_claim_is_not_tested_by_few_draws(self):
        numbers = Subject(
            name="noise",
            draw=lambda other, n, random: np.round(random.laplace(n), 6) + other,
            claim=pure_dp(epsilon=8.0),
        )
        found = audit(numbers, draws=2000, random=keyed_source("large"))
        assert found.verdict == "cannot tell"
        assert found.power == 0.0
        assert found.epsilon_limit < 8.0

    @pytest.mark.full
    @pytest.mark.statistical
    @pytest.mark.parametrize(("draws", "runs"), [(1600, 12), pytest.param(6000, 24, marks=pytest.mark.slow)])
    def test_power_is_not_overstated(self, draws, runs):
        """Real leaks like the planted one, at sizes where the power is near to one half and near to one."""
        shown, powers = 0, []
        for run in range(runs):
            source = keyed_source(f"power {draws} {run}")
            honest, leak = (
                Subject(name="late", draw=_marked(share), claim=pure_dp(epsilon=1.0))
                for share in ((0.1, 0.1), (0.1, 0.1 * math.exp(-2.0)))
            )
            shown += audit(leak, draws=draws, random=source.spawn("leak")).violated
            powers.append(audit(honest, draws=draws, random=source.spawn("honest")).power or 0.0)
        # fewer would have probability 1e-4 if leaks were seen as often as is said
        assert shown >= stats.binom.ppf(1e-4, runs, float(np.mean(powers))) - 1

    def test_the_limit_is_of_this_form_of_output(self):
        """Text in which every draw is a new one, so that no label repeats."""

        def draw(other, n, random):
            return np.array([f"{number:.12f}" for number in random.laplace(n)])

        found = audit(Subject(name="text", draw=draw, claim=pure_dp(epsilon=1.0)), draws=2000, random=keyed_source(1))
        assert 0.0 < found.epsilon_limit <= 5.24
        assert "in this form of output" in "\n".join(found.lines())

    def test_a_claim_without_epsilon_is_not_tested(self):
        found = audit_outputs(
            np.zeros(100), np.zeros(100), laplace(scale=1.0), delta=0.0, random=keyed_source(1), confidence=0.9
        )
        assert found.power is not None
        nothing = Audit(
            name="x", violated=False, epsilon_lower=0.0, delta=0.0, claimed_epsilon=math.inf, confidence=0.99,
            direction="", event="", draws=10, method="black-box",
        )  # fmt: skip
        assert nothing.verdict == "cannot tell"
        assert nothing.describe()["verdict"] == "cannot tell"

    def test_delta_is_doubled_too(self):
        draw = lambda other, n, random: random.bernoulli(0.5, n)  # noqa: E731
        claim = approximate_dp(epsilon=0.5, delta=0.1)
        found = audit(Subject(name="coin", draw=draw, claim=claim), draws=20_000, random=keyed_source(1))
        assert found.shown["planted"]["delta"] == 0.2
        assert found.shown["planted"]["share"] == 0.2


def _marked(shares):
    def draw(other, n, random):
        rows = np.empty(n, dtype=object)
        marked = random.bernoulli(shares[int(other)], n)
        for place, (noise, mark) in enumerate(zip(random.laplace(n), marked, strict=True)):
            rows[place] = (round(float(noise), 4), "late" if mark else "on time")
        return rows

    return draw
