"""Measure the structure of the library: sizes, joints, names, words. For this tree and for any revisions of it.

    python -m benchmarks.house                 # this tree
    python -m benchmarks.house 927b625 HEAD    # and these revisions, one column each

Each line is a measure and what it should be at most (or at least, where it says so).
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from lints.rules.words import places
from lints.source import ROOT, Source

FunctionType = ast.FunctionDef | ast.AsyncFunctionDef
BRANCHES = (
    ast.If | ast.For | ast.While | ast.ExceptHandler | ast.IfExp | ast.comprehension | ast.match_case | ast.BoolOp
)
TWO_STAGES = re.compile(r"two[-_]stage")


class Tree:
    """The library and the tests below a folder."""

    def __init__(self, root: Path):
        self.library = root / "src" / "dpselect"
        paths = sorted(self.library.rglob("*.py"))
        self.sources = [Source(path.relative_to(self.library).as_posix(), path.read_text("utf-8")) for path in paths]
        self.tests = {path.relative_to(root / "tests").as_posix() for path in (root / "tests").rglob("test_*.py")}
        self.public = [ast.parse(path.read_text("utf-8")) for path in self.library.rglob("__init__.pyi")]
        self.words = Counter(measure for source in self.sources for _, measure, _ in places(source))

    def functions(self) -> list[tuple[Source, FunctionType]]:
        """Every function with its file."""
        return [(source, node) for source in self.sources for node in source.nodes if isinstance(node, FunctionType)]


def lines(tree: Tree) -> int:
    return sum(source.text.count("\n") for source in tree.sources)


def calls(tree: Tree, *names: str) -> int:
    nodes = (node for source in tree.sources for node in source.nodes if isinstance(node, ast.Call))
    return sum(isinstance(node.func, ast.Name) and node.func.id in names for node in nodes)


def parameters(node: FunctionType) -> int:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return len([one for one in every if one.arg not in ("self", "cls")])


def wide(tree: Tree, most: int) -> int:
    """Functions of more parameters, outside of commands and of scikit-learn's constructors."""
    functions = ((source, node) for source, node in tree.functions() if source.package != "cli")
    return sum(parameters(node) > most and node.name != "__init__" for _, node in functions)


def branches(tree: Tree) -> int:
    """Functions with more than 20 branches."""
    return sum(sum(isinstance(x, BRANCHES) for x in ast.walk(node)) > 20 for _, node in tree.functions())


def mirrored(tree: Tree) -> float:
    modules = [source.name for source in tree.sources if not source.name.endswith("__init__.py")]
    there = [re.sub(r"([^/]+)$", r"test_\1", name) in tree.tests for name in modules]
    return round(100 * sum(there) / len(there))


def public_names(tree: Tree) -> int:
    """Names of all packages' public APIs, each counted once for each package that has it."""
    bodies = (node for public in tree.public for node in public.body)
    return sum(len(node.names) for node in bodies if isinstance(node, ast.ImportFrom))


MEASURES: dict[str, tuple[Callable[[Tree], float], str]] = {
    "lines of the library": (lines, "74,000"),
    "calls of getattr and hasattr": (lambda tree: calls(tree, "getattr", "hasattr"), "60"),
    "functions over 8 parameters (no commands, no constructors)": (lambda tree: wide(tree, 8), "0"),
    "functions with over 20 branches": (branches, "0"),
    "files that name two stages": (lambda tree: sum(bool(TWO_STAGES.search(s.text)) for s in tree.sources), "6"),
    "readers of CSV (functions `open_csv`)": (lambda tree: sum(n.name == "open_csv" for _, n in tree.functions()), "1"),
    "public names": (public_names, "280"),
    "modules whose test has their name, %": (mirrored, "at least 85"),
    "words to leave (lints/rules/words.py)": (lambda tree: tree.words["word"], "40"),
    "sentences over 30 words": (lambda tree: tree.words["long"], "-"),
    "sentences that open with a clause": (lambda tree: tree.words["clause"], "-"),
    "semicolons in sentences": (lambda tree: tree.words["semicolon"], "-"),
}


def revision(name: str) -> Tree:
    """The tree of a revision."""
    packed = subprocess.run(["git", "-C", str(ROOT), "archive", name, "src", "tests"], capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
        return Tree(Path(folder))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revisions", nargs="*")
    names = parser.parse_args().revisions
    trees = [*map(revision, names), Tree(ROOT)]
    print(f"| measure | {' | '.join([*names, 'now'])} | goal |\n|{'---|' * (len(trees) + 2)}")
    for measure, (of, goal) in MEASURES.items():
        print(f"| {measure} | {' | '.join(f'{of(tree):,}' for tree in trees)} | {goal} |")


if __name__ == "__main__":
    main()
