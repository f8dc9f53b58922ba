"""Adaptive proposals in the tuner: the box holds no matter what a proposer does, and it learns from runs alone."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpselect.accounting.best_of_k.adaptive_proposals import adaptive_best_of
from dpselect.errors import ArgumentError, BudgetError
from dpselect.privacy import pure_dp, worst_of
from dpselect.repetitions import Fixed, Geometric, Harmonic, Uniform as UniformRuns
from dpselect.tuning import (
    AdaptiveProposal,
    Categorical,
    GaussianProcessProposer,
    ProcessExecutor,
    Space,
    tune,
)
from dpselect.tuning.machine import Search
from dpselect.tuning.proposals import project, trial_token
from dpselect.tuning.trial import trial_params
from tests.tuning.proposers import BASE, SPACE, Greedy, Says, greedy, noisy, run

pytestmark = pytest.mark.usefixtures("state")


class TestBox:
    @pytest.mark.full
    @given(
        wanted=st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=1, max_size=30),
        lower=st.floats(1e-6, 1.0),
        upper=st.floats(1.0, 1e6),
    )
    def test_weights_are_in_the_box_whatever_is_wanted(self, wanted, lower, upper):
        """In exact arithmetic: integers against the ratios' own binary fractions."""
        count = len(wanted)
        weights = project(np.array(wanted), count, lower_ratio=lower, upper_ratio=upper)
        assert sum(weights) == count * 2**32
        assert all(isinstance(weight, int) for weight in weights)
        top, bottom = upper.as_integer_ratio(), lower.as_integer_ratio()
        for weight in weights:
            assert bottom[0] * 2**32 <= weight * bottom[1]
            assert weight * top[1] <= top[0] * 2**32

    def test_weights_follow_the_order_of_what_is_wanted(self):
        wanted = np.array([0.1, 5.0, 1.0, 1.1, 0.0])
        weights = project(wanted, 5, lower_ratio=0.4, upper_ratio=1.8)
        assert np.all(np.diff(np.array(weights)[np.argsort(wanted)]) >= 0)
        assert weights[1] == math.floor(1.8 * 2**32)

    def test_ratios_of_one_leave_the_law_of_the_space(self):
        assert set(project(np.array([1.0, 0.0, 9.0]), 3, lower_ratio=1.0, upper_ratio=1.0)) == {2**32}

    @pytest.mark.parametrize(
        "answer", [[1.0], "text", None, [math.nan] * 4, [-1.0] * 4, [0.0] * 4, [math.inf] * 4, ValueError("secret")]
    )
    def test_a_proposer_that_errs_proposes_from_the_space(self, answer):
        proposal = AdaptiveProposal(Says(answer), lower_ratio=0.5, upper_ratio=2.0, pool=4)
        search = proposal.propose(SPACE, Search(slots=3, executed=3, counted=3))
        assert proposal.runnable(search) == [0]
        plain = AdaptiveProposal(Says([1.0] * 4), lower_ratio=0.5, upper_ratio=2.0, pool=4)
        assert search == plain.propose(SPACE, Search(slots=3, executed=3, counted=3))

    @pytest.mark.full
    def test_the_law_of_a_proposal(self):
        """Greedy weights on {0, 1}: the larger value has density min(upper, ...) relative to its prior 1/2, exactly.

        A pool of 2 from two values: both alike w.p. 1/2, else the larger is picked with chance 1.6/2. So it has chance
        1/4 + 1/2 * 0.8 = 0.65, a density of 1.3. 2,000 trials; a wrong alarm has chance below 1e-6 (Hoeffding), and a
        density of 1.6 or 1.0 is found with chance above 1 - 1e-9.
        """
        space = Space({"x": Categorical([0.0, 1.0])})
        proposal = AdaptiveProposal(Greedy(), lower_ratio=0.4, upper_ratio=1.6, pool=2, batch=2000)
        search = proposal.propose(space, Search(slots=2000, executed=2000, counted=2000, master=b"m" * 32))
        found = Counter(trial_params(space, trial_token(search, index))["x"] for index in range(2000))
        assert abs(found[1.0] / 2000 - 0.65) < 0.061


class TestSearches:
    def test_history_holds_what_was_run(self):
        proposal = greedy()
        seen = []

        def objective(params, random):
            seen.append((dict(params), 1.0 + params["x"]))
            return 1.0 + params["x"], b""

        run(proposal, objective=objective)
        shown = proposal.proposer.seen
        assert [len(history) for history, _ in shown] == list(range(6))
        for turn, (history, candidates) in enumerate(shown):
            assert [(run.params, run.score) for run in history] == seen[:turn]
            assert len(candidates) == 16
            assert seen[turn][0] in candidates

    def test_batches_see_earlier_batches_only(self):
        proposal = greedy(batch=4)
        run(proposal, Fixed(count=10))
        assert [len(history) for history, _ in proposal.proposer.seen] == [0] * 4 + [4] * 4 + [8] * 2

    def test_pools_are_fresh(self):
        proposal = greedy()
        run(proposal)
        every = [candidate["x"] for _, candidates in proposal.proposer.seen for candidate in candidates]
        assert len(set(every)) == len(every) == 6 * 16

    def test_failures_and_no_numbers_are_the_worst_score(self):
        proposal = greedy()
        answers = iter([1.0, None, math.nan, -3.0, math.inf, 0.0])

        def objective(params, random):
            answer = next(answers)
            if answer is None:
                raise ValueError
            return answer, b""

        run(proposal, objective=objective)
        scores = [observation.score for observation in proposal.proposer.seen[-1][0]]
        assert scores == [1.0, -math.inf, -math.inf, -3.0, math.inf]

    def test_the_same_key_gives_the_same_search(self):
        first, second, other = (run(greedy(), key=key) for key in (7, 7, 8))
        assert (first.params, first.value) == (second.params, second.value)
        assert other.params != first.params
        assert first.value == first.params["x"]
        assert run(None).params != first.params

    @pytest.mark.full
    def test_an_executor_does_not_change_it(self):
        inline = run(greedy(batch=3), Fixed(count=7))
        workers = run(greedy(batch=3), Fixed(count=7), executor=ProcessExecutor(workers=2))
        assert (inline.params, inline.value) == (workers.params, workers.value)

    @pytest.mark.full
    def test_price(self):
        law = Harmonic(limit=20)
        adaptive = run(greedy(), law).guarantee
        expected = adaptive_best_of(BASE, law, lower_ratio=0.5, upper_ratio=2.0)
        assert adaptive.epsilon(1e-6) == expected.epsilon(1e-6) > run(None, law).guarantee.epsilon(1e-6)
        assert adaptive.terms["mechanism"] == "adaptive-best-of"
        parts = tune(noisy, space=SPACE, base=[BASE, pure_dp(epsilon=0.1)], repetitions=law, proposal=greedy())
        assert parts.guarantee.epsilon(0.0) == worst_of(expected).epsilon(0.0)

    @pytest.mark.full
    def test_budget(self):
        with pytest.raises(BudgetError, match="above the total 1"):
            run(greedy(), Harmonic(limit=20), epsilon=1.0, delta=0.0)
        longest = tune(noisy, space=SPACE, base=pure_dp(epsilon=0.1), epsilon=1.0, delta=0.0, proposal=greedy())
        assert longest.guarantee.epsilon(0.0) <= 1.0

    @pytest.mark.full
    def test_it_finds_better_settings(self):
        """16 runs, box [0.1, 8], 12 keys: the mean x of a run is 1/2 from the space's law, larger with proposals.

        The mean of 192 independent uniforms exceeds 0.7 with chance below 1e-6 (Hoeffding).
        """
        places = []
        for key in range(12):
            run(
                AdaptiveProposal(GaussianProcessProposer(), lower_ratio=0.1, upper_ratio=8.0),
                Fixed(count=16),
                objective=lambda params, random: (places.append(params["x"]), noisy(params, random))[1],
                key=key,
            )
        assert np.mean(places) > 0.7

    def test_constant_runs(self):
        """Runs past K are made and proposed, and count for nothing."""
        proposal = greedy()
        result = run(proposal, UniformRuns(limit=6), constant_runs=True)
        assert len(proposal.proposer.seen) == 6
        assert result.params == run(greedy(), UniformRuns(limit=6)).params


class TestRefusals:
    def test_a_proposal_must_be_one(self):
        for wrong in (Greedy(), lambda history, candidates: [1], "tpe", object()):
            with pytest.raises(TypeError, match="proposal must be an AdaptiveProposal"):
                run(wrong)

    def test_a_sampler_is_no_proposer(self):
        class Sampler:
            def suggest(self):
                return {"x": 1.0}

            def describe(self):
                return {}

        for wrong in (Sampler(), Greedy, lambda history, candidates: [1.0], None):
            with pytest.raises(TypeError, match="cannot be held to a density ratio"):
                AdaptiveProposal(wrong, lower_ratio=0.5, upper_ratio=2.0)

    def test_ratios_and_sizes(self):
        for lower, upper in ((0.0, 2.0), (1.5, 2.0), (0.5, 0.8), (0.5, math.inf), (math.nan, 2.0)):
            with pytest.raises(ArgumentError, match="_ratio"):
                greedy(lower_ratio=lower, upper_ratio=upper)
        with pytest.raises(ArgumentError, match="pool"):
            greedy(pool=1)
        with pytest.raises(ArgumentError, match="batch"):
            greedy(batch=0)

    def test_laws_without_a_limit(self):
        with pytest.raises(ArgumentError, match="law with a limit"):
            run(greedy(), Geometric(gamma=0.2))
        with pytest.raises(ArgumentError, match="as many slots"):
            run(greedy(), Fixed(count=6), slots=5)
        assert run(greedy(), Geometric(gamma=0.2).at_most(10)).guarantee.epsilon(0.0) < math.inf
