"""The measures of the house, on a small tree."""

from __future__ import annotations

import pytest

from benchmarks import house

CODE = '''"""Whoever reads this; pays."""
def wide(self, a, b, c, d, e, f, g, h, i): return getattr(a, "b")
class Two_stage:
    def __init__(self, a, b, c, d, e, f, g, h, i): ...
'''


@pytest.fixture
def tree(tmp_path):
    for name, text in (
        ("src/dpselect/study/run.py", CODE),
        ("src/dpselect/cli/tune.py", "def command(a, b, c, d, e, f, g, h, i): ..."),
        ("src/dpselect/study/__init__.pyi", "from dpselect.study.run import wide as wide, narrow as narrow"),
        ("tests/study/test_run.py", ""),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return house.Tree(tmp_path)


@pytest.mark.parametrize(
    ("measure", "value"),
    [
        ("lines of the library", 4),
        ("calls of getattr and hasattr", 1),
        ("functions over 8 parameters (no commands, no constructors)", 1),
        ("functions with over 20 branches", 0),
        ("files that name two stages", 0),
        ("public names", 2),
        ("modules whose test has their name, %", 50),
        ("words to leave (lints/rules/words.py)", 1),
        ("semicolons in sentences", 1),
    ],
)
def test_a_measure(tree, measure, value):
    of, _ = house.MEASURES[measure]
    assert of(tree) == value


@pytest.mark.full
def test_a_revision_is_measured_beside_this_tree(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["house", "HEAD"])
    monkeypatch.setattr(house, "MEASURES", {"lines of the library": house.MEASURES["lines of the library"]})
    monkeypatch.setattr(house, "revision", lambda name: house.Tree(house.ROOT / "lints"))
    house.main()
    assert capsys.readouterr().out.splitlines()[0] == "| measure | HEAD | now | goal |"
