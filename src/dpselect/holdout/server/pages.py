"""The leaderboard for people: plain HTML without scripts, readable from 320 pixels on."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["CSP", "board_page", "index_page"]

_STYLE: Final = files("dpselect.holdout.server").joinpath("templates/style.css").read_text(encoding="utf-8")
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
CSP: Final = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'; base-uri 'none'"
"""Nothing is loaded, and no style but ours."""

_PAGES: Final = Environment(
    loader=PackageLoader("dpselect.holdout.server"), undefined=StrictUndefined, autoescape=True, trim_blocks=True
)


def index_page(boards: Sequence[Mapping[str, Any]]) -> str:
    """What is served."""
    return _PAGES.get_template("index.html").render(boards=boards, style=_STYLE)


def board_page(board: Mapping[str, Any]) -> str:
    """Who has what, and what is left."""
    return _PAGES.get_template(f"{board['kind']}.html").render(board=board, style=_STYLE)
