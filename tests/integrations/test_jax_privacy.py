"""JAX-Privacy by its DpEvents: adjacency, the integer trap of dp-accounting, schedules, and the library itself."""

import math
from enum import Enum
from types import SimpleNamespace

import dp_accounting
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent, SelfComposedDpEvent

from dpselect.errors import ArgumentError
from dpselect.integrations.jax_privacy import (
    check_clipped_gradient,
    event_guarantee,
    params_guarantee,
    plan_guarantee,
)
from dpselect.privacy import compose, dp_sgd

ORDERS = [2, 4, 8, 16, 32, 64]
ADD = NeighboringRelation.ADD_OR_REMOVE_ONE
Partition = Enum("Partition", "INDEPENDENT EQUAL_SPLIT")
Sampling = Enum("Sampling", "POISSON FIXED_BATCH_SIZE")


def event(noise, rate=0.1, steps=100):
    return SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(noise)), steps)


def config(relation=ADD, partition=Partition.INDEPENDENT, truncated=None, noise=1.5):
    return SimpleNamespace(
        accountant=dp_accounting.pld.PLDAccountant(relation),
        partition_type=partition,
        truncated_batch_size=truncated,
        plan=SimpleNamespace(dp_event=event(noise)),
    )


def params(**changes):
    settings = {
        "noise_multipliers": 1.0,
        "num_samples": 1000,
        "batch_sizes": 100,
        "sampling_method": Sampling.POISSON,
        "truncated_batch_size": None,
        "cycle_length": None,
        "examples_per_user": None,
        "is_finite_guarantee": True,
    }
    return SimpleNamespace(**{**settings, **changes})


def test_the_trap_is_there_and_we_are_not_in_it():
    """In a sample of ten Gaussians (a step with ten releases) dp-accounting 0.6.0 counts one if the noise is an int."""

    def tenfold(noise):
        return PoissonSampledDpEvent(0.1, SelfComposedDpEvent(GaussianDpEvent(noise), 10))

    whole, right = (dp_accounting.rdp.RdpAccountant(ORDERS).compose(tenfold(n)).get_epsilon(1e-5) for n in (4, 4.0))
    once = dp_accounting.rdp.RdpAccountant(ORDERS).compose(event(4.0, steps=1)).get_epsilon(1e-5)
    assert whole == once < right / 2
    ours = [event_guarantee(tenfold(noise), neighboring_relation=ADD).epsilon(1e-5) for noise in (4, 4.0)]
    assert ours[0] == ours[1] > 2 * event_guarantee(event(4, steps=1), neighboring_relation=ADD).epsilon(1e-5)


@pytest.mark.full
def test_a_plans_guarantee():
    found = plan_guarantee(config())
    assert found.adjacency.value == "add_or_remove_one"
    assert found.epsilon(1e-5) == pytest.approx(
        dp_sgd(noise_multiplier=1.5, sampling_rate=0.1, steps=100).epsilon(1e-5), rel=1e-3
    )
    replaced = plan_guarantee(config(NeighboringRelation.REPLACE_ONE, Partition.EQUAL_SPLIT))
    assert replaced.adjacency.value == "replace_one"
    assert replaced.epsilon(1e-5) > found.epsilon(1e-5)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((NeighboringRelation.REPLACE_SPECIAL, Partition.EQUAL_SPLIT), "REPLACE_SPECIAL"),
        ((ADD, Partition.EQUAL_SPLIT), "INDEPENDENT"),
        ((ADD, Partition.INDEPENDENT, 64), "truncated"),
    ],
)
def test_plans_without_a_guarantee_here(arguments, match):
    with pytest.raises(ArgumentError, match=match):
        plan_guarantee(config(*arguments))


def test_wrong_objects():
    with pytest.raises(TypeError, match="BandMFExecutionPlanConfig"):
        plan_guarantee(3)
    with pytest.raises(TypeError, match="DpParams"):
        params_guarantee(3, steps=1, size_is_public=True)
    with pytest.raises(ArgumentError, match="NonPrivate"):
        event_guarantee(dp_accounting.NonPrivateDpEvent(), neighboring_relation=ADD)


def test_params_with_and_without_schedules():
    plain = params_guarantee(params(), steps=50, size_is_public=True)
    assert plain.epsilon(1e-5) == dp_sgd(noise_multiplier=1, sampling_rate=0.1, steps=50).epsilon(1e-5)
    changing = params(noise_multipliers=[(30, 2), (0, 1)], batch_sizes=[(0, 100), (40, 200), (90, 400)])
    parts = [(30, 1, 0.1), (10, 2, 0.1), (10, 2, 0.2)]
    expected = compose(*[dp_sgd(noise_multiplier=n, sampling_rate=q, steps=s) for s, n, q in parts])
    assert params_guarantee(changing, steps=50, size_is_public=True).epsilon(1e-5) == expected.epsilon(1e-5)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sampling_method", Sampling.FIXED_BATCH_SIZE),
        ("truncated_batch_size", 10),
        ("cycle_length", 4),
        ("examples_per_user", 3),
        ("is_finite_guarantee", False),
        ("noise_multipliers", None),
    ],
)
def test_params_without_a_guarantee_here(name, value):
    with pytest.raises(ArgumentError, match=name):
        params_guarantee(params(**{name: value}), steps=10, size_is_public=True)


def test_what_else_params_need():
    with pytest.raises(ArgumentError, match="size_is_public"):
        params_guarantee(params(), steps=10, size_is_public=False)
    with pytest.raises(ArgumentError, match="steps"):
        params_guarantee(params(), steps=0, size_is_public=True)
    with pytest.raises(ArgumentError, match="begin at step 0"):
        params_guarantee(params(noise_multipliers=[(5, 1.0)]), steps=10, size_is_public=True)
    with pytest.raises(ArgumentError, match="sampling_rate"):
        params_guarantee(params(batch_sizes=2000), steps=10, size_is_public=True)


def test_two_phases_with_one_first_step_are_refused():
    """Which of the two noises holds, sorting does not say; taking the larger would promise too much."""
    for first, second in ((1.0, 2.0), (2.0, 1.0)):
        with pytest.raises(ArgumentError, match="begin at one step"):
            params_guarantee(params(noise_multipliers=[(0, first), (0, second)]), steps=10, size_is_public=True)


def test_the_sampling_rate_is_rounded_up():
    """2/3 as a double is below two thirds, and 1/10 above a tenth."""
    for batch, rows, rate in ((2, 3, math.nextafter(2 / 3, 1)), (1, 10, 0.1), (10, 10, 1.0)):
        found = params_guarantee(params(batch_sizes=batch, num_samples=rows), steps=1, size_is_public=True)
        assert found.terms == dp_sgd(noise_multiplier=1.0, sampling_rate=rate, steps=1).terms


def test_the_library_itself():
    """Against what JAX-Privacy's own accountant says of the same plan, whose error is at most 1 in 10,000."""
    pytest.importorskip("jax_privacy")
    from jax_privacy import batch_selection
    from jax_privacy.accounting import analysis
    from jax_privacy.experimental import execution_plan

    settings = {"iterations": 100, "strategy": [1.0], "epsilon": None, "delta": None, "sampling_prob": 0.1}
    plan = execution_plan.BandMFExecutionPlanConfig(
        **settings,
        noise_multiplier=1,
        accountant=dp_accounting.pld.PLDAccountant(ADD),
        partition_type=batch_selection.PartitionType.INDEPENDENT,
    )
    theirs = dp_accounting.pld.PLDAccountant(ADD).compose(plan.plan.dp_event).get_epsilon(1e-5)
    assert plan_guarantee(plan).epsilon(1e-5) == pytest.approx(theirs, rel=1e-3)
    with pytest.raises(ArgumentError, match="REPLACE_SPECIAL"):
        plan_guarantee(execution_plan.BandMFExecutionPlanConfig(**settings, noise_multiplier=1))
    own = analysis.DpParams(noise_multipliers=1, num_samples=1000, delta=1e-5, batch_size=100)
    found = params_guarantee(own, steps=100, size_is_public=True)
    assert found.epsilon(1e-5) == dp_sgd(noise_multiplier=1, sampling_rate=0.1, steps=100).epsilon(1e-5)


# clipped gradients on synthetic rows


def made_up(count):
    random = np.random.default_rng(1)
    return {"x": random.normal(size=(count, 5, 3)).astype(np.float32), "y": np.arange(count) % 2}


def clipped(rows):
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))


def each(batch):
    return batch["x"].mean(axis=1) * (1.0 + batch["y"][:, None])


class Remembered:
    def __init__(self):
        self.calls = 0

    def __call__(self, batch):
        self.calls += 1
        return clipped(each(batch)).sum(axis=0) / self.calls


MIXED = {
    "transposed": lambda batch: clipped(batch["x"].transpose(1, 0, 2).mean(axis=1)).sum(axis=0),
    "folded": lambda batch: clipped(batch["x"].reshape(-1, 3)).sum(axis=0),
    "mean": lambda batch: clipped(each(batch)).mean(axis=0),
    "clipped after the sum": lambda batch: clipped(each(batch).sum(axis=0)[None])[0],
    "not clipped": lambda batch: 10.0 * each(batch).sum(axis=0),
    "centred": lambda batch: clipped(each(batch) - each(batch).mean(axis=0) + 0.1).sum(axis=0),
    "largest": lambda batch: clipped(each(batch) / np.abs(each(batch)).max()).sum(axis=0),
    "first of two": lambda batch: clipped(each(batch)[::2]).sum(axis=0),
    "microbatches": lambda batch: sum(clipped(part.sum(axis=0)[None])[0] for part in np.array_split(each(batch), 3)),
    "remembered": Remembered(),
}


@pytest.mark.parametrize("name", MIXED)
def test_a_clipped_gradient_in_which_rows_mix(name):
    with pytest.raises(ArgumentError, match="gradient"):
        check_clipped_gradient(MIXED[name], made_up, max_norm=1.0)


def test_a_sound_clipped_gradient():
    check_clipped_gradient(lambda batch: {"w": clipped(each(batch)).sum(axis=0)}, made_up, max_norm=1.0)
    with pytest.raises(ArgumentError, match="as many rows"):
        check_clipped_gradient(lambda batch: 0.0, lambda count: np.zeros((count + 1, 2)), max_norm=1.0)
    with pytest.raises(ArgumentError, match="same gradient"):
        check_clipped_gradient(lambda batch: batch.sum(axis=0), lambda count: np.zeros((count, 2)), max_norm=1.0)


@pytest.mark.full
def test_jax_privacys_own_clipped_gradient():
    jax = pytest.importorskip("jax")
    clipped_grad = pytest.importorskip("jax_privacy").clipped_grad
    weights = np.ones((3, 2), dtype=np.float32)

    def loss(weights, batch, axis):
        scores = (batch["x"] @ weights).mean(axis=axis)
        return jax.numpy.mean((scores[..., 0] - scores[..., 1] - batch["y"]) ** 2)

    def gradient(batch, axis=1):
        of = clipped_grad(lambda w, rows: loss(w, rows, axis), l2_clip_norm=0.7, batch_argnums=1)
        return of(weights, batch)

    check_clipped_gradient(gradient, made_up, max_norm=0.7)
    with pytest.raises(ArgumentError, match="longer than max_norm"):
        check_clipped_gradient(gradient, made_up, max_norm=0.5)
    with pytest.raises(ArgumentError, match="not the sum"):
        check_clipped_gradient(lambda batch: jax.grad(loss)(weights, batch, 1) / 100.0, made_up, max_norm=0.7)
