"""What is public in a package is imported from it; other modules only if lints/shared-modules.md has them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

from lints.rule import WholeRule
from lints.source import LIBRARY, ROOT, Source

LOOK_ANYWHERE = {"testing"}
"""Packages that compare the inside of others with exact laws."""


@cache
def public() -> dict[str, dict[str, str]]:
    """The public names of each package and folder, and the modules that they come from."""
    return {
        ".".join(("dpselect", *path.parent.relative_to(LIBRARY).parts)): {
            name.name: node.module or ""
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.ImportFrom)
            for name in node.names
        }
        for path in LIBRARY.rglob("*/__init__.pyi")
    }


@cache
def shared() -> frozenset[str]:
    """The table of `lints/shared-modules.md`: modules that other packages may import from."""
    table = (ROOT / "lints" / "shared-modules.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    return frozenset(
        f"dpselect.{package.strip(' `')}.{module}"
        for package, cell in rows
        for module in re.findall(r"`([^`]+)`", cell)
    )


def inner_imports(source: Source, modules: set[str]) -> Iterator[tuple[int, str, str, str | None]]:
    """(line, module, name, public home of the name) of each import from a module of another package."""
    packages = {name.split("/")[0] for name in modules if "/" in name}
    for node in source.nodes:
        if isinstance(node, ast.Import):
            found = [(name.name, "") for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found = [(node.module or "", name.name) for name in node.names]
        else:
            continue
        for module, name in found:
            parts = module.split(".")
            if name and modules & {f"{'/'.join([*parts[1:], name])}{end}" for end in (".py", "/__init__.py")}:
                parts, name = [*parts, name], ""  # a module, imported from its folder
                module = ".".join(parts)
            inner = parts[0] == "dpselect" and len(parts) > 2 and parts[1] != source.package and parts[1] in packages
            if inner and module not in public():
                homes = (".".join(parts[:end]) for end in range(2, len(parts)))
                yield node.lineno, module, name, next((home for home in homes if name in public().get(home, {})), None)


def past_public(sources: list[Source]) -> Iterator[tuple[str, int, str]]:
    """Imports past the public API of another package, and rows of the table that nothing uses."""
    modules, used = {source.name for source in sources}, set[str]()
    for source in sources:
        for line, module, name, home in inner_imports(source, modules):
            if home:
                yield source.path, line, f"import {name} from {home}"
            if source.package not in LOOK_ANYWHERE:
                used.add(module)
                if module not in shared():
                    yield source.path, line, f"{module} is not in lints/shared-modules.md"
    for module in sorted(shared() - used):
        yield "lints/shared-modules.md", 1, f"no other package needs {module}: take it off the table"


RULE = WholeRule("public-api", past_public)
