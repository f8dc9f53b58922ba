"""Put the fragments of this folder into CHANGELOG.md: see README.md here.

python changes/collect.py [--release VERSION]
"""

from __future__ import annotations

import argparse
import datetime
import re
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
CHANGELOG = FOLDER.parent / "CHANGELOG.md"
HEADINGS = {"privacy": "Privacy", "added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed"}
VALUES = re.compile(r"^Old: .+; new: .+", flags=re.M)


class FragmentError(ValueError):
    """A fragment is not as README.md says."""


def fragments(folder: Path) -> dict[str, list[str]]:
    """The texts by category, in the order of the headings; raises `FragmentError`."""
    found: dict[str, list[str]] = {category: [] for category in HEADINGS}
    for path in sorted(folder.glob("*.md")):
        if path.name == "README.md":
            continue
        category = path.name.removesuffix(".md").rpartition(".")[2]
        text = path.read_text(encoding="utf-8").strip()
        if category not in HEADINGS or path.name.count(".") != 2:
            raise FragmentError(f"{path.name}: must be named what-it-is.CATEGORY.md, of {', '.join(HEADINGS)}")
        if not text or text.startswith(("-", "#")):
            raise FragmentError(f"{path.name}: must be a list item without its dash")
        if category == "privacy" and not VALUES.search(text):
            raise FragmentError(f"{path.name}: a change of privacy says 'Old: ...; new: ...' on a line")
        found[category].append(text)
    return found


def section(found: dict[str, list[str]], title: str) -> str:
    """The section of a release in Markdown."""
    parts = [f"## {title}"]
    for category, texts in found.items():
        if texts:
            items = ["- " + text.replace("\n", "\n  ") for text in texts]
            parts.append(f"### {HEADINGS[category]}\n\n" + "\n".join(items))
    return "\n\n".join(parts) + "\n"


def release(folder: Path, changelog: Path, version: str, day: datetime.date) -> None:
    """Write the section above the last release, and remove the fragments."""
    found = fragments(folder)
    before, mark, after = changelog.read_text(encoding="utf-8").partition("\n## ")
    new = section(found, f"{version} ({day.isoformat()})")
    changelog.write_text(f"{before}\n{new}{mark}{after}", encoding="utf-8")
    for path in folder.glob("*.*.md"):
        path.unlink()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--release", metavar="VERSION")
    version = parser.parse_args().release
    if version is None:
        print(section(fragments(FOLDER), "Unreleased"), end="")
    else:
        release(FOLDER, CHANGELOG, version, datetime.date.today())


if __name__ == "__main__":
    main()
