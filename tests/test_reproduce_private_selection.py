"""`dpselect reproduce private-selection` in quick mode."""

import math
import re
from pathlib import Path

import pytest

from dpselect.randomness import keyed_source
from dpselect.reproduce.private_selection import PAPER
from dpselect.reproduce.table import Context, Reproduction
from dpselect.reproduce.written import markdown

DOCS = Path(__file__).parent.parent / "docs"


@pytest.fixture(scope="module")
def parts():
    return dict(PAPER.run(Context(True, keyed_source(2026))))


def rows(parts):
    return [row for part in parts.values() for row in part.rows]


def test_every_row_reproduces_or_is_explained(parts):
    assert [row.name for row in rows(parts) if row.verdict == "differs"] == []
    assert sum(row.verdict == "reproduced" for row in rows(parts)) >= 60


def test_what_differs_are_the_errata_of_the_paper_and_two_small_cases(parts):
    differing = [row for row in rows(parts) if row.verdict == "differs, explained"]
    assert sum("an erratum" in row.note for row in differing) == 5
    assert len(differing) == 7


def test_the_optimal_price_is_below_the_printed_one_and_attained(parts):
    constants = parts["tight constants"].rows
    for row in constants[:8]:
        assert 1.0 < row.optimal < row.paper
    # F4 and F5 of independent calculation: three outputs at p = 1e-6, randomised response
    assert constants[8].ours == pytest.approx(2.95370098, abs=1e-8)
    assert constants[8].ours <= constants[8].optimal == pytest.approx(2.95370423, abs=1e-8)
    assert constants[9].ours == pytest.approx(1.79567204, abs=1e-8)
    assert constants[9].ours <= constants[9].optimal


def test_a_naive_selector_leaks_more_than_the_right_one(parts):
    for row in parts["naive selectors"].rows:
        if row.optimal is not None and "11 draws" not in row.name:
            assert row.ours > row.optimal


def test_names_are_unique_and_figures_are_finite(parts):
    for part in parts.values():
        names = [row.name for row in part.rows]
        assert len(set(names)) == len(names)
        for figure in part.figures:
            for curve in figure.curves:
                assert all(math.isfinite(value) for value in (*curve.x, *curve.y))


def test_the_page_in_the_docs_has_these_rows_and_verdicts(parts):
    """Numbers may differ in the last digit from machine to machine; names, paper values and verdicts may not."""
    page = (DOCS / "reproduce-private-selection.md").read_text(encoding="utf-8")
    made = markdown(Reproduction(paper=PAPER, quick=True, parts=parts, seconds=0.0))
    shown, found = (
        [
            [cell.strip() for cell in re.split(r" \| ", line.strip("| "))]
            for line in text.splitlines()
            if line[:2] == "| "
        ]
        for text in (page, made)
    )
    assert [(row[0], row[1], row[-1]) for row in shown] == [(row[0], row[1], row[-1]) for row in found]
