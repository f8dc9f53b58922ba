"""Propose-test-release: what it costs, through the ledger; the samplers; bad input.

"Fact n" are worked examples for Hartmann, Bindschaedler, Bentkamp, West (2022), computed by hand or integration.
Statistical tests are seeded; a correct sampler would fail one of them at rate 1e-6 were the seed free.
"""

from __future__ import annotations

import math
import pickle
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.ledger import AlreadySettledError, InsufficientBudget, Ledger
from dpselect.mechanisms import Cascade, InterquantileRange, ProposeTestRelease, TrimmedMean
from dpselect.mechanisms.instability import sorted_units
from dpselect.mechanisms.propose_test_release import answered, dwork_lei_delta
from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.calculus import coarsen, first_answer
from dpselect.privacy.output.oracle import output_delta
from dpselect.randomness import keyed_source
from tests.audits.propose_test_laws import pass_probability, trimmed_mean_law
from tests.mechanisms.instability_cases import counted, fits
from tests.mechanisms.propose_test_release_cases import interquantile_range, needed_delta, trimmed_mean
from tests.mechanisms.test_propose_test_release import ROUNDING

# ---- what it costs ---------------------------------------------------------------------------------------------------


def test_fact_10_prices():
    test = ProposeTestRelease(epsilon_test=0.3, epsilon_answer=0.3, delta=1e-3)
    g = test.guarantee
    assert (g.worst_epsilon, g.price(answered(None)), g.price(answered(0.0)), g.delta) == (0.6, 0.3, 0.6, 1e-3)
    assert g.worst().epsilon(delta=1e-3) == 0.6
    assert pickle.loads(pickle.dumps(g)) == g


def test_fact_11_a_cascade_has_the_deltas_of_its_stages():
    """On inadmissible data both stages answer v_x with mass 0.01, no matter what the neighbour's: 0.0199 is needed."""
    stage = ProposeTestRelease(epsilon_test=0.5, epsilon_answer=0.5, delta=0.01)
    g = Cascade([stage, stage]).guarantee
    assert dict(g.epsilons) == {0: 1.0, 1: 1.0, 2: 1.5}
    assert g.delta == pytest.approx(0.0199, abs=1e-15)
    p = pass_probability(stage, 0)
    assert p == pytest.approx(0.01, rel=1e-9)
    laws = [{(1, v): p, (2, v): (1 - p) * p, None: (1 - p) ** 2} for v in "ab"]
    assert needed_delta(*laws, g) == pytest.approx(0.0199, abs=1e-10)
    assert needed_delta(*laws, g) <= g.delta
    lemma_10 = coarsen(g, merge=bool, cell=answered)
    assert dict(lemma_10.epsilons) == {False: 1.0, True: 1.5}
    for count in (1, 3):
        many = Cascade([stage] * count).guarantee
        assert many.price(0) == pytest.approx(0.5 * count)
        assert many.price(count) == pytest.approx(0.5 * (count + 1))
        assert many.delta == pytest.approx(1 - 0.99**count, abs=1e-15)


@pytest.mark.parametrize(
    ("rows", "epsilon", "delta"),
    [(100, 1, 3.08055972e-10), (1000, 0.5, 2.17438822e-11), (1000, 0.1, 4.23295275e-3), (10000, 0.1, 1.03474624e-4)],
)
def test_fact_12_dwork_and_lei_s_delta(rows, epsilon, delta):
    """With it the margin is theirs, (log rows)^2, up to what counts the distance from 1 or 0."""
    found = dwork_lei_delta(rows=rows, epsilon=epsilon)
    assert found == pytest.approx(delta, rel=1e-8)
    test = ProposeTestRelease(epsilon_test=epsilon, epsilon_answer=epsilon, delta=found)
    assert test.margin == pytest.approx(math.log(rows) ** 2, rel=1e-9)


def test_stages_may_differ():
    """Prices and deltas of a cascade against the oracle on random stages with their own tight deltas."""
    chance = np.random.default_rng(5)  # chooses the games; no part of what is tested
    for _ in range(60):
        stages, laws = [], []
        for _ in range(3):
            one, other = chance.dirichlet(np.ones(3), size=2)
            test, answer = chance.uniform(0.05, 0.6, 2)
            cells, prices = [False, True, True], {False: test, True: answer}
            delta = max(output_delta(a, b, cells=cells, epsilons=prices) for a, b in ((one, other), (other, one)))
            stages.append(OutputGuarantee(cell=answered, epsilons=prices, delta=min(delta, 0.999)))
            laws.append((one, other))
        both = []
        for side in (0, 1):
            law, left = {}, 1.0
            for stage, pair in enumerate(laws, start=1):
                none, a, b = pair[side]
                law[stage, "a"], law[stage, "b"] = left * a, left * b
                left *= none
            both.append({**law, None: left})
        g = first_answer(stages, none=False)
        assert needed_delta(*both, g) <= g.delta + ROUNDING


def test_two_ways_to_charge_the_interquartile_range(tmp_path):
    """Hartmann et al., section 5.1: two reservations, or one; e = 0.1. None of both costs 2 e either way."""
    stage = ProposeTestRelease(epsilon_test=0.1, epsilon_answer=0.1, delta=1e-6, adjacency="replace_one")
    whole = Cascade([stage, stage]).guarantee
    cases = {(1, 5.0): ("0.2", 1), (2, 5.0): ("0.3", 2), None: ("0.2", 2)}
    with Ledger.open(tmp_path / "b.db") as ledger:
        for number, (output, (epsilon, deltas)) in enumerate(cases.items()):
            two = ledger.create_budget(f"two {number}", epsilon=1, delta="1e-5", adjacency="replace_one")
            for stage_number in (1, 2):
                here = output if output and output[0] == stage_number else None
                two.reserve(stage.guarantee, label="stage").settle(here)
                if here:
                    break
            assert two.spent().epsilon == Fraction(epsilon)
            assert two.spent().delta == deltas * Fraction(1, 10**6)
            one = ledger.create_budget(f"one {number}", epsilon=1, delta="1e-5", adjacency="replace_one")
            one.reserve(whole, label="both").settle(output)
            # sums of doubles are rounded up when they are charged
            assert float(one.spent().epsilon) == pytest.approx(float(epsilon), abs=1e-15)
            assert one.spent().epsilon >= Fraction(epsilon)
            assert one.spent().delta == pytest.approx(Fraction(2, 10**6), rel=1e-6)
        assert ledger.verify()


def test_a_refund_goes_to_the_median(tmp_path):
    """3 e1 + e2 reserved in turn; when the range is None, the median may use e1 + e2."""
    spread = interquantile_range(epsilon_test=0.25, epsilon_answer=0.25, delta=1e-6)
    with Ledger.open(tmp_path / "b.db") as ledger:
        budget = ledger.create_budget("b", epsilon=1, delta="1e-5", adjacency="replace_one")
        with budget.reserve(spread.guarantee, label="range") as charge:
            assert budget.remaining().epsilon == Fraction(1, 4)
            charge.settle(spread.draw([0.0, 1.0, 50.0, 9.0], random=keyed_source(1)))
        assert budget.remaining().epsilon == Fraction(1, 2)
        median = trimmed_mean(epsilon_test=0.25, epsilon_answer=0.25, delta=1e-6)
        with budget.reserve(median.guarantee, label="median") as charge:
            charge.settle(median.draw([0.0] * 500, random=keyed_source(1)))
        assert budget.remaining().epsilon == 0
        with pytest.raises(InsufficientBudget):
            budget.reserve(median.guarantee, label="another")


@pytest.mark.full
@pytest.mark.parametrize("rows", [(0, 0, 1, 1, 2), (0, 1, 1, 1, 1), (0, 0, 0, 9, 9)])
def test_medians_follow_their_exact_law(rows):
    """2,000 draws catch a total variation distance of 0.12 with probability above 0.99."""
    mechanism = trimmed_mean(delta=0.2)
    law = trimmed_mean_law(mechanism, np.array(rows), (-6, 12))
    outputs = (mechanism.draw(rows, random=keyed_source(i)) for i in range(2000))
    units = (None if y is None else min(max(int(y), -7), 13) for y in outputs)
    assert fits(counted(units), law)


def test_trimmed_means_are_close_and_unknown_scales_are_found():
    """Normal data, 20,000 rows: both nearly always answer, and close to the truth."""
    rows = 3.0 + 7.0 * np.random.default_rng(0).standard_normal(20_000)  # data, not noise
    spread = InterquantileRange(granularity=2.0**-20, epsilon_test=0.5, epsilon_answer=0.5, delta=1e-8)
    stage, width = spread.draw(rows, random=keyed_source(1))
    assert stage in (1, 2)
    assert 0.5 < width / (7.0 * 1.349) < 2.0  # noise of a factor 1.1^(Laplace(2)), 0.5 to 2 but for about 1 in 30
    for trim in (0.1, 0.5):
        proposed = 2 * width if trim < 0.5 else width / len(rows) ** (1 / 3)
        mean = TrimmedMean(
            width=2 * proposed, granularity=2.0**-20, epsilon_test=0.5, epsilon_answer=0.5, delta=1e-8, trim=trim
        )
        assert abs(mean.draw(rows, random=keyed_source(2)) - 3.0) < 5.0
        assert mean.distance(sorted_units(rows, 2.0**-20)) > 2 * mean.test.margin


# ---- bad input -------------------------------------------------------------------------------------------------------


def test_parameters_out_of_range():
    good = {"epsilon_test": 0.5, "epsilon_answer": 0.5, "delta": 1e-6}
    for wrong in ({"epsilon_test": 0}, {"epsilon_answer": math.nan}, {"delta": 0.0}, {"delta": 0.7}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            ProposeTestRelease(**{**good, **wrong})
    for make in (trimmed_mean, interquantile_range):
        for wrong in ({"granularity": 0.3}, {"epsilon_test": -1}, {"delta": 1.5}):
            with pytest.raises(ArgumentError, match=next(iter(wrong))):
                make(**wrong)
        with pytest.raises(AdjacencyError, match="replace_one"):
            make(adjacency="add_or_remove_one")
    for wrong in ({"width": 0.0}, {"width": 1e30}, {"trim": 0.6}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            trimmed_mean(**wrong)
    for wrong in ({"tail": 0.5}, {"ratio": 1.0}, {"steps": 1}):
        with pytest.raises(ArgumentError, match=next(iter(wrong))):
            interquantile_range(**wrong)
    with pytest.raises(ArgumentError, match="two rows"):
        interquantile_range().draw([1.0])
    with pytest.raises(ArgumentError, match="stages"):
        Cascade([])
    with pytest.raises(ArgumentError, match="none"):
        first_answer([OutputGuarantee(cell=bool, epsilons={True: 1.0})], none=False)
    one = ProposeTestRelease(**good)
    with pytest.raises(AdjacencyError):
        _ = Cascade([one, ProposeTestRelease(**good, adjacency="replace_one")]).guarantee
    with pytest.raises(ArgumentError, match="attempts"):
        Cascade([one]).draw([])
    assert Fraction(trimmed_mean(epsilon_answer=Decimal("0.3")).guarantee.price(True)) >= Fraction(3, 10) + Fraction(
        0.6
    )


def test_secrets_are_not_quoted():
    test = ProposeTestRelease(epsilon_test=1.0, epsilon_answer=1.0, delta=0.5)
    with pytest.raises(TypeError) as caught:
        test.draw(12345.5, lambda random: 1)
    assert "12345" not in str(caught.value)
    with pytest.raises(ArgumentError, match="None"):
        test.draw(10_000, lambda random: None)


@pytest.mark.parametrize(
    ("mechanism", "output", "outside"),
    [(trimmed_mean(), 3.0, None), (interquantile_range(), (2, 4.0), (3, 4.0)), (interquantile_range(), None, 4.0)],
)
def test_a_reservation_stands_whatever_goes_wrong(tmp_path, mechanism, output, outside):
    """Outside the partition, twice, and in a budget of another adjacency."""
    with Ledger.open(tmp_path / "b.db") as ledger:
        other = ledger.create_budget("rows come and go", epsilon=3, delta="0.5")
        with pytest.raises(AdjacencyError):
            other.reserve(mechanism.guarantee, label="median")
        assert other.spent().epsilon == 0
        budget = ledger.create_budget("b", epsilon=3, delta="0.5", adjacency="replace_one")
        charge = budget.reserve(mechanism.guarantee, label="median")
        whole = budget.spent()
        if outside is not None:
            with pytest.raises(ArgumentError):
                charge.settle(outside)
            assert budget.spent() == whole
        charge.settle(output)
        settled = budget.spent()
        assert settled.epsilon <= whole.epsilon
        assert settled.delta == whole.delta
        with pytest.raises(AlreadySettledError):
            charge.settle(output)
        assert budget.spent() == settled
        assert ledger.verify()
