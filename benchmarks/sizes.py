"""What an installation takes on disk, and which part of it is needed for what: python -m benchmarks.sizes

Sizes are those of the installed files (without compiled bytecode) of each distribution and of all that it requires, as
in the environment that this runs in; an extra counts what it adds to the bare installation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement

PACKAGE = "dpselect"
MIB = 1 << 20


def size(name: str) -> int:
    """The bytes of the files of one distribution."""
    files = metadata.files(name) or []
    return sum(path.stat().st_size for each in files if each.suffix != ".pyc" and (path := each.locate()).is_file())


def required(name: str, extra: str = "") -> Iterator[Requirement]:
    """What a distribution requires here, with an extra or without."""
    for text in metadata.requires(name) or []:
        each = Requirement(text)
        if each.marker is None or each.marker.evaluate({"extra": extra}):
            yield each


def all_of(wanted: Iterator[Requirement]) -> tuple[set[str], set[str]]:
    """The names of all that some requirements need, and of those that are not installed here."""
    found: set[str] = set()
    missing: set[str] = set()
    todo = list(wanted)
    while todo:
        each = todo.pop()
        name = re.sub(r"[-_.]+", "-", each.name).lower()
        if name in found or name == PACKAGE:
            continue
        try:
            metadata.distribution(name)
        except metadata.PackageNotFoundError:
            missing.add(name)
            continue
        found.add(name)
        todo += [more for extra in {"", *each.extras} for more in required(name, extra)]
    return found, missing


def main() -> None:
    """Print the tables."""
    base, _ = all_of(required(PACKAGE))
    print(f"bare: {sum(map(size, base)) / MIB:.0f} MiB in {len(base)} distributions")
    for name in sorted(base, key=size, reverse=True):
        print(f"  {name:24} {metadata.version(name):12} {size(name) / MIB:7.1f}")
    for extra in sorted(metadata.metadata(PACKAGE).get_all("Provides-Extra") or []):
        more, missing = all_of(required(PACKAGE, extra))
        added = more - base
        said = f"; not installed here: {', '.join(sorted(missing))}" if missing else ""
        print(f"[{extra}] adds {sum(map(size, added)) / MIB:.0f} MiB in {len(added)} distributions{said}")


if __name__ == "__main__":
    main()
