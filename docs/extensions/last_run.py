"""The directive `{last-run}`: which commit the site was built from, when that was made, and who built it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


def commit() -> str:
    """The short name and the day of the commit, or nothing outside of a repository."""
    try:
        shown = subprocess.run(
            ["git", "log", "-1", "--format=%h of %cs"],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return shown.stdout.strip()


def sentence(commit: str, environment: Mapping[str, str]) -> tuple[str, str]:
    """What is said, and the address of the run, if it has one."""
    source = f"commit {commit}" if commit else "a copy without its history"
    if not environment.get("CI"):
        return f"This page was built by hand from {source}; continuous integration has dates of its own.", ""
    said = f"This page was built by continuous integration from {source}: the last run of what runs on each commit."
    parts = [environment.get(f"GITHUB_{name}", "") for name in ("SERVER_URL", "REPOSITORY", "RUN_ID")]
    return said, f"{parts[0]}/{parts[1]}/actions/runs/{parts[2]}" if all(parts) else ""


class LastRun(SphinxDirective):
    """One paragraph."""

    def run(self) -> list[nodes.Node]:
        """Written afresh by every build."""
        self.env.note_reread()
        said, address = sentence(commit(), os.environ)
        paragraph = nodes.paragraph("", said)
        if address:
            paragraph += [nodes.Text(" "), nodes.reference("", "Its log", refuri=address), nodes.Text(".")]
        return [paragraph]


def setup(app: object) -> dict[str, bool]:
    """Register."""
    app.add_directive("last-run", LastRun)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
