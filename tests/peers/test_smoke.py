"""A few rows of each kind, in the default tier: the tables are read, and differences are found and counted."""

from __future__ import annotations

import pytest

from dpselect.audit.one_run_bound import one_run_p_value
from dpselect.privacy import dp_sgd
from tests.peers.comparison import NAME, Comparison, facts, table


def test_rows_of_the_tables():
    with Comparison("autodp", False, []) as peer:
        for row in table("autodp_facts.csv")[::97]:
            order, rate, noise, steps, theirs = row.values()
            ours = dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=int(steps)).renyi(order)
            peer.close(ours, theirs, row, relative=1e-7)
    with Comparison("jax-privacy", False, []) as peer:
        for row in table("jax_privacy_facts.csv")[:60:5]:
            counts = {name: int(row[name]) for name in ("correct", "guesses", "canaries")}
            peer.holds(one_run_p_value(**counts, epsilon=row["epsilon"], delta=row["delta"]) <= 1.0, row)
    assert {"deltas", "loss_distributions", "refused"} <= facts("dp_accounting_facts.json").keys()
    assert len(table("opacus_facts.csv")) == 34


def test_a_difference_is_found_and_counted():
    properties = []

    def compared():
        with Comparison("x", False, properties) as peer:
            peer.close(1.0, 1.0 + 1e-9, relative=1e-6)
            peer.close(1.0, 1.1, "too far", relative=1e-6)
            peer.refuses(ValueError, lambda: float("x"))
            peer.refuses(ValueError, lambda: 1.0)

    with pytest.raises(AssertionError, match="2 of 4 differ"):
        compared()
    assert properties == [(NAME, ["x", False, 4])]
    with pytest.raises(AssertionError, match="nothing"), Comparison("x", False, []):
        pass
