"""Weights of terms from noisy sums: parts of a table, sparse tables, and what a class weighs."""

import numpy as np
import pytest
from scipy import sparse

from dpselect.learners.class_sums import _GRID, ClassSums, members_of
from dpselect.learners.term_weights import TermWeights, table_of
from dpselect.randomness import keyed_source

ROWS = np.random.default_rng(1).random((300, 5)) * [1.0, 1.0, 0.1, 0.0, 2.0]
MEMBERS = members_of(np.arange(300) % 3, 3)
LEARNER = TermWeights(noise_multiplier=0.5, row_norm=1.0, replace=False)


def learnt(rows, **changes):
    given = {"class_weights": np.ones(3), **changes}
    return LEARNER.learn(rows, MEMBERS, given["class_weights"], keyed_source(2))


def test_the_weights_do_not_depend_on_how_the_table_is_held_or_cut(monkeypatch):
    whole = learnt(ROWS)
    monkeypatch.setattr("dpselect.learners.term_weights._CELLS", 6 * 7)
    for table in (ROWS, sparse.coo_matrix(ROWS), np.asfortranarray(ROWS), table_of(ROWS.tolist())):
        assert np.array_equal(learnt(table), whole)
        assert np.array_equal(LEARNER.scores(table, whole)[40:43], LEARNER.scores(ROWS[40:43], whole))


def test_without_class_weights_classes_count_alike():
    weighted, alike = learnt(ROWS, class_weights=np.array([1.0, 0.5, 0.25])), learnt(ROWS, class_weights=None)
    assert np.array_equal(weighted[:-1], alike[:-1])
    assert (alike[-1] == 0).all()
    assert np.diff(weighted[-1]) == pytest.approx(np.log([0.5, 0.5]) / 0.25, abs=0.3)


@pytest.mark.parametrize("replace", [False, True])
def test_the_noise_covers_what_the_longest_rows_do_and_no_less_would(replace, monkeypatch):
    """The sums of two neighbours as they are released, beside the deviation of the noise over its multiplier."""
    seen = []
    monkeypatch.setattr(ClassSums, "release", lambda self, sums, _: seen.append((self, sums)) or sums * _GRID)
    learner = TermWeights(noise_multiplier=2.0, row_norm=3.0, replace=replace)
    rows = [np.array([[1e9, 0.0, 0.0]]), np.array([[0.0, -0.0, 7.0]])] if replace else [np.full((1, 3), 1e9), None]
    for row, member in zip(rows, ([1.0, 0.0], [0.0, 1.0]), strict=True):
        table, members = (np.zeros((0, 3)), np.zeros((0, 2))) if row is None else (row, np.array([member]))
        learner.learn(table, members, np.ones(2), keyed_source(1))
    (release, first), (_, second) = seen
    moved = np.linalg.norm((first - second) * _GRID) / (release.deviation / 2.0)
    assert 0.995 < moved <= 1.0


def test_terms_may_be_some_of_the_columns():
    places, weights = [4, 0, 2], learnt(ROWS[:, [4, 0, 2]])
    some = TermWeights(noise_multiplier=0.5, row_norm=1.0, replace=False, places=places)
    for table in (ROWS, sparse.csr_matrix(ROWS)):
        assert np.array_equal(some.learn(table, MEMBERS, np.ones(3), keyed_source(2)), weights)
        assert np.array_equal(some.scores(table, weights), LEARNER.scores(ROWS[:, places], weights))


def test_no_rows_give_weights_too():
    found = LEARNER.learn(np.zeros((0, 4)), np.zeros((0, 2)), np.ones(2), keyed_source(1))
    assert found.shape == (5, 2)
    assert np.isfinite(found).all()
