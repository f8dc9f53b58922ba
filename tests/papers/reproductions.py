"""What the tests of all reproductions share."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

from papers.table import Context, Reproduction
from papers.written import describe, markdown

from dpselect.randomness import keyed_source

SEED = 2026  # that of the command
DOCS = Path(__file__).parents[2] / "docs"


def reproduced(paper):
    """All parts, in quick mode."""
    return dict(paper.run(Context(True, keyed_source(SEED))))


def row_named(part, start):
    (found,) = [row for row in part.rows if row.name.startswith(start)]
    return found


def assert_explained(parts):
    """Every row is within its tolerance, or is known to differ: it has the corrected value, and the page of known
    differences has its reason. All numbers are finite, names are not used twice.
    """
    known = (DOCS / "explanation/known-differences.md").read_text(encoding="utf-8")
    for part in parts.values():
        assert len({row.name for row in part.rows}) == len(part.rows)
        for row in part.rows:
            assert row.verdict != "differs", row
            assert row.reason in known, row
            assert_can_fail(row)
            assert math.isfinite(row.ours), row
            assert row.optimal is None or math.isfinite(row.optimal), row
        for figure in part.figures:
            assert all(len(curve.x) == len(curve.y) > 0 for curve in figure.curves)
            assert all(math.isfinite(y) for curve in figure.curves for y in curve.y), figure.name


def assert_can_fail(row):
    """Moved by a hundredth and three tolerances to the forbidden side, a value of the paper's is not met any more."""
    if row.paper is not None:
        step = 3.0 * row.tolerance + 0.01 * max(abs(row.ours), abs(row.paper), abs(row.corrected or 0.0))
        moved = [(row.corrected or row.paper) - step] if row.relation != "<=" else []
        moved += [max(row.ours, row.paper) + step] if row.relation != ">=" else []
        assert {replace(row, ours=value).verdict for value in moved} == {"differs"}, row


def assert_repeats(paper, parts, name):
    """A part does not depend on the others, and is a function of the seed."""
    again = paper.parts[name](Context(True, keyed_source(SEED).spawn(name)))
    assert again == parts[name]
    done = Reproduction(paper=paper, quick=True, parts=parts, seconds=1.0)
    written = json.loads(json.dumps(describe(done), allow_nan=False))
    assert written["reproduced"] is True
    assert set(written["parts"]) == set(paper.parts)


def assert_documented(paper, parts, absolute=0.0):
    """The page of the documentation is what the command writes; numbers may differ in a late digit by machine.

    `absolute` is for models that are trained: a row more or less that is classified right.
    """
    page = (DOCS / "evidence" / f"reproduce-{paper.name}.md").read_text(encoding="utf-8")
    made = markdown(Reproduction(paper=paper, quick=True, parts=parts, seconds=1.0))
    shown, found = (
        [re.split(r" \| ", line.strip("| ")) for line in text.splitlines() if line.startswith("| ")]
        for text in (page, made)
    )
    said = [[(line[0], line[1], *line[-2:]) for line in lines] for lines in (shown, found)]
    assert said[0] == said[1], [pair for pair in zip(*said, strict=False) if pair[0] != pair[1]][:2]
    for here, there in zip(shown, found, strict=True):
        for one, other in zip(here[2:4], there[2:4], strict=True):
            assert one == other or math.isclose(float(one), float(other), rel_tol=1e-3, abs_tol=absolute), here[0]
    assert len(found) >= 30
