"""Guarantees of sessions say that they are interactive, and the ledger locks by itself."""

from __future__ import annotations

import copy
import pickle

import pytest

from dpselect.accounting import iterative
from dpselect.accounting.candidates.sampled_search import smoothed_odds
from dpselect.ledger import InteractionOpenError, Ledger
from dpselect.mechanisms import BrownianReduction, LaplaceReduction, SparseRelease, SparseVector
from dpselect.privacy import OutputGuarantee, compose, gaussian, pure_dp, worst_of
from dpselect.privacy.output.calculus import coarsen, first_answer, mixture, parallel, pointwise_minimum
from dpselect.selection import PercentileSparseVector, SampledSparseVector

STEP = pure_dp(epsilon=0.1)


def sparse_vector():
    return SparseVector(epsilon_threshold=0.1, epsilon_queries=0.4, max_positives=4)


def percentile():
    return PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=1.0)


def sampled():
    statistic = smoothed_odds(STEP, samples=1000, max_queries=5, delta=1e-6, slack=0.25, smoothing=60.0)
    return SampledSparseVector(guarantee=STEP, statistic=statistic, epsilon=1.0, max_queries=5)


INTERACTIVE = {
    "sparse vector": lambda: sparse_vector().guarantee,
    "sparse vector, refined": lambda: sparse_vector().refined_guarantee,
    "sparse vector, worst": lambda: sparse_vector().guarantee.worst(),
    "percentile": lambda: percentile().guarantee,
    "percentile, worst": lambda: percentile().worst,
    "sampled": lambda: sampled().guarantee,
    "sampled, worst": lambda: sampled().worst,
    "Laplace levels": lambda: LaplaceReduction(epsilons=[0.1, 0.2], sensitivity=1).open(5).guarantee,
    "Gaussian levels": lambda: (
        BrownianReduction(noise_multipliers=[20, 10], delta=1e-6, sensitivity=1).open(5.0).guarantee
    ),
    "stopping points": lambda: iterative([STEP] * 4, stops=[2, 4], delta=1e-6),
    "composed with another": lambda: compose(sparse_vector().guarantee.worst(), STEP),
    "a pickled one": lambda: pickle.loads(
        pickle.dumps(LaplaceReduction(epsilons=[0.1], sensitivity=1).open(5).guarantee)
    ),
    "a copied one": lambda: copy.deepcopy(sparse_vector().guarantee),
}


@pytest.mark.cases(5)
@pytest.mark.parametrize("name", INTERACTIVE)
def test_the_ledger_locks_what_says_that_it_is_interactive(tmp_path, name):
    guarantee = INTERACTIVE[name]()
    assert guarantee.interactive
    with Ledger.open(tmp_path / "budget.db") as ledger:
        budget = ledger.create_budget("b", epsilon=9, delta="1e-3")
        budget.reserve(guarantee, label="session", identifier="s", interactive=False)
        for call in (
            lambda: budget.reserve(STEP, label="another"),
            lambda: budget.at(delta=0).reserve(STEP, label="another", identifier="o"),
        ):
            with pytest.raises(InteractionOpenError, match="'s'"):
                call()
        budget.settle("s")
        running = budget.reserve(STEP, label="another")
        with pytest.raises(InteractionOpenError):
            budget.at(delta="1e-4").reserve(guarantee, label="session", identifier="t")
        running.settle()
        assert ledger.verify()


ONCE = OutputGuarantee(cell=bool, epsilons={True: 0.2, False: 0.1})


AT_ONCE = {
    "pure": STEP,
    "by output": ONCE,
    "its worst": ONCE.worst(),
    "composed": compose(STEP, STEP),
    "Gaussians composed": compose(gaussian(noise_multiplier=9), gaussian(noise_multiplier=9)),
    "a search and its release": SparseRelease(
        epsilon_threshold=0.1, epsilon_queries=0.1, epsilon_release=0.1, max_positives=2
    ).guarantee,
}


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_answers_once_is_not_locked(tmp_path, name):
    guarantee = AT_ONCE[name]
    assert not guarantee.interactive
    with Ledger.open(tmp_path / "budget.db") as ledger:
        budget = ledger.create_budget("b", epsilon=9, delta="1e-3", delta_each="1e-4")
        for label in ("one", "two"):
            budget.reserve(guarantee, label=label)


def test_the_calculus_keeps_it():
    session = OutputGuarantee(cell=bool, epsilons={True: 0.2, False: 0.1}, interactive=True)
    made = [
        coarsen(session, merge=lambda cell: cell),
        mixture({"a": (0.5, session), "b": (0.5, ONCE)}),
        parallel(ONCE, session),
        pointwise_minimum([ONCE, session]),
        first_answer([ONCE, session], none=False),
    ]
    assert all(one.interactive for one in made)
    gaussians = [INTERACTIVE["Gaussian levels"]().worst(), gaussian(noise_multiplier=9)]
    assert compose(*gaussians).interactive
    assert worst_of(*gaussians).interactive
