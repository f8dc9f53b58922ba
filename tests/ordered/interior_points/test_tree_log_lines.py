"""TreeLog: every line of the recursion runs at two levels, measured line by line."""

from __future__ import annotations

import dis
import inspect
import random
import sys
from collections import Counter
from dataclasses import replace
from types import CodeType

from dpselect.ordered.interior_points import dyadic, search_tree, stable_choice, tree_log
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.interior_point import InteriorPoint, interior_point
from dpselect.ordered.interior_points.stable_choice import laplace_tail_steps
from dpselect.ordered.interior_points.tree_log import one_heavy_round
from dpselect.randomness import keyed_source
from tests.ordered.enumerated_draws import exact_law
from tests.ordered.interior_points.small_trees import RATIO, TWO, UNIT, array, shapes

PRINTED = {"domain_size": 2**64, "epsilon": 9.0, "delta": 1e-3, "method": "tree_log_printed"}


def lines_of(module):
    """Every line of a module that belongs to the body of a function."""

    def inside(code):
        yield from (line for _, line in dis.findlinestarts(code) if line is not None and line != code.co_firstlineno)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                yield from inside(constant)

    source = inspect.getsource(module)
    protocols = {k for k, line in enumerate(source.splitlines(), 1) if line.strip() == "..."}
    whole = compile(source, module.__file__, "exec")
    functions = [c for c in whole.co_consts if isinstance(c, CodeType)]
    found = set()
    for code in functions:
        methods = [c for c in code.co_consts if isinstance(c, CodeType)]
        is_class = "__module__" in code.co_names and "__qualname__" in code.co_names
        for part in methods if is_class else [code]:
            found.update(inside(part))
    return found - protocols


class Coverage:
    """The lines of some modules that ran inside the `with` block."""

    def __init__(self, *modules):
        self.lines = {module.__file__: set() for module in modules}

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.enter)
        return self

    def __exit__(self, *error):
        sys.settrace(self.before)

    def enter(self, frame, event, argument):
        lines = self.lines.get(frame.f_code.co_filename)
        if lines is None:
            return None
        lines.add(frame.f_lineno)

        def line(frame, event, argument):
            lines.add(frame.f_lineno)
            return line

        return line


def test_lines_are_counted():
    """The measure itself: a function that was not called is missing, and one that was is not."""
    with Coverage(tree_log) as seen:
        tree_log.level_bits(9)
    missed = lines_of(tree_log) - seen.lines[tree_log.__file__]
    body = {line for _, line in dis.findlinestarts(tree_log.level_bits.__code__)} - {
        tree_log.level_bits.__code__.co_firstlineno
    }
    assert body
    assert not body & missed
    assert len(missed) > 30


def test_every_line_of_the_recursion_runs(monkeypatch):
    """Two levels, both endings of the heavy round and both failures of a choice, through `interior_point` itself.

    Every line of the four modules is run; the places visited are counted besides, so that none of them is run at the
    first level only.
    """
    visits = Counter()
    monkeypatch.setattr(SecretDraws, "visit", lambda self, place: visits.update([place]))
    rng = random.Random(3)
    rows = InteriorPoint(**PRINTED).rows
    with Coverage(tree_log, search_tree, stable_choice, dyadic) as seen:
        for name, points in shapes(rows + rows % 2, 64, rng).items():
            release = interior_point(points, **PRINTED, random=keyed_source(name))
            assert min(points) <= release.value <= max(points), name
        assert visits.keys() >= {"level 1", "level 2", "base case", "one heavy round", "heavy node"}
        assert visits["base case"] == visits["level 2"] - (visits["one heavy round"] - heavy_at_first(visits))
        for method in ("tree_log", "dyadic", "cumulative", "binary_search"):
            for points in ([7] * 4, [2**255 + 3**k for k in range(60)], []):
                # a failed choice at the second level ends the first one too
                assert interior_point(points[:4], **PRINTED, random=keyed_source("few")).value is None
                asked = {"domain_size": 2**256, "epsilon": 1, "delta": 1e-6, "method": method}
                interior_point(points, **asked, adjacency="replace_one", random=keyed_source("few"))
        assert visits["no stable choice"] > 0
        points = [2**255 + k for k in range(200)]
        interior_point(points, domain_size=2**256, epsilon=4, delta=1e-6, method="dyadic", random=keyed_source("one"))
        ends = [2**64 - 1] * 400
        interior_point(ends, domain_size=2**64, epsilon=4, delta=1e-6, method="dyadic", random=keyed_source("ends"))
        asked = {"domain_size": 2**64, "epsilon": 4, "delta": 1e-6, "method": "cumulative", "adjacency": "replace_one"}
        assert interior_point([5] * InteriorPoint(**asked).rows, **asked, random=keyed_source("many")).value == 5
        # the leaf is left over where no sibling fires although the round began: rare, so it is enumerated
        _, _, places = exact_law(
            lambda draws: one_heavy_round(array([0, 1, 9]), 4, replace(TWO, gate=0), draws), RATIO, laplace_cap=2
        )
        assert places >= {"heavy node", "heavy leaf"}
        assert TWO.levels(4) == 2
        # a mass just below a tail needs one step more than its logarithm says to nine digits
        assert laplace_tail_steps(UNIT, 1 / 12 * (1 - 2e-10)) == 4
    for module in (tree_log, search_tree, stable_choice, dyadic):
        missed = lines_of(module) - seen.lines[module.__file__]
        assert not missed, f"{module.__name__}: lines {sorted(missed)} were not run"


def heavy_at_first(visits):
    """Heavy rounds at the first level: runs that never reached the second."""
    return visits["level 1"] - visits["level 2"]
