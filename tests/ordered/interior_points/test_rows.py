"""The rows that each method needs: known numbers, and the methods that have no plan."""

from __future__ import annotations

from dpselect.ordered.interior_points.interior_point import InteriorPoint
from dpselect.ordered.interior_points.rows import METHODS, binary_search_noise, plan_method
from dpselect.privacy import Adjacency, gaussian

ADD, SWAP = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


def test_rows_beside_known_numbers():
    """Exponential mechanism and binary search (replace-one) from closed forms; the dyadic method at most these."""
    bits = (16, 32, 64, 256, 1024)
    rows = {
        m: [InteriorPoint(method=m, domain_size=2**b, epsilon=1, delta=1e-6).rows for b in bits] for m in METHODS[:2]
    }
    for found, closed in zip(rows["exponential"], (32, 54, 98, 365, 1429), strict=True):
        assert closed - 2 <= found <= closed
    assert all(found <= known for found, known in zip(rows["dyadic"], (165, 169, 173, 181, 188), strict=True))
    searched = [
        InteriorPoint(method="binary_search", domain_size=2**b, epsilon=1, delta=1e-6, adjacency=SWAP).rows
        for b in bits
    ]
    assert searched == [110, 164, 244, 535, 1155]
    assert InteriorPoint(method="exponential", domain_size=2**64, epsilon=0.1).rows in (979, 980)


def test_noise_of_the_binary_search():
    noise = binary_search_noise(1.0, 1e-6, ADD)
    assert gaussian(noise_multiplier=noise).delta(1.0) <= 1e-6 < gaussian(noise_multiplier=noise * 0.999).delta(1.0)
    assert binary_search_noise(1.0, 1e-6, SWAP) == 2 * noise


def test_plans_say_no_where_there_is_none():
    assert plan_method("dyadic", 16, 1.0, 0.0, 0.01, ADD) is None
    assert plan_method("cumulative", 16, 1.0, 1e-6, 0.01, ADD) is None
    assert (
        InteriorPoint(method="tree_log", domain_size=16, epsilon=1, delta=0.01, failure_probability=0.01).rows is None
    )
