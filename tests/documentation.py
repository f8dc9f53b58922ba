"""The pages of the documentation, and the blocks of code that stand in them."""

import re
from pathlib import Path
from textwrap import dedent

from tests.root import ROOT

PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page, language):
    """(line, text) of each fenced block in a language, in order; those in lists without their indent."""
    text = Path(page).read_text(encoding="utf-8")
    for found in re.finditer(rf"^([ ]*)```{language}\n(.*?)^[ ]*```$", text, flags=re.M | re.S):
        yield text.count("\n", 0, found.start(2)) + 1, dedent(found.group(2))


def python_blocks(name):
    """All Python of a page under docs/, as one program."""
    return "\n".join(text for _, text in blocks(ROOT / "docs" / name, "python"))
