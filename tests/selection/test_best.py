"""Best-of-K and threshold stopping on private candidates: exact laws of what is released."""

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.accounting.candidates.threshold import threshold_stopping
from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Geometric, Harmonic, Poisson, capped
from dpselect.selection import select_above, select_best, uniform_mixture
from dpselect.selection.best import best_outcome
from tests.selection.best_cases import assert_law, die, frequencies, output_of

BASE = pure_dp(epsilon=1.0)


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("law", [Geometric(gamma=0.3), Harmonic(limit=4), Poisson(mean=1.0)], ids=str)
def test_the_law_of_the_best(law):
    """P(best <= y) is the generating function at P(one run <= y)."""
    found = frequencies(lambda s: output_of(best_outcome(die, law, s)))
    below = [law.pgf(x) for x in (0.0, 1 / 3, 2 / 3, 1.0)]
    expected = {None: below[0]} if below[0] > 0 else {}
    assert_law(found, expected | {face: below[face + 1] - below[face] for face in range(3)})


def test_guarantees_are_those_of_the_accounting():
    law = Harmonic(limit=4)
    release = select_best(die, repetitions=law, guarantee=BASE, random=keyed_source(1))
    assert release.guarantee.epsilon(0.0) == best_of(BASE, law).epsilon(0.0)
    assert release.replayable
    above = select_above(die, threshold=0, stop_probability=0.1, max_runs=20, guarantee=BASE)
    expected = threshold_stopping(BASE, stop_probability=0.1, max_runs=20)
    assert above.guarantee.epsilon(0.0) == expected.epsilon(0.0) <= 2.0 * (1 + 1e-9)
    assert not above.replayable


@pytest.mark.full
@pytest.mark.parametrize(
    "law", [capped(Geometric(gamma=0.1), 5), Geometric(gamma=0.1).at_most(5)], ids=["capped", "cut"]
)
def test_two_ways_to_limit_the_runs_are_two_laws(law):
    """min(K, 5) costs more than 3 epsilon, K given K <= 5 less; each is priced by the law that is run."""
    release = select_best(die, repetitions=law, guarantee=pure_dp(epsilon=1.0), random=keyed_source(2))
    assert release.guarantee.epsilon(0.0) == best_of(pure_dp(epsilon=1.0), law).epsilon(0.0)
    # Liu, Talwar 2019: exact constants of the two truncations
    expected = 3.01226050 if law.pmf(5) > 0.5 else 2.18859530
    assert release.guarantee.epsilon(0.0) == pytest.approx(expected, rel=1e-6)
    ran = []
    for key in range(50):
        ran.clear()
        select_best(lambda r: (ran.append(1) or 0.0, 0), repetitions=law, guarantee=BASE, random=keyed_source(key))
        assert 1 <= len(ran) <= 5


def test_failures_and_nan_rank_last():
    scores = iter([float("nan"), -np.inf, None, 1e-300])

    def candidate(random):
        score = next(scores)
        return score, f"score {score}"

    assert select_best(candidate, repetitions=Fixed(count=4), guarantee=BASE).value == "score 1e-300"


def test_nothing_found_looks_alike():
    def failing(random):
        raise RuntimeError("secret")

    crashed = select_best(failing, repetitions=Fixed(count=3), guarantee=BASE, random=keyed_source(1))
    empty = select_best(die, repetitions=Poisson(mean=1e-9), guarantee=BASE, random=keyed_source(1))
    assert crashed.value is None
    assert empty.value is None
    above = select_above(failing, threshold=-1e9, stop_probability=0.5, guarantee=BASE, random=keyed_source(1))
    assert above.value is None


def test_ties_are_broken_at_random():
    """Two outputs of one score: over 2,000 selections each wins about half (ten standard errors)."""
    source = keyed_source("ties")
    outputs = [best_outcome(lambda r: (0.0, r.bits(1)), Fixed(count=2), source).output for _ in range(2000)]
    assert abs(np.mean(outputs) - 0.5) < 10 * 0.5 / 2000**0.5


def test_only_drawn_candidates_run():
    ran = []

    def make(i):
        return lambda random: (ran.append(i) or 0.0, i)

    mixture = uniform_mixture([make(i) for i in range(1000)])
    select_best(mixture, repetitions=Fixed(count=5), guarantee=BASE, random=keyed_source(3))
    assert len(ran) == 5


def test_wrong_arguments():
    with pytest.raises(TypeError, match="candidate"):
        select_best(3, repetitions=Fixed(count=1), guarantee=BASE)
    with pytest.raises(ArgumentError, match="stop_probability"):
        select_above(die, threshold=0, stop_probability=0.0, guarantee=BASE)
    with pytest.raises(ArgumentError, match="threshold"):
        select_above(die, threshold=float("nan"), stop_probability=0.5, guarantee=BASE)
    with pytest.raises(ArgumentError, match="candidates"):
        uniform_mixture([])


def test_no_secret_in_a_release():
    release = select_best(die, repetitions=Geometric(gamma=0.1), guarantee=BASE, random=keyed_source(1))
    assert set(vars(release)) == {"value", "guarantee", "receipt", "replayable", "realised"}
