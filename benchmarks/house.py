"""The size and the shape of the library's source, from its syntax trees: of one folder, or of several side by side.

    python benchmarks/house.py src
    git archive 2c97310 src | tar -x -C /tmp/before && python benchmarks/house.py /tmp/before/src src

What a line counts is said where it is counted. Nothing is imported but by the last one, which runs a command.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

Modules = dict[str, ast.Module]
ACCOUNT = ("dpselect", "account", "--base", "pure:epsilon=1", "--repetitions", "poisson:mean=10", "--delta", "0")
COMMAND = f"""
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
sys.argv = {list(ACCOUNT)}
from dpselect.cli import main
main()
"""


def nodes(tree: ast.AST, *kinds: type) -> Iterator[Any]:
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def name_of(file: Path, source: Path) -> str:
    return ".".join(file.relative_to(source).with_suffix("").parts).removesuffix(".__init__")


def imported(tree: ast.AST) -> set[str]:
    """Names that are imported from anywhere."""
    return {alias.name for node in nodes(tree, ast.ImportFrom) for alias in node.names}


def public_names(source: Path, modules: Modules) -> int:
    """Names on the faces of rooms: what the stub re-exports, or without one what stands in `__all__`."""
    count = 0
    for face in source.glob("dpselect/*/__init__.py"):
        if face.with_suffix(".pyi").exists():
            count += len(imported(ast.parse(face.with_suffix(".pyi").read_text())))
            continue
        named = (node for node in modules[name_of(face, source)].body if isinstance(node, ast.Assign))
        count += sum(len(node.value.elts) for node in named if ast.unparse(node.targets[0]) == "__all__")  # type: ignore[attr-defined]
    return count


def long_signatures(_: Path, modules: Modules) -> int:
    """Functions and methods with more than eight parameters, `self` and `cls` left out."""
    found = (node.args for tree in modules.values() for node in nodes(tree, ast.FunctionDef, ast.AsyncFunctionDef))
    names = ([each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)] for args in found)
    return sum(len(set(each) - {"self", "cls"}) > 8 for each in names)


def halving_loops(_: Path, modules: Modules) -> int:
    """Loops that halve a sum, (low + high) / 2: searches that are written out."""

    def halves(node: ast.BinOp) -> bool:
        summed = isinstance(node.left, ast.BinOp) and isinstance(node.left.op, ast.Add)
        return summed and isinstance(node.op, (ast.Div, ast.FloorDiv)) and ast.unparse(node.right) in ("2", "2.0")

    loops = (loop for tree in modules.values() for loop in nodes(tree, ast.While, ast.For))
    return sum(any(map(halves, nodes(loop, ast.BinOp))) for loop in loops)


def places_that_reserve(_: Path, modules: Modules) -> int:
    """Calls of a method `reserve`, those of the contract of ledgers (`testing`) left out."""
    trees = (tree for name, tree in modules.items() if not name.startswith("dpselect.testing"))
    calls = (call for tree in trees for call in nodes(tree, ast.Call))
    return sum(getattr(call.func, "attr", "") == "reserve" for call in calls)


def printers(_: Path, modules: Modules) -> int:
    """Files that take a direction of rounding from `decimal`, and print amounts by it."""
    return sum({"ROUND_CEILING", "ROUND_FLOOR"} <= imported(tree) for tree in modules.values())


def imports_of_laws(_: Path, modules: Modules) -> int:
    """Imports of one law's class, summed over files, but for the room of the laws, `testing` and `reproduce`."""
    room = "dpselect.repetitions"
    others = (room, "dpselect.testing", "dpselect.reproduce")
    own = [node.name for name, tree in modules.items() if name.startswith(room) for node in nodes(tree, ast.ClassDef)]
    laws = {name for name in own if not name.startswith("_")} - {"Repetitions", "FiniteLaw", "Family"}
    trees = (tree for name, tree in modules.items() if not name.startswith(others))
    froms = ([n for n in nodes(tree, ast.ImportFrom) if (n.module or "").startswith(room)] for tree in trees)
    return sum(len({alias.name for node in each for alias in node.names} & laws) for each in froms)


def longest_chain(_: Path, modules: Modules) -> int:
    """Modules on the longest way of imports at the top of files, each importing the next; a lazy face ends it."""

    @cache
    def imports(module: str) -> set[str]:
        froms = [node for node in modules[module].body if isinstance(node, ast.ImportFrom) and node.module]
        whole = {alias.name for node in modules[module].body if isinstance(node, ast.Import) for alias in node.names}
        parts = {f"{node.module}.{alias.name}" for node in froms for alias in node.names}
        return (whole | parts | {str(node.module) for node in froms}) & modules.keys()

    lengths: dict[str, int] = {}

    def length(module: str, above: tuple[str, ...] = ()) -> int:
        if module not in lengths:
            beneath = imports(module) - {*above, module}
            lengths[module] = 1 + max((length(one, (*above, module)) for one in sorted(beneath)), default=0)
        return lengths[module]

    return max(map(length, sorted(modules)))


def loaded_by_account(source: Path, _: Modules) -> int:
    """Modules in memory at the end of `dpselect account` with a pure base and a Poisson law."""
    environment = {**os.environ, "PYTHONPATH": str(source.resolve())}
    run = subprocess.run([sys.executable, "-c", COMMAND], env=environment, capture_output=True, text=True, check=False)
    if not run.stdout:
        raise RuntimeError(run.stderr)
    return len(run.stderr.split())


MEASURES: dict[str, Callable[[Path, Modules], int]] = {
    "files": lambda _, modules: len(modules),
    "lines": lambda source, _: sum(len(file.read_text().splitlines()) for file in source.rglob("*.py")),
    "public names": public_names,
    "functions with more than 8 parameters": long_signatures,
    "loops that halve": halving_loops,
    "places that reserve": places_that_reserve,
    "printers of amounts": printers,
    "imports of a law beside its own file": imports_of_laws,
    "modules on the longest chain of imports": longest_chain,
    "modules loaded by `dpselect account`": loaded_by_account,
}


def definitions(modules: Modules) -> Counter[str]:
    """The lines of functions and classes at the top of files, by name."""
    lines: Counter[str] = Counter()
    for node in (node for tree in modules.values() for node in tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            lines[node.name] += (node.end_lineno or 0) - min(one.lineno for one in (node, *node.decorator_list)) + 1
    return lines


def print_shared(before: Counter[str], after: Counter[str]) -> None:
    """What of the growth is in definitions that were there before."""
    print()
    for label, kept in (
        ("lines of definitions that both have", before.keys() & after.keys()),
        ("lines of those that one alone has", before.keys() ^ after.keys()),
    ):
        print(f"{label:<42}", *(f"{sum(each[name] for name in kept):>8,}" for each in (before, after)))


def main() -> None:
    sources = [Path(argument) for argument in sys.argv[1:] or ["src"]]
    trees = [{name_of(file, one): ast.parse(file.read_text()) for file in one.rglob("*.py")} for one in sources]
    for label, measure in MEASURES.items():
        print(f"{label:<42}", *(f"{measure(*pair):>8,}" for pair in zip(sources, trees, strict=True)))
    if len(trees) == 2:
        print_shared(*map(definitions, trees))


if __name__ == "__main__":
    main()
