"""Samplers of batches: their laws, training that continues, and numbers that do not belong together."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus.batch_samplers import (
    SAMPLINGS,
    FixedBatches,
    PoissonBatches,
    RandomAllocation,
    _uniform_below,
    sampler_of,
)
from dpselect.privacy import dp_sgd, fixed_batches, random_allocation
from dpselect.randomness import keyed_source

SAMPLERS = (PoissonBatches(0.25, 12), RandomAllocation(4, 3), FixedBatches(40, 10, 12))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=str)
@pytest.mark.parametrize("done", [0, 3, 4, 11, 12])
def test_a_training_that_continues_draws_the_same_batches(sampler, done):
    whole = [batch.tolist() for batch in sampler.batches(40, keyed_source(1))]
    rest = [batch.tolist() for batch in sampler.batches(40, keyed_source(1), done)]
    assert len(whole) == 12
    assert rest == whole[done:]
    assert all(batch == sorted(set(batch)) and set(batch) <= set(range(40)) for batch in whole)


def test_each_row_is_in_one_batch_of_every_epoch():
    batches = list(RandomAllocation(7, 3).batches(500, keyed_source(2)))
    epochs = [batches[k : k + 7] for k in (0, 7, 14)]
    for epoch in epochs:
        assert sorted(np.concatenate(epoch).tolist()) == list(range(500))
    assert [b.tolist() for b in epochs[0]] != [b.tolist() for b in epochs[1]]


@pytest.mark.parametrize("steps", [3, 7])
def test_rows_draw_their_steps_uniformly_and_independently(steps):
    """Pairs of rows, and one row in two epochs: chi-squared tests that fail once in 1e6 with a right sampler."""
    together, again = Counter(), Counter()
    for key in range(40):
        batches = list(RandomAllocation(steps, 2).batches(100, keyed_source(key)))
        drawn = np.empty((2, 100), dtype=int)
        for k, batch in enumerate(batches):
            drawn[k // steps, batch] = k % steps
        together.update(zip(drawn[0, ::2].tolist(), drawn[0, 1::2].tolist(), strict=True))
        again.update(zip(*drawn.tolist(), strict=True))
    for found in (together, again):
        cells = [found[pair] for pair in itertools.product(range(steps), repeat=2)]
        assert stats.chisquare(cells).pvalue > 1e-6


def test_every_sample_of_fixed_size_is_as_likely():
    found = Counter(
        tuple(batch.tolist()) for key in range(10) for batch in FixedBatches(6, 3, 200).batches(6, keyed_source(key))
    )
    assert len(found) == 20
    assert stats.chisquare(list(found.values())).pvalue > 1e-6


def test_a_large_number_of_steps_needs_no_rows():
    assert [len(batch) for batch in RandomAllocation(5, 2).batches(0, keyed_source(1))] == [0] * 10
    assert sum(len(batch) for batch in RandomAllocation(1, 1).batches(9, keyed_source(1))) == 9


def test_the_price_is_that_of_the_constructor():
    expected = {
        "poisson": dp_sgd(noise_multiplier=2, sampling_rate=0.25, steps=8),
        "random-allocation": random_allocation(noise_multiplier=2, steps_per_epoch=4, epochs=2),
        "fixed-batches": fixed_batches(noise_multiplier=2, dataset_size=40, batch_size=10, steps=8),
    }
    for name in SAMPLINGS:
        sampler = sampler_of(name, sampling_rate=0.25, steps=8, batch_size=10.0)
        found = sampler.guarantee(2.0, expected[name].adjacency.value)
        assert found.epsilon(delta=1e-6) == expected[name].epsilon(delta=1e-6)


def test_numbers_that_do_not_belong_together_are_refused():
    cases = (
        ("random-allocation", 0.3, 12, 10.0, "sampling_rate"),
        ("random-allocation", 0.25, 10, 10.0, "steps"),
        ("fixed-batches", 0.25, 8, 10.5, "expected_batch_size"),
        ("fixed-batches", 0.3, 8, 10.0, "sampling_rate"),
        ("shuffle", 0.25, 8, 10.0, "sampling"),
    )
    for name, rate, steps, size, word in cases:
        with pytest.raises(ArgumentError, match=word):
            sampler_of(name, sampling_rate=rate, steps=steps, batch_size=size)
    with pytest.raises(ArgumentError, match="inputs"):
        FixedBatches(40, 10, 8).check(39)


def test_words_past_the_last_multiple_are_drawn_again():
    class Scripted:
        def __init__(self, *answers):
            self.answers = list(answers)

        def words(self, count):
            found = np.frombuffer(np.array(self.answers.pop(0), dtype=np.uint64).tobytes(), dtype=np.uint64)
            assert len(found) == count
            return found  # read-only, as a source's own

    random = Scripted([2**64 - 1, 5], [2**64 - 1], [7])
    assert _uniform_below(3, 2, random).tolist() == [1, 2]


@pytest.mark.parametrize("sampling", ["random-allocation", "fixed-batches"])
def test_a_rate_whose_inverse_overflows_is_refused_by_name(sampling):
    with pytest.raises(ArgumentError, match="sampling_rate"):
        sampler_of(sampling, sampling_rate=1e-310, steps=8, batch_size=10.0)
