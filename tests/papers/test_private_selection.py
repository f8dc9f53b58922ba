"""`python -m papers private-selection` in quick mode."""

import pytest
from papers.private_selection import PAPER
from papers.table import Context

from dpselect.randomness import keyed_source
from tests.papers.reproductions import SEED, assert_documented, assert_explained, assert_repeats, reproduced


@pytest.fixture(scope="module")
def parts():
    return reproduced(PAPER)


def rows(parts):
    return [row for part in parts.values() for row in part.rows]


@pytest.mark.full
def test_every_row_reproduces_or_is_explained(parts):
    assert_explained(parts)
    assert sum(row.verdict == "reproduced" for row in rows(parts)) >= 60


@pytest.mark.full
def test_what_differs_are_the_errata_of_the_paper_and_two_small_cases(parts):
    differing = [row for row in rows(parts) if row.verdict == "differs, explained"]
    assert sum("an erratum" in row.reason for row in differing) == 5
    assert len(differing) == 7


@pytest.mark.full
def test_the_optimal_price_is_below_the_printed_one_and_attained(parts):
    constants = parts["tight constants"].rows
    for row in constants[:8]:
        assert 1.0 < row.optimal < row.paper
    # F4 and F5 of independent calculation: three outputs at p = 1e-6, randomised response
    assert constants[8].ours == pytest.approx(2.95370098, abs=1e-8)
    assert constants[8].ours <= constants[8].optimal == pytest.approx(2.95370423, abs=1e-8)
    assert constants[9].ours == pytest.approx(1.79567204, abs=1e-8)
    assert constants[9].ours <= constants[9].optimal


@pytest.mark.full
def test_a_naive_selector_leaks_more_than_the_right_one(parts):
    for row in parts["naive selectors"].rows:
        if row.optimal is not None and "11 draws" not in row.name:
            assert row.ours > row.optimal


@pytest.mark.full
def test_the_page_shows_these_rows(parts):
    assert_documented(PAPER, parts)


@pytest.mark.full
def test_a_second_run_gives_the_same(parts):
    assert_repeats(PAPER, parts, "sparse vector and threshold search")


@pytest.mark.slow
def test_full_mode():
    assert_explained(dict(PAPER.run(Context(False, keyed_source(SEED)))))
