"""Lower ends of brackets are never above anything valid: every statement of every bound; crossed ends raise."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace
from typing import ClassVar

import dp_accounting
import mpmath as mp
import numpy as np
import pytest

from dpselect.accounting import best_of, threshold_stopping
from dpselect.accounting.candidates.conditional import conditional_sampling
from dpselect.errors import BoundUnavailableError, BracketError
from dpselect.mechanisms.bounded_range_price import bounded_range
from dpselect.privacy import (
    Guarantee,
    approximate_dp,
    below,
    compose,
    dp_sgd,
    from_dp_event,
    from_profile,
    gaussian,
    laplace,
    pure_dp,
    renyi_dp,
    worst_of,
    zcdp,
)
from dpselect.privacy.below import AttainedGaussian, AttainedPair, ClosedFormLowerProfile
from dpselect.privacy.losses import below as losses_below, composition as losses_above, pairs
from dpselect.privacy.losses.discretise import PairEnclosure
from dpselect.privacy.losses.pairs import ProfilePairs, RandomizedResponsePairs
from dpselect.privacy.losses.pld import LossProfile
from dpselect.privacy.profile import RenyiProfile
from dpselect.repetitions import (
    BetaBinomial,
    Binomial,
    Fixed,
    Geometric,
    Harmonic,
    Logarithmic,
    Poisson,
    TruncatedNegativeBinomial,
    Uniform,
    capped,
)

LAW = Logarithmic.with_mean(mean=10.0)
TWO_CONCENTRATED = compose(zcdp(rho=1 / 64), zcdp(rho=1 / 64))
DELTAS = (1e-9, 1e-6, 1e-3)

BASES = {
    "pure": pure_dp(epsilon=0.7),
    "pure 0": pure_dp(epsilon=0.0),
    "approximate": approximate_dp(epsilon=0.4, delta=1e-7),
    "zcdp": zcdp(rho=0.05),
    "zcdp 0": zcdp(rho=0.0),
    "renyi": renyi_dp(orders=[2, 8, 64], epsilons=[0.1, 0.3, math.inf]),
    "laplace": laplace(scale=2.0),
    "gaussian": gaussian(noise_multiplier=3.0),
    "profile": from_profile([0.0, 0.5, 1.0], [0.3, 1e-2, 1e-8]),
    "bounded range": bounded_range(epsilon=0.8),
    "dp-sgd": dp_sgd(noise_multiplier=1.5, sampling_rate=0.05, steps=40),
    "event": from_dp_event(
        dp_accounting.ComposedDpEvent(
            [dp_accounting.PoissonSampledDpEvent(0.1, dp_accounting.GaussianDpEvent(2.0))]
            + [dp_accounting.GaussianDpEvent(5.0)] * 3
        )
    ),
    "foreign event": from_dp_event(dp_accounting.LaplaceDpEvent(2.0)),
}
COMPOSED = {
    "zcdp twice": TWO_CONCENTRATED,
    "pure and zcdp": compose(pure_dp(epsilon=0.3), zcdp(rho=0.02)),
    "laplace and a table": compose(BASES["laplace"], BASES["profile"]),
    "approximate, renyi, gaussian": compose(BASES["approximate"], BASES["renyi"], BASES["gaussian"]),
    "four kinds": compose(BASES["pure"], BASES["dp-sgd"], BASES["laplace"], zcdp(rho=0.01)),
    "with a bound": compose(BASES["bounded range"], BASES["gaussian"]),
    "nested": compose(compose(BASES["pure"], BASES["laplace"]), BASES["gaussian"]),
    "worst": worst_of(BASES["zcdp"], BASES["pure"]),
    "a search": compose(best_of(BASES["pure"], Fixed(count=2), atoms=200), BASES["gaussian"]),
}
LAWS = {
    "logarithmic": LAW,
    "geometric": Geometric.with_mean(mean=5.0),
    "negative binomial": TruncatedNegativeBinomial.with_mean(eta=-0.5, mean=4.0),
    "poisson": Poisson(mean=3.0),
    "binomial": Binomial(trials=6, probability=0.5),
    "fixed": Fixed(count=3),
    "once": Fixed(count=1),
    "harmonic": Harmonic(limit=8),
    "uniform": Uniform(limit=5),
    "beta-binomial": BetaBinomial(trials=6, shape=0.5),
    "capped": capped(Geometric.with_mean(mean=4.0), 9),
}


def stated(guarantee, delta):
    """Every epsilon that any statement of a guarantee gives."""
    return [statement.epsilon for statement in guarantee._statements(delta)]


def assert_below(lower, uppers):
    assert 0.0 <= lower <= min(uppers, default=math.inf)


# Reviewed: what was made from a bound counted as attained


def test_the_price_of_two_concentrated_runs_has_no_lower_end_above_a_valid_bound():
    """Optimal alone said (1.69816, 1.69817); the Renyi bound 1.61620 is valid, and a Gaussian needs 1.47407."""
    lower, upper = best_of(TWO_CONCENTRATED, LAW, bound="optimal", atoms=600).epsilon_bracket(delta=1e-6)
    assert lower <= best_of(TWO_CONCENTRATED, LAW, bound="renyi").epsilon(delta=1e-6) < upper
    assert 1.473 < lower < 1.475


@dataclass(frozen=True)
class TakenForAttained(ClosedFormLowerProfile):
    """A mutation: a Renyi curve's profile, or a loss distribution's, that says a pair attains it."""

    def at(self, epsilons):
        return self.profile.at(epsilons)

    def pair_source(self):
        found = ProfilePairs(self.profile)

        @dataclass(frozen=True)
        class Claimed:
            attained: ClassVar[bool] = True

            def __call__(self, atoms):
                return tuple(PairEnclosure(one.pessimistic, one.pessimistic) for one in found(atoms))

        return Claimed()


@pytest.mark.full
def test_a_renyi_curve_taken_for_attained_is_caught():
    base = zcdp(rho=1 / 32)
    mutant = replace(base, lower_profile=TakenForAttained(RenyiProfile(base.renyi_curve)))
    with pytest.raises(BracketError):
        best_of(mutant, LAW, atoms=300).epsilon_bracket(delta=1e-6)
    false = best_of(mutant, LAW, bound="optimal", atoms=300).lower_profile.epsilon_lower_bound(1e-6)
    assert false > best_of(base, LAW, bound="renyi").epsilon(delta=1e-6)
    assert ProfilePairs(RenyiProfile(base.renyi_curve)).attained is False


def test_crossed_ends_raise_and_are_not_clipped():
    crossed = replace(gaussian(noise_multiplier=4.0), lower_profile=AttainedGaussian.of(0.2501))
    with pytest.raises(BracketError, match="report"):
        crossed.epsilon_bracket(delta=1e-6)
    assert not issubclass(BracketError, ValueError)


def test_every_recipe_says_whether_it_is_attained():
    """Silence means no."""
    recipes = [
        cls for cls in vars(pairs).values() if getattr(cls, "__module__", "") == pairs.__name__ and "Pairs" in str(cls)
    ]
    recipes = [cls for cls in recipes if isinstance(cls, type)]
    assert len(recipes) >= 5
    assert all("attained" in vars(cls) for cls in (*recipes, below.MergedLowerPairs))
    assert not pairs.LossPairs(BASES["dp-sgd"].profile).attained
    silent = below.AttainedPair(lambda atoms: pairs.RandomizedResponsePairs(1.0)(atoms))
    assert replace(BASES["pure"], lower_profile=silent).attained_pairs() is None
    assert best_of(replace(BASES["pure"], lower_profile=silent), LAW, bound="optimal").lower_profile is None
    assert BASES["bounded range"].attained_pairs() is None
    for name in ("with a bound", "a search"):  # that part alone, and the others without it
        assert COMPOSED[name].lower_profile.pair_source() is None


# A wide family


@pytest.mark.cases(11)
@pytest.mark.parametrize("name", [*BASES, *COMPOSED])
def test_guarantees_lie_above_their_lower_end(name):
    g = (BASES | COMPOSED)[name]
    for delta in (0.0, 1e-300, 1e-6, 0.3):
        assert_below(g.epsilon_bracket(delta=delta)[0], stated(g, delta))


def below_every_bound(base, law, delta, bounds):
    lower = best_of(base, law, bound="optimal", atoms=150).epsilon_bracket(delta=delta)[0]
    for bound in bounds:
        try:
            total = best_of(base, law, bound=bound, atoms=150)
        except BoundUnavailableError:
            continue
        assert_below(lower, stated(total, delta))


@pytest.mark.full
@pytest.mark.parametrize(("base", "law"), list(zip([*BASES, *COMPOSED], itertools.cycle(LAWS), strict=False)), ids=str)
def test_searches_lie_above_their_lower_end(base, law):
    """One law a base, every law for some base; the cheap bounds that are sharp."""
    place = (len(base) + len(law)) % len(DELTAS)
    below_every_bound((BASES | COMPOSED)[base], LAWS[law], DELTAS[place], ("published", "optimal"))


@pytest.mark.slow
@pytest.mark.parametrize("base", [*BASES, *COMPOSED])
@pytest.mark.parametrize("law", LAWS)
def test_all_searches_lie_above_their_lower_end(base, law):
    for delta in DELTAS:
        below_every_bound(
            (BASES | COMPOSED)[base], LAWS[law], delta, ("published", "renyi", "profile", "pure", "optimal", None)
        )


FIRST = {
    "coin": lambda base: threshold_stopping(base, stop_probability=0.2),
    "limit": lambda base: threshold_stopping(base, stop_probability=0.1, max_runs=5, truncation="capped"),
    "floor": lambda base: conditional_sampling(base, floor=0.2),
}


def first_below_every_bound(base, kind):
    lower, _ = FIRST[kind](base).epsilon_bracket(delta=1e-5)
    assert_below(lower, stated(FIRST[kind](base), 1e-5))
    if kind == "floor":
        assert_below(lower, stated(conditional_sampling(base, floor=0.2, bound="published"), 1e-5))


@pytest.mark.full
@pytest.mark.parametrize(("name", "kind"), [("approximate", "limit"), ("zcdp", "floor"), ("zcdp twice", "coin")])
def test_first_acceptable_outputs_lie_above_their_lower_end(name, kind):
    first_below_every_bound((BASES | COMPOSED)[name], kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*BASES, *COMPOSED])
@pytest.mark.parametrize("kind", FIRST)
def test_all_first_acceptable_outputs_lie_above_their_lower_end(name, kind):
    first_below_every_bound((BASES | COMPOSED)[name], kind)


@pytest.mark.parametrize("name", ["gaussian", "laplace", "dp-sgd", "pure and zcdp", "laplace and a table"])
def test_optimistic_pairs_are_below_the_curve_and_near_it(name):
    g = (BASES | COMPOSED)[name]
    epsilons = np.array([0.0, 0.3, 1.0])
    for enclosure, curve in zip(g.attained_pairs()(2000), (g.lower_profile.remove, g.lower_profile.add), strict=True):
        pair, values = enclosure.optimistic, curve(epsilons)
        assert np.all(pair.hockey_stick(epsilons) <= values * (1 + 1e-9) + 1e-16)
        assert np.all(pair.hockey_stick(epsilons) >= values * 0.99 - 1e-9)


TINY = {
    "a loss of 1e-8": compose(
        from_profile(epsilons=[0.0, 0.5, 1.5], deltas=[0.36, 0.2, 0.0]),
        from_profile(epsilons=[0.0, 1e-8], deltas=[2.5e-9, 0.0]),
    ),
    "a loss of 500": compose(gaussian(noise_multiplier=1e6), from_profile(epsilons=[0.0, 500.0], deltas=[0.5, 0.1])),
    "much mass at infinity": compose(
        gaussian(noise_multiplier=0.1), from_profile(epsilons=[0.0, 1.5], deltas=[0.99999, 0.7]), pure_dp(epsilon=0.1)
    ),
}


LONGEST = {"a loss of 1e-8": 1.5, "a loss of 500": 500.0, "much mass at infinity": 200.0}


@pytest.mark.parametrize("name", TINY)
def test_a_mesh_has_about_a_million_cells_whatever_the_losses(name: str) -> None:
    """The mesh of the lower end divided the least loss, so that one of 1e-8 took 1e8 cells; a loss of 500 took 5e6."""
    guarantee, lower = TINY[name], TINY[name].lower_profile
    assert isinstance(guarantee.profile, LossProfile)
    assert isinstance(lower, below.ComposedLowerProfile)
    assert lower.width > 0.4 * guarantee.profile.interval
    assert LONGEST[name] / lower.width < 2e6


MANY = {
    "sixty of pure noise": (lambda: compose(*[laplace(scale=2.0 + 0.1 * i) for i in range(60)]), 0.006),
    "sixty pure ones": (lambda: compose(*[pure_dp(epsilon=0.1 + 0.01 * i) for i in range(60)]), 0.004),
    "forty tables": (lambda: compose(*[tabled(i) for i in range(40)]), None),
}


def tabled(i: int) -> Guarantee:
    return from_profile(epsilons=[0.0, 0.1 * i + 0.1, 1.0 + i], deltas=[0.1, 0.01, 1e-6 * (i == 0)])


@pytest.mark.full
@pytest.mark.parametrize("name", MANY)
def test_the_work_of_a_bracket_is_bounded_however_many_parts_there_are(name: str, monkeypatch) -> None:
    """Elements that are transformed, about 3e7 a second: it was several times as many for sixty parts."""
    sizes: list[int] = []
    for module in (losses_above, losses_below):
        transform = module.transformed
        monkeypatch.setattr(
            module,
            "transformed",
            lambda parts, theta, size, *rest, transform=transform: (
                sizes.append(size * len(parts)) or transform(parts, theta, size, *rest)
            ),
        )
    made, wide = MANY[name]
    lower, upper = made().epsilon_bracket(1e-6)
    assert sum(sizes) < 1.5e8
    assert lower <= upper
    assert wide is None or upper < lower * (1.0 + wide)


def test_both_directions_of_symmetric_parts_are_composed_once(monkeypatch) -> None:
    calls = []
    compose_below = below.compose_below
    monkeypatch.setattr(below, "compose_below", lambda parts: calls.append(1) or compose_below(parts))
    both = compose(laplace(scale=2.0), pure_dp(epsilon=0.3))
    both.epsilon_bracket(1e-6)
    assert len(calls) == 1
    here, other = both.lower_profile.directions
    assert here is other
    compose(laplace(scale=2.0), BASES["dp-sgd"]).epsilon_bracket(1e-6)
    assert len(calls) == 3


def test_a_tiny_loss_costs_no_accuracy() -> None:
    lower, upper = TINY["a loss of 1e-8"].epsilon_bracket(0.1)
    assert upper - 1e-6 < lower <= upper


@pytest.mark.full
def test_the_lower_end_at_delta_0_is_that_of_every_positive_delta() -> None:
    search = best_of(pure_dp(epsilon=1.0), Geometric(gamma=0.05))
    for guarantee in (search, laplace(scale=1.0), compose(laplace(scale=1.0), pure_dp(epsilon=0.3))):
        ends = [guarantee.epsilon_bracket(delta) for delta in (0.0, 1e-300, 1e-200, 1e-12, 1e-3, 0.1)]
        lowers, uppers = zip(*ends, strict=True)
        # a search finds each lower end by itself, to about 1e-8 of it
        assert all(one >= other * (1.0 - 1e-7) for one, other in itertools.pairwise(lowers))
        assert all(one >= other for one, other in itertools.pairwise(uppers))
        assert lowers[0] > 0.0


def test_a_part_that_releases_much_keeps_its_statement_in_a_composition() -> None:
    """With half of its mass or more past the last point all was lost."""
    for mass in (0.499, 0.5, 0.7, 0.9):
        part = from_profile(epsilons=[0.0, 0.5], deltas=[max(0.7, mass), mass])
        both = compose(part, pure_dp(epsilon=0.4))
        # exactly: at epsilon 0.9 and above only what is past the last point is left
        assert both.epsilon(mass + 1e-6) <= 0.9 + 1e-3
        assert mass <= both.delta(3.0) <= mass + 1e-9
        # as if the rest had a loss of 0.5 and 0.4 surely
        assert both.delta(0.2) >= both.delta(0.3) >= mass
        assert compose(both, pure_dp(epsilon=0.1)).epsilon(mass + 1e-6) <= 1.0 + 1e-3


def test_a_part_that_may_release_everything_can_be_composed_again() -> None:
    nothing = compose(from_profile(epsilons=[0.0, 0.5], deltas=[1.0, 1.0]), pure_dp(epsilon=0.4))
    again = compose(nothing, pure_dp(epsilon=0.1))
    assert again.epsilon(0.5) == nothing.epsilon(0.5) == math.inf
    assert again.delta(1.0) == 1.0


@pytest.mark.parametrize("epsilon0", [0.03, 0.7, 5.0])
def test_randomised_response_is_rounded_down(epsilon0):
    """Exactly: P has the likely answer with 1 / (1 + exp(-epsilon0)) and P' with what is left of 1."""
    attained = AttainedPair(RandomizedResponsePairs(epsilon0))
    assert attained.unit == epsilon0
    shares = np.linspace(0.0, 0.99, 20)
    with mp.workdps(40):
        likely = 1 / (1 + mp.exp(-mp.mpf(epsilon0)))
        for share, found in zip(shares, attained.remove(shares * epsilon0), strict=True):
            exact = likely - mp.exp(mp.mpf(float(share * epsilon0))) * (1 - likely)
            assert exact * (1 - mp.mpf(10) ** -11) <= mp.mpf(float(found)) <= exact
