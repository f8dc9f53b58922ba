"""The name of a class means one thing."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from lints.rule import WholeRule
from lints.source import Source


def repeated(sources: list[Source]) -> Iterator[tuple[str, int, str]]:
    """Classes whose name is defined in two places; one comment `# class-names: reason` excuses all of a name."""
    places: dict[str, list[tuple[Source, int]]] = defaultdict(list)
    for source in sources:
        for node in source.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name].append((source, node.lineno))
    for name, found in places.items():
        excused = [source for source, line in found if source.excused_by(line, line, source.exceptions("class-names"))]
        if len(found) > 1 and not excused:
            others = ", ".join(source.name for source, _ in found[1:])
            yield found[0][0].path, found[0][1], f"{name} is also a class of {others}: rename one"
        elif len(found) == 1 and excused:
            yield found[0][0].path, found[0][1], f"{name} is defined once: the exception is not needed"


RULE = WholeRule("class-names", repeated)
