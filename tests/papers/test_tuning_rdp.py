"""`python -m papers tuning-rdp` in quick mode: 25 s of processor time, most of it optimal prices of a zCDP base."""

import pytest
from papers.table import Context
from papers.tuning_rdp import PAPER

from dpselect.randomness import keyed_source
from papers import tuning_rdp_networks
from tests.papers.reproductions import SEED, assert_documented, assert_explained, assert_repeats, reproduced


@pytest.fixture(scope="module")
def parts():
    return reproduced(PAPER)


def rows(parts):
    return [row for part in parts.values() for row in part.rows]


@pytest.mark.full
def test_every_row_reproduces_or_is_explained(parts):
    assert_explained(parts)
    assert sum(row.verdict == "reproduced" for row in rows(parts)) >= 140
    assert not any(row.verdict == "differs, explained" for row in rows(parts))


@pytest.mark.full
def test_figures_1_to_8_are_there(parts):
    figures = [figure for part in parts.values() for figure in part.figures]
    assert [figure.name for figure in figures] == [f"figure-{number}" for number in range(1, 9)]


@pytest.mark.full
def test_the_best_accounting_is_never_above_the_published_one(parts):
    for name in ("Renyi curves of logarithmic repetition", "distributions of K compared"):
        assert all(row.optimal <= row.ours for row in parts[name].rows)
    for row in parts["price against the expected number of runs"].rows:
        assert row.optimal is None or row.optimal <= row.ours


@pytest.mark.full
def test_optimal_accounting_reverses_the_advice_on_poisson(parts):
    leads = [row for row in parts["expected quantile"].rows if row.name.startswith("lead")]
    assert len(leads) == 2
    assert all(row.ours < -0.05 < 0.02 < row.optimal for row in leads)


@pytest.mark.full
def test_the_attack_works_on_the_plain_search_and_not_on_the_private_one(parts):
    """200 machines a side are judged: an advantage has standard deviation below 0.05.

    Four of these below the 0.44 to 0.51 seen at four seeds is 0.24 (false alarms below 1e-4); the private search is
    judged on 4,000 a side, standard deviation below 0.016, and its law allows 0.26 at most.
    """
    *_, plain, private = parts["what a hyperparameter leaks"].rows
    assert plain.ours > 0.24
    assert private.ours < private.optimal
    assert abs(private.ours) < 0.1


@pytest.mark.full
def test_the_page_shows_these_rows(parts):
    assert_documented(PAPER, parts, absolute=0.01)


@pytest.mark.full
def test_a_second_run_gives_the_same(parts):
    assert_repeats(PAPER, parts, "what a hyperparameter leaks")


@pytest.mark.slow
def test_full_mode_without_torch(monkeypatch):
    """Three minutes; five more with the network."""
    monkeypatch.setattr(tuning_rdp_networks, "find_spec", lambda name: None)
    assert_explained(dict(PAPER.run(Context(False, keyed_source(SEED)))))
