"""Increasing budgets: output laws enumerated exactly, the oracle of output privacy, adversaries, broken variants."""

from __future__ import annotations

import doctest
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy.stats import chi2

from dpselect.errors import ArgumentError
from dpselect.ledger import Ledger
from dpselect.privacy import OutputGuarantee, approximate_dp, gaussian, pure_dp
from dpselect.privacy.output.oracle import output_delta, satisfies
from dpselect.randomness import keyed_source
from dpselect.repetitions import (
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    Tabulated,
    TruncatedNegativeBinomial,
    Uniform,
)
from dpselect.selection.candidates import PrivateCandidate
from dpselect.selection.increasing_budgets import (
    SelectIncreasing,
    released_level,
)
from dpselect.testing.exact import best_of_masses, finite_guarantee
from tests.root import ROOT

LAWS = [
    Logarithmic.with_mean(mean=10),
    Geometric(gamma=0.1),
    TruncatedNegativeBinomial(eta=-0.5, gamma=0.01),
    TruncatedNegativeBinomial(eta=1.0, gamma=0.05),
    Poisson(mean=4.0),
    Binomial(trials=8, probability=0.4),
    Harmonic(limit=12),
    Uniform(limit=6),
    Fixed(count=1),
]


def output_law(levels, clears, shares, law):
    """The exact law of what is released: {None or (level, outcome): mass}.

    `levels[i]` lists the masses of level i's outcomes, `clears[i]` those that reach the threshold. The search releases
    the best of K draws from the mixture, lower levels first, and within a level a uniform one of those that clear.
    """
    clear = [
        sum(m for m, good in zip(masses, which, strict=True) if good)
        for masses, which in zip(levels, clears, strict=True)
    ]
    fail = sum(share * (1.0 - c) for share, c in zip(shares, clear, strict=True))
    worst_first = [fail, *(share * c for share, c in zip(shares[::-1], clear[::-1], strict=True))]
    none, failed, *by_level = best_of_masses(worst_first, law).tolist()
    result = {None: none + failed}
    for level, mass in enumerate(by_level[::-1]):
        for outcome, (m, good) in enumerate(zip(levels[level], clears[level], strict=True)):
            if good:
                result[level, outcome] = mass * m / clear[level]
    return result


weights = st.lists(st.integers(1, 40), min_size=3, max_size=3).map(lambda w: [x / sum(w) for x in w])


@st.composite
def instances(draw):
    """Two to four levels with three outcomes each on two neighbours, in the order of their exact epsilons."""
    pairs = draw(st.lists(st.tuples(weights, weights), min_size=2, max_size=4))
    delta = draw(st.sampled_from([0.0, 0.0, 0.01]))
    priced = sorted(((finite_guarantee(p, q).epsilon(delta), p, q) for p, q in pairs), key=lambda t: t[0])
    clears = [draw(st.sampled_from([(True, False, False), (True, True, False), (False, True, False)])) for _ in priced]
    parts = draw(st.lists(st.integers(1, 5), min_size=len(priced), max_size=len(priced)))
    return priced, clears, parts, delta, draw(st.sampled_from(LAWS))


@pytest.mark.full
@pytest.mark.theorem("docs/theory/increasing-budgets.md, Theorem 1", exact=True)
@settings(max_examples=200, deadline=None)
@given(instances())
def test_the_price_holds_on_random_finite_mechanisms(instance):
    """The oracle (the largest violation over all sets of outputs) on the enumerated laws, pure and with a delta."""
    priced, clears, parts, delta, law = instance
    guarantees = [approximate_dp(epsilon=e, delta=delta) for e, _, _ in priced]
    if law.mean * delta >= 1.0:
        return
    promised = SelectIncreasing(levels=guarantees, repetitions=law, weights=parts, delta=delta).guarantee
    shares = [part / sum(parts) for part in parts]
    ours = output_law([p for _, p, _ in priced], clears, shares, law)
    theirs = output_law([q for _, _, q in priced], clears, shares, law)
    assert satisfies(promised, [(ours, theirs)])


def response(epsilon):
    """An outcome that clears and one that fails, at the worst odds that epsilon allows."""
    better = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    return [1.0 - better, better], [better, 1.0 - better]


def adversary(epsilons, tiny=1e-7, silent=0):
    """All levels but the last answer at the worst odds; the last clears so rarely that it is in no one's way.

    The first `silent` levels never clear.
    """
    *below, last = epsilons
    never = ([1e-300, 1.0], [1e-300, 1.0])
    pairs = [never if level < silent else response(e) for level, e in enumerate(below)]
    rare = ([tiny, 1.0 - tiny], [tiny * math.exp(-last), 1.0 - tiny * math.exp(-last)])
    ours, theirs = zip(*pairs, rare, strict=True)
    return list(ours), list(theirs), [(True, False)] * len(epsilons)


@pytest.mark.theorem("docs/theory/increasing-budgets.md, Theorem 1", exact=True, sharp=True)
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_an_adversary_comes_close_to_the_price_and_never_above(law):
    """With most of the runs below the last level, its price is attained but for its own share of the runs."""
    epsilons, parts = [0.5, 0.8, 1.0], [1000, 1000, 1]
    shares = [part / sum(parts) for part in parts]
    promised = SelectIncreasing(levels=[pure_dp(epsilon=e) for e in epsilons], repetitions=law, weights=parts).guarantee
    attained = 0.0
    for silent in (0, 1, 2):
        ours, theirs, clears = adversary(epsilons, silent=silent)
        one, other = (output_law(levels, clears, shares, law) for levels in (ours, theirs))
        assert satisfies(promised, [(one, other)])
        attained = max(attained, math.log(one[2, 0] / other[2, 0]))
    assert 0.99 * promised.price(2) < attained <= promised.price(2)


def claims(epsilons, price):
    """Output prices by level, "nothing" at the largest of them."""
    table = {level: price(level) for level in range(len(epsilons))}
    return OutputGuarantee(cell=released_level, epsilons={**table, "nothing": max(table.values())})


EPSILONS = [1.0, 1.0, 1.0, 1.0]


def broken_without_a_coin():
    """Each level once, in order, for certain: the failures before the release are not covered by twice its budget."""
    ours, theirs, _ = adversary(EPSILONS)

    def law(levels):
        result, left = {}, 1.0
        for level, (clear, fail) in enumerate(levels):
            result[level, 0], left = left * clear, left * fail
        return {**result, None: left}

    return law(ours), law(theirs), claims(EPSILONS, lambda level: 2.0 * EPSILONS[level])


def broken_pays_the_last_budget_only():
    """The right algorithm at the price of the released candidate alone."""
    ours, theirs, clears = adversary(EPSILONS, tiny=0.02)
    laws = [output_law(levels, clears, [0.25] * 4, Logarithmic.with_mean(mean=10)) for levels in (ours, theirs)]
    return *laws, claims(EPSILONS, lambda level: EPSILONS[level])


def broken_prefers_the_largest_budget():
    """The best score over all levels, at the price of the released level: losers at higher prices decide."""
    epsilons = [0.1, 3.0]
    ours, theirs = ([0.01, 0.99], response(3.0)[0]), ([0.01, 0.99], response(3.0)[1])
    law = Logarithmic.with_mean(mean=100)

    def reversed_law(levels):
        found = output_law(levels[::-1], [(True, False)] * 2, [0.5, 0.5], law)
        return {None if key is None else (1 - key[0], key[1]): mass for key, mass in found.items()}

    return reversed_law(ours), reversed_law(theirs), claims(epsilons, lambda level: 2.0 * epsilons[level])


def broken_releases_the_number_of_runs():
    """Geometric coins, but how many runs failed is in the output: every failure is one more epsilon."""

    def law(clear):
        stop, result, left = 0.1, {}, 1.0
        for runs in range(60):
            result[0, runs] = left * clear
            left *= (1.0 - clear) * (1.0 - stop)
        return {**result, None: 1.0 - math.fsum(result.values())}

    return law(response(1.0)[0][0]), law(response(1.0)[1][0]), claims([1.0], lambda level: 3.0)


@pytest.mark.parametrize(
    "broken",
    [
        broken_without_a_coin,
        broken_pays_the_last_budget_only,
        broken_prefers_the_largest_budget,
        broken_releases_the_number_of_runs,
    ],
)
def test_broken_variants_are_caught(broken):
    ours, theirs, claimed = broken()
    assert not satisfies(claimed, [(ours, theirs)], tolerance=1e-9)


def test_a_fixed_number_of_tries_costs_composition_or_is_refused():
    promised = SelectIncreasing(levels=[pure_dp(epsilon=1)] * 3, repetitions=Fixed(count=3)).guarantee
    assert promised.price(2) == pytest.approx(3.0, rel=1e-9)
    with pytest.raises(ArgumentError, match="repetitions"):
        SelectIncreasing(
            levels=[approximate_dp(epsilon=1, delta=1e-3)] * 2, repetitions=Fixed(count=3), delta=1e-3
        ).guarantee


@pytest.mark.theorem("docs/theory/optimal-selection.md, Theorem 2", exact=True)
@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", range(12))
def test_the_price_of_one_level_holds_on_random_finite_mechanisms(seed):
    """The first that clears, by enumeration: the level is known by its whole profile, and any outcomes may clear."""
    generator = np.random.default_rng(seed)
    law, delta = LAWS[seed % len(LAWS)], float(generator.choice([1e-4, 1e-2]))
    p, q = (masses.tolist() for masses in generator.dirichlet(np.full(3, 0.7), 2))
    level = finite_guarantee(p, q)
    if law.mean * delta >= 1.0:
        return
    promised = SelectIncreasing(levels=[level], repetitions=law, delta=delta).guarantee
    for clears in [(True, False, False), (True, True, False), (False, True, True), (True, True, True)]:
        laws = [output_law([masses], [clears], [1.0], law) for masses in (p, q)]
        assert satisfies(promised, [(laws[0], laws[1]), (laws[1], laws[0])])


@pytest.mark.theorem("docs/theory/optimal-selection.md, Theorem 2", exact=True, sharp=True)
@pytest.mark.parametrize("law", [LAWS[0], Geometric(gamma=0.1), Poisson(mean=4.0), Fixed(count=3)], ids=str)
def test_one_pure_level_attains_its_price(law):
    """The best of many pairs whose clearing outcomes split; a price 1 % smaller fails here."""
    promised = SelectIncreasing(levels=[pure_dp(epsilon=1.0)], repetitions=law).guarantee
    attained = 0.0
    for mass in np.geomspace(1e-6, 0.999, 400).tolist():
        # under the neighbour the clearing set is as unlikely as it may be, and the outcome in it e times as likely
        other = min(math.e * mass, 1.0 - (1.0 - mass) / math.e)
        ours, theirs = ([rare, total - rare, 1.0 - total] for rare, total in ((1e-9 * math.e, mass), (1e-9, other)))
        laws = [output_law([masses], [(True, True, False)], [1.0], law) for masses in (ours, theirs)]
        attained = max(attained, *(abs(math.log(laws[0][key] / laws[1][key])) for key in laws[0]))
    assert 0.99 * promised.price(0) < attained <= promised.price(0)


def test_one_gaussian_level_costs_less_than_the_best_of_as_many_runs():
    level, law = gaussian(noise_multiplier=4.0), Logarithmic.with_mean(mean=10)
    promised = SelectIncreasing(levels=[level], repetitions=law, delta=1e-7).guarantee
    assert promised.price(0) == promised.price("nothing") == pytest.approx(1.35887, abs=2e-5)


@pytest.mark.full
@given(
    st.lists(st.floats(0.01, 3.0), min_size=1, max_size=8).map(sorted),
    st.floats(-0.9, 2.0),
    st.sampled_from([0.5, 0.1, 0.001]),
)
@settings(max_examples=60, deadline=None)
def test_a_release_costs_at_most_two_plus_eta_times_its_own_budget(epsilons, eta, gamma):
    """Theorem 1's corollary; eta = 0 is the factor of two of Ghazi et al. (2025)."""
    law = TruncatedNegativeBinomial(eta=eta, gamma=gamma)
    promised = SelectIncreasing(levels=[pure_dp(epsilon=e) for e in epsilons], repetitions=law).guarantee
    for level, epsilon in enumerate(epsilons):
        assert promised.price(level) <= (2.0 + eta) * epsilon + 1e-8


def test_closed_forms():
    """Poisson: epsilon_i + sum_{j <= i} rate_j tanh(epsilon_j / 2). Negative binomial: the best set of upper levels."""
    epsilons, parts = [0.2, 0.7, 1.9], [3, 1, 2]
    levels = [pure_dp(epsilon=e) for e in epsilons]
    by_rate = SelectIncreasing(levels=levels, repetitions=Poisson(mean=6.0), weights=parts).guarantee
    for i, epsilon in enumerate(epsilons):
        exact = epsilon + sum(part * math.tanh(e / 2) for part, e in zip(parts[: i + 1], epsilons, strict=False))
        assert exact <= by_rate.price(i) <= exact + 1e-7
    eta, gamma = 0.3, 0.02
    law = TruncatedNegativeBinomial(eta=eta, gamma=gamma)
    by_ratio = SelectIncreasing(levels=levels, repetitions=law, weights=parts).guarantee
    offset = gamma / (1.0 - gamma)
    for i, epsilon in enumerate(epsilons):
        ratios = []
        for first in range(i + 1):
            odds = [
                (part / 6, math.exp(e)) for part, e in zip(parts[first : i + 1], epsilons[first : i + 1], strict=True)
            ]
            ratios.append(
                (offset + sum(s * x / (1 + x) for s, x in odds)) / (offset + sum(s / (1 + x) for s, x in odds))
            )
        exact = epsilon + (1 + eta) * math.log(max(ratios))
        assert exact <= by_ratio.price(i) <= exact + 1e-7


ONE_OR_SIXTY = Tabulated(probabilities=[0.0, 0.7, *[0.0] * 58, 0.3])
"""Its worst u is inside a cell of the search's first grid, so the bound inside cells matters."""


@pytest.mark.parametrize(
    "law", [ONE_OR_SIXTY, Uniform(limit=6), Harmonic(limit=12)], ids=["1 or 60", "uniform", "harmonic"]
)
def test_the_searched_supremum_covers_a_dense_grid(law):
    """One level that takes half of the runs, with its T written out; 400,000 values of u."""
    levels = [pure_dp(epsilon=1.0), pure_dp(epsilon=5.0)]
    promised = SelectIncreasing(levels=levels, repetitions=law).guarantee.price(0)
    u = np.exp(np.linspace(math.log(1e-5), math.log(0.5), 400_000))
    far = np.minimum(math.e * u, 0.5 - (0.5 - u) / math.e)
    found = 1.0 + float(np.max(law.log_derivative(u) - law.log_derivative(far)))
    assert found <= promised <= found + 3e-5  # the spacing of log u, times a slope below 1


def test_the_price_of_a_level_does_not_rise_with_later_budgets():
    """Later levels only take runs away from the earlier ones."""
    law = Logarithmic.with_mean(mean=10)
    mostly = [pure_dp(epsilon=0.5)] * 2  # one level alone has a bound of its own
    alone = SelectIncreasing(levels=mostly, repetitions=law, weights=[10**6, 1]).guarantee.price(0)
    for later in (0.5, 5.0, 50.0):
        levels = [pure_dp(epsilon=0.5), pure_dp(epsilon=later)]
        assert SelectIncreasing(levels=levels, repetitions=law).guarantee.price(0) < alone


def candidate(masses, clears, epsilon):
    edges = np.cumsum(masses)

    def run(random):
        outcome = min(int(np.searchsorted(edges, random.uniform(1)[0])), len(masses) - 1)
        return (1.0 if clears[outcome] else 0.0), outcome

    return PrivateCandidate(run, pure_dp(epsilon=epsilon))


@pytest.mark.full
@pytest.mark.statistical
def test_the_search_has_the_enumerated_law():
    """Chi-square of 8000 searches on the exact masses. False alarm 1e-6; a search that tries the levels in reverse, or
    runs every level once, is missed with probability below 1e-9 (its statistic is in the thousands)."""
    levels, clears = [[0.05, 0.1, 0.85], [0.3, 0.2, 0.5], [0.6, 0.3, 0.1]], [(True, True, False)] * 3
    law, count = Geometric(gamma=0.3), 8000
    expected = output_law(levels, clears, [1 / 2, 1 / 3, 1 / 6], law)
    candidates = [candidate(m, c, 1.0) for m, c in zip(levels, clears, strict=True)]
    select = SelectIncreasing(levels=[c.guarantee for c in candidates], repetitions=law, weights=[3, 2, 1])
    source, seen = keyed_source("increasing budgets"), dict.fromkeys(expected, 0)
    for _ in range(count):
        seen[select.draw(candidates, threshold=0.5, random=source)] += 1
    statistic = sum((seen[key] - count * mass) ** 2 / (count * mass) for key, mass in expected.items())
    assert statistic < chi2.isf(1e-6, len(expected) - 1)


def test_a_run_that_raises_or_scores_nan_clears_nothing():
    def fails(random):
        raise ValueError("a secret")

    levels = [pure_dp(epsilon=0.1), pure_dp(epsilon=0.2)]
    select = SelectIncreasing(levels=levels, repetitions=Geometric(gamma=0.2))
    release = select([fails, lambda random: (math.nan, "secret")], threshold=-math.inf)
    assert release.value is None
    assert release.realised.price == release.guarantee.epsilon(delta=0)
    assert "secret" not in repr(release)


def test_a_ledger_is_charged_for_what_outcome(tmp_path):
    candidates = [candidate([1.0], [clears], e) for clears, e in ((False, 0.1), (True, 0.2), (True, 2.0))]
    law = Harmonic(limit=30)
    select = SelectIncreasing(levels=[c.guarantee for c in candidates], repetitions=law)
    guarantee = select.guarantee
    budget = Ledger.open(tmp_path / "budget.db").create_budget("all", epsilon=5, delta=0)
    with budget.reserve(guarantee, label="increasing budgets") as charge:
        assert float(budget.spent().epsilon) == pytest.approx(guarantee.worst_epsilon)
        release = select(candidates, threshold=0.5, random=keyed_source(5))
        charge.settle(release.value)
    assert release.value == (1, 0)
    assert float(budget.spent().epsilon) == pytest.approx(release.realised.price) == pytest.approx(guarantee.price(1))


def test_the_delta_is_the_mean_number_of_runs_times_that_of_one():
    levels = [gaussian(noise_multiplier=s) for s in (8, 4, 2)]
    promised = SelectIncreasing(levels=levels, repetitions=Geometric(gamma=0.1), delta=1e-7).guarantee
    assert 1e-6 <= promised.delta <= 1e-6 * (1 + 1e-9)
    assert promised.price(0) >= levels[0].epsilon(1e-7)


def test_the_oracle_needs_the_whole_delta():
    """A base that gives itself away with probability d: E[K] d is attained to first order, so none of it can go."""
    d, law = 1e-5, Geometric(gamma=0.1)
    promised = SelectIncreasing(levels=[approximate_dp(epsilon=0.0, delta=d)], repetitions=law, delta=d).guarantee
    laws = [output_law([masses], [(True, False)], [1.0], law) for masses in ([d, 1.0 - d], [1e-300, 1.0])]
    keys = list(laws[0])
    attained = output_delta(
        [laws[0][k] for k in keys],
        [laws[1].get(k, 0.0) for k in keys],
        cells=[released_level(k) for k in keys],
        epsilons=dict(promised.epsilons),
    )
    assert 0.999 * promised.delta <= attained <= promised.delta


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"levels": []}, "levels"),
        ({"levels": [pure_dp(epsilon=1), pure_dp(epsilon=0.5)]}, "order of their budgets"),
        ({"levels": [gaussian(noise_multiplier=1)]}, "levels"),
        ({"levels": [gaussian(noise_multiplier=1)], "delta": 0.2}, "delta"),
        ({"levels": [pure_dp(epsilon=1)], "weights": [1, 2]}, "weights"),
        ({"levels": [pure_dp(epsilon=1)], "weights": [0]}, "weights"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        _ = SelectIncreasing(repetitions=Geometric(gamma=0.1), **arguments).guarantee


def test_candidates_fit_their_levels():
    levels = [pure_dp(epsilon=0.25), pure_dp(epsilon=0.5)]
    select = SelectIncreasing(levels=levels, repetitions=Fixed(count=1))
    one = PrivateCandidate(lambda random: (1.0, "found"), levels[0])
    for wrong, message in (([one], "as many as"), ([one, one], "promise"), ([3, one], "")):
        with pytest.raises((ArgumentError, TypeError), match=f"^candidate.*{message}"):
            select(wrong, threshold=0.5)


@pytest.mark.full
def test_the_page_prints_what_it_shows():
    page = ROOT / "docs" / "how-to/ex-post.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0
