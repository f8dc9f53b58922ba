"""How a portfolio of a caller's own runs draws: by the law that is priced, with exact scores and sources apart."""

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import pytest

from dpselect.accounting.planning.portfolio import PortfolioPrice
from dpselect.mechanisms import ExponentialMechanism
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.tuning.designs import PortfolioDesign, _PortfolioObjective
from dpselect.tuning.trial import decode_value
from tests.audits.score_laws import exponential_law

TRIALS, LAST, AHEAD = (1.0, 1.0), (1 / 0.5, 1 / 0.4), 1


def answer(labels, params, random, noise):
    """One class for all rows: the exponential mechanism on how many have it; the first setting is told nothing."""
    law = exponential_law([labels.count(0), labels.count(1)], params["told"] / noise)
    return int(random.uniform(1)[0] > law[0])


def law(labels, rate):
    found = Counter()
    told = [
        [exponential_law([labels.count(0), labels.count(1)], t / n) for t, n in zip((0.5, 2.0), noises, strict=True)]
        for noises in (TRIALS, LAST)
    ]
    for first in (0, 1):
        for second in (0, 1):
            sums = [2.0 * labels.count(first) + AHEAD * 2.0, 2.0 * labels.count(second)]
            for place, p in enumerate(exponential_law(sums, rate)):
                for value in (0, 1):
                    chance = told[0][0][first] * told[0][1][second] * p * told[1][place][value]
                    found[place, value] += float(chance)
    return found


def test_a_portfolio_draws_by_the_law_that_is_priced():
    """Trials at their noise, the score in steps of its sensitivity with the head start, the last run at its noise."""
    labels = [0, 1, 1]
    choice = ExponentialMechanism(sensitivity=2.0, epsilon=1.0, monotonic=True)
    price = PortfolioPrice(TRIALS, (), choice, LAST, pure_dp(epsilon=1.0), AHEAD)
    run = _PortfolioObjective(
        partial(answer, labels),
        PortfolioDesign(score=lambda value: 2.0 * labels.count(value)),
        [{"told": 0.5}, {"told": 2.0}],
        price,
    )
    draws, found = 200, Counter()
    for each in range(draws):
        place, payload = run({}, keyed_source(f"portfolio {each}")).value
        found[place, decode_value(payload)] += 1
    for outcome, chance in law(labels, float(choice.rate)).items():
        assert abs(found[outcome] / draws - chance) < 4.0 * math.sqrt(chance * (1.0 - chance) / draws)


class Told(ExponentialMechanism):
    """A choice that tells the scores that it is given."""

    def __call__(self, scores, *, random):
        raise Scores(scores)


class Scores(BaseException):
    pass


@pytest.mark.parametrize(("ahead", "weights"), [(3, 0), (7_000_000_001, 0), (3, 10)])
@pytest.mark.parametrize("score", [2.0**53, 1 - 2.0**53, 2.0**53 + 3, 1 - 2.0**-53, 2.0**20 - 2.0**-32, 0.1, -1e300])
def test_a_head_start_does_not_drive_the_scores_of_neighbours_apart(score, ahead, weights):
    """Added to doubles it would round: of 2**53 and 2**53 - 1, with 3 more, the one is 2 above the other."""
    choice = Told(sensitivity=1.0, epsilon=1.0)
    price = PortfolioPrice(TRIALS, (), choice, LAST, pure_dp(epsilon=1.0), ahead)

    def compared(value):
        design = PortfolioDesign(score=lambda _: value, weights=lambda setting: setting["weights"])
        settings = [{"weights": 0}, {"weights": weights}]
        run = _PortfolioObjective(lambda setting, *_: setting, design, settings, price)
        with pytest.raises(Scores) as told:
            run({}, keyed_source(1))
        return [Fraction(each) for each in told.value.args[0]]

    found = compared(score)
    behind = -weights // 2
    assert found[0] - found[1] == ahead - behind
    assert 0 <= Fraction(min(max(score, -(2.0**41)), 2.0**41)) + behind - found[1] < 2.0**-11
    for less in (0.25, 1.0):
        if Fraction(score) - Fraction(score - less) <= 1:  # rounding counted
            moved = [before - after for before, after in zip(found, compared(score - less), strict=True)]
            assert all(0 <= each <= 1 for each in moved)


@pytest.mark.parametrize(
    ("count", "expected"),
    [(lambda value: 1 / 0, 1.0), (lambda value: math.nan, 1.0), (lambda value: -4 * value, 1.0), (float, 0.0)],
)
def test_weights_that_are_no_number_take_nothing_off(count, expected):
    """Of a function that works, the two weights that the second setting has more take a row."""
    choice = Told(sensitivity=1.0, epsilon=1.0)
    price = PortfolioPrice(TRIALS, (), choice, LAST, pure_dp(epsilon=1.0))
    design = PortfolioDesign(score=lambda _: 1.0, weights=count)
    run = _PortfolioObjective(lambda setting, *_: setting["w"], design, [{"w": 1}, {"w": 3}], price)
    with pytest.raises(Scores) as told:
        run({}, keyed_source(1))
    assert told.value.args[0] == [1.0, expected]


def test_the_runs_of_a_portfolio_and_its_choice_draw_of_sources_of_their_own():
    drawn = []

    class Drawing(ExponentialMechanism):
        def __call__(self, scores, *, random):
            drawn.append(random.bytes(16))
            return super().__call__(scores, random=random)

    choice = Drawing(sensitivity=1.0, epsilon=1.0)
    price = PortfolioPrice(TRIALS, (), choice, LAST, pure_dp(epsilon=1.0))
    design = PortfolioDesign(score=lambda _: 0.0)
    run = _PortfolioObjective(lambda _, random, __: drawn.append(random.bytes(16)), design, [{}, {}], price)
    run({}, keyed_source(1))
    assert len(set(drawn)) == len(drawn) == 4
