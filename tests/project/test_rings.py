"""Modules import one another in one direction: no ring inside of a room or between rooms, hidden imports included.

Imports inside of functions and for types alone count: they hide a ring from Python, and not from a reader.
"""

from __future__ import annotations

import grimp
import numpy as np
from scipy.sparse.csgraph import connected_components


def rings(imports: dict[str, set[str]]) -> set[frozenset[str]]:
    names = sorted(set(imports).union(*imports.values()))
    matrix = np.array([[other in imports.get(one, ()) for other in names] for one in names])
    parts = connected_components(matrix, connection="strong")[1]
    found = [frozenset(np.array(names)[parts == part].tolist()) for part in np.unique(parts)]
    return {ring for ring in found if len(ring) > 1}


def test_modules_import_one_another_in_one_direction():
    graph = grimp.build_graph("dpselect", exclude_type_checking_imports=False, cache_dir=None)
    imports = {
        one.removeprefix("dpselect."): {
            other.removeprefix("dpselect.") for other in graph.find_modules_directly_imported_by(one)
        }
        for one in graph.modules
    }
    assert len(imports) > 300
    assert not rings(imports)


def test_a_ring_is_found():
    assert rings({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == {frozenset("abc")}
    assert not rings({"a": {"b", "c"}, "b": {"c"}})
