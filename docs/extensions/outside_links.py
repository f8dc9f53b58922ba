"""Links of pages to files of the repository outside of `docs/`, which work where the repository is read, work here too.

A file that the site has as a page (`PAGES`) becomes a link to it; other files are offered as downloads by MyST.
"""

from __future__ import annotations

from sphinx.application import Sphinx

PAGES = {
    "../THREATS.md": "explanation/threats.md",
    "../ARCHITECTURE.md": "reference/architecture.md",
    "../CHANGELOG.md": "reference/changelog.md",
}


def to_pages(_app: Sphinx, page: str, source: list[str]) -> None:
    """Rewrite the links of one page before it is read."""
    up = "../" * page.count("/")
    for file, own in PAGES.items():
        source[0] = source[0].replace(f"]({up}{file}", f"]({up}{own}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register."""
    app.connect("source-read", to_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
