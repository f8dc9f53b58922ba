"""Weights of terms from noisy sums: parts of a table, sparse tables, and what a class weighs."""

import numpy as np
import pytest
from scipy import sparse

from dpselect.learners.class_sums import members_of
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


def test_no_rows_give_weights_too():
    found = LEARNER.learn(np.zeros((0, 4)), np.zeros((0, 2)), np.ones(2), keyed_source(1))
    assert found.shape == (5, 2)
    assert np.isfinite(found).all()
