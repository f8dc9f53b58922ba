"""Peers of the benchmark: what they are told is public, and the noise of the one that is written here is exact."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.cases import DELTA, Case, score_of
from benchmarks.model_tables import ModelTable, classes_of, numbers_of, orders, table_of

from benchmarks import peers
from dpselect.privacy import compose, gaussian

pytest.importorskip("pandas")


class Recorded:
    """Draws of a constant, which keep how many numbers were drawn at once."""

    def __init__(self, constant=0.0):
        self.constant, self.sizes = constant, []

    def normal(self, size=None):
        self.sizes.append(size)
        return self.constant if size is None else np.full(size, self.constant)


def line(rows=4000):
    """A straight number, of which half the label's range is used."""
    random = np.random.default_rng(5)
    X = random.uniform(-1, 1, (rows, 3))
    return table_of("line", X, X @ [2.0, -1.0, 0.5] + 10, numbers_of(5, 15), [(-1, 1)] * 3)


def single_noise(epsilon):
    """Of one Gaussian release of sensitivity 1, by bisection of the library's guarantee."""
    low, high = 0.01, 1000.0
    for _ in range(60):
        middle = (low * high) ** 0.5
        low, high = (
            (low, middle) if gaussian(noise_multiplier=middle).epsilon(delta=DELTA) <= epsilon else (middle, high)
        )
    return high


def test_without_noise_adassp_is_ridge_with_the_strength_of_the_paper():
    random = np.random.default_rng(1)
    X, y = random.uniform(-0.5, 0.5, (50, 3)), random.uniform(-1, 1, 50)
    noise = 3**0.5 * single_noise(2.0) * 4.0
    strength = noise * (3 * np.log(2 * 9 / 0.05)) ** 0.5  # the least eigenvalue is below its own noise
    expected = np.linalg.solve(X.T @ X + strength * np.eye(3), X.T @ y)
    draw = Recorded()
    assert peers.adassp_weights(X, y, 4.0, 2.0, draw) == pytest.approx(expected, rel=1e-4)
    assert draw.sizes == [(3, 3), None, 3]


def test_three_releases_of_adassp_cost_no_more_than_the_total():
    for epsilon in (0.5, 3.0):
        constant, rows, norm = 1.0, np.zeros((2, 1)), 9.0
        # one column of zeros: weight = shift of X'y over (noise + ridge), so that the noise can be read off
        noisy = peers.adassp_weights(rows, np.zeros(2), norm, epsilon, Recorded(constant))[0]
        ridge = (np.log(2 / 0.05)) ** 0.5
        # the least eigenvalue stays at 0, so that the ridge is in full
        assert noisy == pytest.approx(norm**-0.5 / (1 + ridge), rel=1e-9)
        noise = 3**0.5 * single_noise(epsilon)
        whole = compose(*[gaussian(noise_multiplier=noise)] * 3)
        assert epsilon * 0.999 <= whole.epsilon(delta=DELTA) <= epsilon * 1.0001


def test_one_row_moves_what_adassp_releases_by_at_most_its_sensitivity():
    table = orders()
    X = np.hstack([table.encoded, np.ones((len(table.answers), 1))])
    squared = peers.row_norm(table) ** 2 + 1
    assert max(np.linalg.norm(np.outer(row, row)) for row in X[:300]) <= squared
    assert np.linalg.norm(X, axis=1).max() <= squared**0.5
    assert np.linalg.norm(X, axis=1).max() > 0.9 * squared**0.5  # and the bound is not a wide one


def test_adassp_finds_a_straight_line():
    assert peers.adassp(Case(line(), 3.0, 0, Path())) > 0.95
    assert peers.adassp(Case(line(100), 0.01, 0, Path())) < 0.5


def test_scores_are_accuracy_and_r2_of_clipped_predictions():
    case = Case(line(100), 1.0, 0, Path())
    answers = case.table.answers[case.parts[1]]
    assert score_of(case, answers) == 1.0
    assert score_of(case, np.full(20, answers.mean())) == pytest.approx(0.0)
    assert score_of(case, np.full(20, 1e9)) == score_of(case, np.full(20, 15.0))
    words = np.array(["a", "b"] * 50)
    case = Case(ModelTable("words", {"x": np.zeros(100)}, words, classes_of(words)), 1.0, 0, Path())
    assert score_of(case, np.full(20, "a")) == np.mean(words[case.parts[1]] == "a")


def test_bins_are_public_and_cells_of_no_category_have_their_own():
    facts = {"columns": {"n": {"bounds": [0, 16], "missing": "indicator"}, "w": {"categories": ["a", "b"]}}}
    columns = {"n": np.array([-5.0, 0.5, 15.9, 99.0, np.nan]), "w": np.array(["a", "b", "c", "", "a"])}
    codes, sizes = peers.in_bins(ModelTable("t", columns, np.arange(5.0), {**facts, **numbers_of(0, 4)}))
    assert codes["n"].tolist() == [0, 0, 15, 15, 16]
    assert codes["w"].tolist() == [0, 1, 2, 2, 0]
    assert codes["answer"].tolist() == [0, 8, 16, 24, 31]
    assert sizes == {"n": 17, "w": 3, "answer": 32}


def test_a_peer_without_missing_cells_is_told_which_they_were():
    facts = {"columns": {"n": {"bounds": [0, 16], "missing": "indicator"}, "w": {"categories": ["a", "b"]}}}
    columns = {"n": np.array([4.0, np.nan]), "w": np.array(["", "a"])}
    rows, known = peers.without_missing(ModelTable("t", columns, np.arange(2.0), {**facts, **numbers_of(0, 4)}))
    assert rows.to_dict("list") == {"n": [4.0, 8.0], "n is missing": ["no", "yes"], "w": ["(missing)", "a"]}
    assert list(known) == list(rows)


def test_synthetic_rows_need_an_interpreter():
    with pytest.raises(ImportError, match="--dpmm"):
        peers.boosted_on_synthetic_rows("MST", None, Case(line(100), 1.0, 0, Path()))


def test_a_peer_is_asked_for_what_it_can_learn():
    names = [name for name, _ in peers.peers(line(10))]
    assert "AdaSSP" in names
    assert all(name.startswith(peers.PEERS) for name in names)
    names = [name for name, _ in peers.peers(orders())]  # three classes
    assert "AdaSSP" not in names
    assert "DP-EBM" not in names


@pytest.mark.full
def test_opacus_learns_a_line_and_three_classes():
    pytest.importorskip("opacus")
    assert peers.opacus(0, Case(line(), 3.0, 0, Path())) > 0.9
    assert peers.opacus(peers.HIDDEN, Case(line(), 3.0, 0, Path())) > 0.9
    assert peers.opacus(0, Case(orders(), 3.0, 0, Path())) > 0.6
