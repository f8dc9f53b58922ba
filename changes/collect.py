"""Check the fragments of this folder, and make a release of them: see README.md here.

python changes/collect.py [--archive VERSION | --release VERSION]
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
    """All fragments in Markdown."""
    parts = [f"## {title}"]
    for category, texts in found.items():
        if texts:
            items = ["- " + text.replace("\n", "\n  ") for text in texts]
            parts.append(f"### {HEADINGS[category]}\n\n" + "\n".join(items))
    return "\n\n".join(parts) + "\n"


def archive(folder: Path, version: str) -> list[str]:
    """Move the fragments to the record of a version, and return their names."""
    fragments(folder)
    record = folder / "archive" / version
    record.mkdir(parents=True, exist_ok=True)
    moved = sorted(folder.glob("*.*.md"))
    for path in moved:
        path.rename(record / path.name)
    return [path.name for path in moved]


def release(folder: Path, changelog: Path, version: str, day: datetime.date) -> None:
    """Give the section of a version its day. Raises `FragmentError` if it is not written yet."""
    if any(fragments(folder).values()):
        raise FragmentError("there are fragments: write them into CHANGELOG.md, then run --archive")
    text, waiting = changelog.read_text(encoding="utf-8"), f"\n## {version} (unreleased)\n"
    if text.count(waiting) != 1:
        raise FragmentError(f"CHANGELOG.md needs one section '## {version} (unreleased)'")
    changelog.write_text(text.replace(waiting, f"\n## {version} ({day.isoformat()})\n"), encoding="utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    step = parser.add_mutually_exclusive_group()
    step.add_argument("--archive", metavar="VERSION")
    step.add_argument("--release", metavar="VERSION")
    options = parser.parse_args()
    if options.archive:
        print(*archive(FOLDER, options.archive), sep="\n")
    elif options.release:
        release(FOLDER, CHANGELOG, options.release, datetime.date.today())
    else:
        print(section(fragments(FOLDER), "Not in the changelog yet"), end="")


if __name__ == "__main__":
    main()
