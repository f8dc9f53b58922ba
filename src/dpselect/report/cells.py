"""Words for the cells of a released table: noisy counts of those that are clipped, missing or unreadable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from dpselect.numerics.digits import rounded_up

__all__ = ["cells_in_words", "withheld_in_words"]

_UNCOUNTED: Final = (
    "The cells were not counted: what is said here holds if every cell can be read as the study declares."
)
_WORDS: Final = {
    "below": "below the bounds and clipped",
    "above": "above the bounds and clipped",
    "missing": "missing",
    "unreadable": "unreadable",
}


def cells_in_words(release: Mapping[str, Any]) -> Iterator[str]:
    """One text for each column with more lost or clipped cells than noise explains, and one for the others.

    Releases of versions that counted no cells have nothing to say.
    """
    if "cells" not in release:
        return
    cells = release["cells"]
    if cells is None:
        if release["found"]:
            yield _UNCOUNTED
        return
    margin, named = cells["margin_95"], set()
    lost = "none of its classes or categories"
    for name, counts in cells["columns"].items():
        bounded = "bounds" in release["data"]["columns"].get(name, {}) or (
            name == release["data"]["label"] and release["data"]["label_bounds"] is not None
        )
        words = _WORDS if bounded else _WORDS | {"unreadable": lost}
        shown = [f"about {counts[fate]} {word}" for fate, word in words.items() if counts[fate] > margin]
        if shown:
            named.add(name)
            yield f"Cells of {name}: {', '.join(shown)}."
    rest = len(cells["columns"]) - len(named)
    others = "" if not named else "other "
    if rest:
        yield f"In {rest} {others}column{'s' * (rest > 1)} no count of lost or clipped cells is above {margin}."
    yield (
        f"These counts have noise: all are off by at most {margin}, 95 % sure. They cost epsilon "
        f"{rounded_up(cells['epsilon'], digits=3)} by themselves, within the total."
    )


def withheld_in_words(release: Mapping[str, Any]) -> str | None:
    """The reason for a withheld model, and what would help. None if none is withheld."""
    cells = release.get("cells")
    if cells is None or not cells["withheld"]:
        return None
    names = ", ".join(map(repr, cells["withheld"][:12]))
    more = f" and {len(cells['withheld']) - 12} more" if len(cells["withheld"]) > 12 else ""
    return (
        f"withheld: more than {100 * cells['most_unreadable']:g} % of the cells that hold something cannot be read as "
        f"declared in {names}{more}, so nothing was trained. Declare how these columns are written (kind, format, "
        "decimal, categories, classes), or raise data.most_unreadable. The whole price is charged"
    )
