"""The leaderboard for people: plain HTML without scripts, readable from 320 pixels on."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

__all__ = ["CSP", "html"]

_STYLE: Final = files("dpselect.holdout.server").joinpath("templates/style.css").read_text(encoding="utf-8")
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
CSP: Final = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; frame-ancestors 'none'; base-uri 'none'"
"""Nothing is loaded, and no style but ours."""

_PAGES: Final = Environment(
    loader=PackageLoader("dpselect.holdout.server"), undefined=StrictUndefined, autoescape=True, trim_blocks=True
)


def html(name: str, **shown: Any) -> str:
    """What is served ("index"), or who has what and what is left, by the kind of the board."""
    return _PAGES.get_template(f"{name}.html").render(**shown, style=_STYLE)
