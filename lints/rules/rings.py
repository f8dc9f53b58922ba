"""Modules import one another in one direction; imports in functions and for types count too."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from lints.rule import WholeRule
from lints.source import Source


def imports(sources: list[Source]) -> dict[str, dict[str, int]]:
    """The modules that each module imports, and the line."""
    files = {_module(source.name): source for source in sources}
    found: dict[str, dict[str, int]] = {}
    for module, source in files.items():
        here = found[module] = {}
        for node in source.nodes:
            if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("dpselect"):
                for name in node.names:
                    inner = f"{node.module}.{name.name}"
                    here.setdefault(inner if inner in files else node.module or "", node.lineno)
            elif isinstance(node, ast.Import):
                here |= {name.name: node.lineno for name in node.names if name.name in files}
    return found


def _module(file: str) -> str:
    return f"dpselect.{file}".removesuffix(".py").replace("/", ".").removesuffix(".__init__")


def rings(imports: dict[str, dict[str, int]]) -> Iterator[list[str]]:
    """Sets of modules each of which reaches the others."""
    names = sorted(imports)
    place = {name: index for index, name in enumerate(names)}
    edges = [(place[one], place[other]) for one in names for other in imports[one] if other in place and other != one]
    if not edges:
        return
    ends = np.array(edges).T
    matrix = csr_array((np.ones(len(edges)), (ends[0], ends[1])), shape=(len(names), len(names)))
    parts = connected_components(matrix, connection="strong")[1]
    for part in np.flatnonzero(np.bincount(parts) > 1):
        yield [names[index] for index in np.flatnonzero(parts == part)]


def in_rings(sources: list[Source]) -> Iterator[tuple[str, int, str]]:
    """The first module of each ring."""
    edges, files = imports(sources), {_module(source.name): source.path for source in sources}
    for ring in rings(edges):
        line = next(line for other, line in edges[ring[0]].items() if other in ring)
        yield files[ring[0]], line, f"a ring of imports: {', '.join(ring)}"


RULE = WholeRule("rings", in_rings)
