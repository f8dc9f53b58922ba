"""The examples for gates: each is short, and a test runs it."""

import ast
from pathlib import Path

import pytest

from tests.root import ROOT

EXAMPLES = ROOT / "examples" / "gate"
TASKS = [f"task {number}" for number in range(60)]


def own_lines(path):
    """The user's statements: all but imports and docstrings."""
    tree = ast.parse(path.read_text())
    spans = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Import | ast.ImportFrom)
        if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for line in range(node.lineno, node.body[0].lineno if hasattr(node, "body") else (node.end_lineno or 0) + 1)
    }
    return len(spans)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short_and_run_by_a_test(path):
    assert 1 <= own_lines(path) <= 10
    assert any(path.name in each.read_text() for each in Path(__file__).parent.glob("test_*.py"))
