"""The docstring of a public name describes its parameters and what it returns.

`MOST` is how many did not when it was last lowered. Print their names by `python -m lints.rules.docstrings`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from lints.rule import WholeRule
from lints.rules.public_apis import public
from lints.source import Source, library

MOST = {"Args": 3, "Returns": 8}
"""Public names with parameters and no such section, and functions that do not say what they return."""


def missing(sources: list[Source]) -> Iterator[tuple[str, int, str, str]]:
    """(path, line, section, name) of each public name whose docstring lacks a section."""
    files = {source.name: source for source in sources}
    for package, names in public().items():
        folder = package.removeprefix("dpselect").lstrip(".").replace(".", "/")
        for name, module in names.items():
            path = f"{folder}/{module.replace('.', '/')}".strip("/")
            source = files.get(f"{path}.py") or files.get(f"{path}/__init__.py")
            for node in source.tree.body if source else ():
                if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name and source:
                    yield from ((source.path, node.lineno, section, name) for section in lacking(node))


def lacking(node: ast.FunctionDef | ast.ClassDef) -> Iterator[str]:
    """The sections that a docstring should have and has not."""
    said = ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        parameters = _arguments(node)
        if "Returns:" not in said and not said.startswith("Return"):
            yield "Returns"
    else:
        made = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"]
        fields = [each.target for each in node.body if isinstance(each, ast.AnnAssign)]
        parameters = [each.id for each in fields if isinstance(each, ast.Name) and not each.id.startswith("_")]
        for each in made:
            parameters, said = _arguments(each)[1:], said + (ast.get_docstring(each) or "")
    if parameters and "Args:" not in said and "Attributes:" not in said:
        yield "Args"


def _arguments(node: ast.FunctionDef) -> list[str]:
    every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return [each.arg for each in every if not each.arg.startswith("_")]


def grown(sources: list[Source]) -> Iterator[tuple[str, int, str]]:
    """The sections that more names lack than before."""
    found = Counter(section for _, _, section, _ in missing(sources))
    for section, most in MOST.items():
        if found[section] > most:
            yield "lints/rules/docstrings.py", 1, f"{found[section]} public names lack {section}:, at most {most}"


RULE = WholeRule("docstrings", grown)

if __name__ == "__main__":
    for path, line, section, name in missing(list(library())):
        print(f"{path}:{line}: {name} lacks {section}:")
