"""Proposers that see the data: the bound covers the laws that it claims, and those only."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.accounting.best_of_k.adaptive_proposals import Ratio, adaptive_best_of, adaptive_pure
from dpselect.privacy import pure_dp
from dpselect.repetitions import (
    Fixed,
    Harmonic,
)
from tests.accounting.best_of_k.adaptive_proposals_cases import EPSILONS, LAWS, Instance


def most_on(law, instance, data, ratio, chosen, sign):
    """The most (sign 1) or least (sign -1) that a search puts on ranks `chosen`, over all proposers in the box.

    Such a proposer may know everything: the data, the number of runs, the best so far, which is all that matters; so
    going backwards over the best so far finds the optimum, a corner of the box for each.
    """
    value = sign * np.append(chosen, 0.0)  # by the best rank so far, the last entry for none
    places = np.maximum(np.append(np.arange(chosen.size), -1)[:, None, None], instance.rank)
    total = 0.0
    for k in range(1, law.limit + 1):
        worth = (value[places] * data).sum(axis=2)
        order = np.argsort(-worth, axis=1)
        spare, best = np.full(len(worth), 1.0 - ratio.lower), ratio.lower * worth @ instance.prior
        for column in order.T:
            taken = np.minimum(spare, (ratio.upper - ratio.lower) * instance.prior[column])
            best, spare = best + taken * worth[np.arange(len(worth)), column], spare - taken
        value = best
        total += float(law.pmf(k)) * value[-1]
    return sign * total


class TestProposersThatSeeTheData:
    def worst(self, law, instance, ratio):
        """H_e of the search in its worst direction, over all proposers, which may differ between the data sets."""
        ranks = instance.rank.size
        found = np.zeros(EPSILONS.size)
        for number in range(1, 2**ranks - 1):
            chosen = np.array([number >> place & 1 for place in range(ranks)], dtype=float)
            for one, two in ((instance.one, instance.two), (instance.two, instance.one)):
                most = most_on(law, instance, one, ratio, chosen, 1)
                found = np.maximum(found, most - np.exp(EPSILONS) * most_on(law, instance, two, ratio, chosen, -1))
        return found

    @pytest.mark.full
    def test_the_profile_bound_covers_them(self):
        generator = np.random.default_rng(11)
        for law in LAWS:
            instance = Instance(generator, epsilon=generator.choice([0.1, 0.5, 1.5]), candidates=3)
            for ratio in (Ratio(0.9, 1.1), Ratio(0.3, 3.0)):
                priced = adaptive_best_of(
                    instance.guarantee, law, lower_ratio=ratio.lower, upper_ratio=ratio.upper, bound="profile"
                )
                bound = np.array([priced.delta(e) for e in EPSILONS])
                assert np.all(self.worst(law, instance, ratio) <= bound * (1 + 1e-9) + 1e-12)

    def test_bounds_that_compose_do_not(self):
        instance, ratio = Instance(np.random.default_rng(1), epsilon=0.02), Ratio(0.3, 3.0)
        priced = adaptive_best_of(pure_dp(epsilon=0.02), Fixed(count=2), lower_ratio=0.3, upper_ratio=3.0, bound="pure")
        assert self.worst(Fixed(count=2), instance, ratio)[0] > 2 * priced.delta(0.0)


def test_the_named_bound_is_used_where_nothing_adapts():
    base, law = pure_dp(epsilon=1.0), Harmonic(limit=50)
    found = adaptive_best_of(base, law, lower_ratio=1.0, upper_ratio=1.0, bound="pure")
    assert found.theorem == "the smallest of the bounds for adaptive proposals"
    assert found.terms["bound"] == "pure"
    assert found.pure_epsilon == adaptive_pure(law=law, epsilon=1.0, ratio=Ratio(1.0, 1.0))
    assert found.pure_epsilon == pytest.approx(best_of(base, law, bound="pure").pure_epsilon)
