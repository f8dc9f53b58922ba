"""Noisy sums by class: by how much two tables can differ, that sums are exact, and how ratios are shrunk."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from dpselect.learners.class_sums import MEMBERSHIP_STEP, ClassSums, log_ratios, members_of
from dpselect.learners.fixed_point import STEP, truncate
from dpselect.privacy import gaussian
from dpselect.randomness import keyed_source

GRID = [np.array(row) for row in product((0.0, 0.5, 1.0), repeat=2) if sum(x * x for x in row) <= 1.0]
RELEASE = ClassSums(noise_multiplier=1.0, row_norm=1.0, replace=False)
REPLACED = ClassSums(noise_multiplier=1.0, row_norm=1.0, replace=True)


MEMBERS = [np.array(m) for m in ((1.0, 0.0), (0.0, 1.0), (0.5, 0.5), (0.25, 0.75), (0.5, 0.25))]


def sums(row, member):
    return RELEASE.exact(row[None, :], member[None, :]) * (STEP * MEMBERSHIP_STEP)


def moves():
    """How far each row in the place of each other row moves the sums."""
    singles = [sums(row, member) for row in GRID for member in MEMBERS]
    return [float(np.linalg.norm(one - other)) for one in singles for other in singles]


def test_a_row_more_moves_the_sums_by_its_norm_at_most_and_the_noise_pays_for_it():
    """Of all rows on a grid in the unit ball, of either class and in between."""
    found = max(float(np.linalg.norm(sums(row, member))) for row in GRID for member in MEMBERS)
    assert found == 1.0
    assert found <= RELEASE.deviation < 1.0 + 1e-12


@pytest.mark.theorem("docs/theory/sufficient-statistics.md, Theorem 2", exact=True, sharp=True)
def test_a_row_in_the_place_of_another_moves_the_sums_by_root_2_and_no_smaller_noise_would_do():
    assert max(moves()) == math.sqrt(2.0)
    assert max(moves()) <= REPLACED.deviation < math.sqrt(2.0) + 1e-12


def test_rows_of_both_signs_would_need_more_noise():
    """Why `NaiveBayes` takes negative cells for zeros."""
    one, other = (sums(np.array([sign, 0.0]), MEMBERS[0]) for sign in (1.0, -1.0))
    assert np.linalg.norm(one - other) > REPLACED.deviation


@pytest.mark.parametrize("multiplier", [0.05, 1.0, 1e5])
def test_the_deviation_grows_with_the_noise_multiplier_and_the_norm(multiplier):
    found = ClassSums(noise_multiplier=multiplier, row_norm=3.0, replace=False).deviation
    assert 3.0 * multiplier <= found < 3.0 * multiplier * (1 + 1e-12)


def test_sums_are_exact_in_any_order_and_rows_of_no_class_count_nowhere():
    rows = truncate(np.random.default_rng(1).random((1000, 7)))
    labels = np.random.default_rng(2).integers(-1, 3, 1000)
    expected = [[sum(int(x / STEP) for x in rows[labels == c, j]) << 14 for c in range(3)] for j in range(7)]
    order = np.random.default_rng(3).permutation(1000)
    assert RELEASE.exact(rows, members_of(labels, 3)).tolist() == expected
    assert RELEASE.exact(rows[order], members_of(labels[order], 3)).tolist() == expected


def test_the_noise_has_the_deviation_that_is_stated():
    found = ClassSums(noise_multiplier=2.0, row_norm=1.5, replace=True).release(
        np.zeros((200, 50), dtype=np.int64), keyed_source("class sums")
    )
    assert found.std() == pytest.approx(3.0 * math.sqrt(2.0), rel=0.03)
    assert abs(found.mean()) < 0.2


def test_the_loss_of_one_row_is_that_of_the_gaussian_mechanism_which_is_claimed():
    """Along the row, the sums of two tables are Gaussians at the distance of their deviation: no event tells more."""
    release, draws = ClassSums(noise_multiplier=1.0, row_norm=1.0, replace=True), 20_000
    tables = [RELEASE.exact(np.array([row]), members_of(np.array([0]), 2)) for row in ([1.0, 0.0], [0.0, 1.0])]
    random, along = keyed_source("audit"), np.array([[1.0, 0.0], [-1.0, 0.0]]) / math.sqrt(2.0)
    found = [release.release(np.broadcast_to(sums, (draws, 2, 2)), random) for sums in tables]
    one, other = (np.sum(each * along, axis=(1, 2)) > math.sqrt(2.0) for each in found)
    delta, claim = np.mean(one) - math.exp(1.0) * np.mean(other), gaussian(noise_multiplier=1.0).delta(epsilon=1.0)
    assert delta == pytest.approx(claim, abs=0.02)  # it sees the mechanism, and no more than is claimed


# ratios


def test_ratios_without_noise_are_near_those_of_the_sums():
    counts = np.array([[9000.0, 1000.0], [1000.0, 9000.0]])
    assert log_ratios(counts, 1e-3, 100.0) == pytest.approx(np.log(counts / 5000.0), abs=0.02)


def test_a_term_that_noise_may_have_made_tells_little():
    """The second term is as small as the noise; without noise it would make the second class 20 times less probable."""
    terms = np.array([[5000.0, 5000.0], [6.0, -2.0]])
    assert np.abs(log_ratios(terms, 4.0, 3.0)).max() < 0.25
    assert np.abs(log_ratios(terms, 1e-3, 1e6)).max() == pytest.approx(math.log(20.0))


def test_sums_of_noise_alone_are_numbers():
    noise = RELEASE.release(np.zeros((40, 3), dtype=np.int64), keyed_source(5))
    assert np.isfinite(log_ratios(noise, RELEASE.deviation, 1.0)).all()
    assert np.isfinite(log_ratios(np.full((2, 2), -9.0), 1.0, 1.0)).all()
