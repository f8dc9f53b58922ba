"""Masses on either side of places that may be inside atoms."""

from __future__ import annotations

import numpy as np
import pytest

from dpselect.accounting.optimal.cut_sides import Sides, atom_at, last_atom

P, Q = np.array([0.1, 0.2, 0.4]), np.array([0.2, 0.4, 0.3])  # 0.3 of P has infinite loss, 0.1 of P' the loss -inf


def sides():
    masses = np.stack((P, Q))
    running = np.cumsum(np.concatenate(([[0.0], [0.1]], masses), axis=1), axis=1)
    ends = np.concatenate((masses, [[0.3], [0.0]]), axis=1)
    remaining = np.cumsum(ends[:, ::-1], axis=1)[:, ::-1]
    return Sides(
        losses=np.log(P / Q),
        masses=masses,
        running=running,
        remaining=remaining,
        excess_below=running[1] - running[0],
        excess_above=remaining[0] - remaining[1],
    )


def test_a_place_at_a_node_is_in_the_later_or_the_earlier_atom():
    places = np.array([0.0, 0.5, 1.0, 2.7, 3.0])
    assert atom_at(places, 3).tolist() == [0, 0, 1, 2, 2]
    assert last_atom(places, 3).tolist() == [0, 0, 0, 2, 2]


def test_masses_below_and_above_share_an_atom_out():
    places = np.array([0.0, 0.5, 1.0, 2.25, 3.0])
    assert sides().below(places) == pytest.approx(np.array([[0, 0.05, 0.1, 0.4, 0.7], [0.1, 0.2, 0.3, 0.775, 1.0]]))
    assert sides().above(places) == pytest.approx(np.array([[1, 0.95, 0.9, 0.6, 0.3], [0.9, 0.8, 0.7, 0.225, 0.0]]))


def test_masses_between_places_are_never_negative():
    start, end = np.array([0.25, 0.5, 1.0, 2.0]), np.array([0.75, 2.5, 1.0, 0.5])
    assert sides().between(start, end) == pytest.approx(np.array([[0.05, 0.45, 0, 0], [0.1, 0.65, 0, 0]]))
    u = sides().between(start, end)
    assert sides().rejected(start, end, u) == pytest.approx(np.array([[0.95, 0.55, 1, 1], [0.1, 0.65, 0, 0]]))


def test_an_excess_is_largest_where_losses_change_sign():
    one = sides()
    assert one.middle == 2
    start, end = np.array([0.0, 0.5, 2.5]), np.array([1.0, 3.0, 3.0])
    low, high = one.apart(one.excess_below, start, end)
    # at the nodes 0.1, 0.2, 0.4 and 0.3
    assert low == pytest.approx([0.1, 0.15, 0.3])
    assert high == pytest.approx([0.2, 0.4, 0.35])
