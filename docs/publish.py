"""Put a built site beside those of other versions: python docs/publish.py BUILT PAGES VERSION

`PAGES` is what a static host shows: a folder for each version, `versions.json` for the choice in the margin, and an
`index.html` that leads to the newest release, or to `dev` while there is none. VERSION is `dev` or a tag such as
v0.2.0; patch releases share a folder with their minor release.
"""

import json
import re
import shutil
import sys
from pathlib import Path

TAG = re.compile(r"v(\d+)\.(\d+)\.\d+")
FIRST = """<!doctype html>
<meta charset="utf-8">
<title>dpselect</title>
<meta http-equiv="refresh" content="0; url={newest}/">
<a href="{newest}/">The documentation</a>
"""


def folder_of(version: str) -> str:
    """Where a version lies."""
    found = TAG.fullmatch(version)
    if found is None and version != "dev":
        raise SystemExit(f"VERSION must be dev or a tag such as v0.2.0, got {version!r}")
    return f"{found[1]}.{found[2]}" if found else version


def in_order(names: list[str]) -> list[str]:
    """The newest release first, `dev` last."""
    return sorted(names, key=lambda name: [-1, -1] if name == "dev" else list(map(int, name.split("."))), reverse=True)


def publish(built: Path, pages: Path, version: str) -> list[str]:
    """Copy, and write what all versions share; the names of all versions."""
    name = folder_of(version)
    shutil.rmtree(pages / name, ignore_errors=True)
    shutil.copytree(built, pages / name, ignore=shutil.ignore_patterns(".doctrees", ".buildinfo"))
    names = in_order([each.parent.name for each in pages.glob("*/objects.inv")])
    (pages / "versions.json").write_text(json.dumps(names) + "\n", encoding="utf-8")
    (pages / "index.html").write_text(FIRST.format(newest=names[0]), encoding="utf-8")
    (pages / ".nojekyll").touch()  # folders that begin with an underscore are pages too
    return names


if __name__ == "__main__":
    print(*publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
