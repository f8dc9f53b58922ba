"""Step 7 of a study, what it writes, atomically: the model, facts.json, the pages for people, and last release.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import dpselect
from dpselect.decoding.json_text import json_file
from dpselect.decoding.limits import DOCUMENT
from dpselect.errors import ContentError, StudyError
from dpselect.privacy.release import Receipt
from dpselect.report.cells import withheld_in_words
from dpselect.report.facts import search_facts
from dpselect.storage.durable import write_atomically
from dpselect.study.columns.column import Column
from dpselect.study.dependence import strongest
from dpselect.study.load import Opened
from dpselect.study.model_file import read_model
from dpselect.study.price import Priced
from dpselect.study.refit import Refitted, Withheld
from dpselect.study.render import accuracy_warning, figures
from dpselect.study.schema import Study
from dpselect.study.validate import RELEASE, Settled, budget_of
from dpselect.tables.table import source_name
from dpselect.tuning import TuneResult

__all__ = ["described", "read_release", "remake_report", "strongest_columns", "write"]

MODEL, FACTS, REPORT, CARD = "model.npz", "facts.json", "report.html", "model-card.md"


def write(opened: Opened, released: Refitted | Withheld | None, result: TuneResult) -> None:
    """Write what was found to the study's folder; calling it again with the same arguments changes nothing."""
    priced, settled = opened.priced, opened.priced.settled
    found = released if isinstance(released, Refitted) else None
    folder, price = settled.place.folder, priced.price
    columns, test = settled.columns, None
    if found is not None:
        columns = found.chosen.recipe.columns
        write_atomically(folder / MODEL, found.content)
        test = None if opened.test is None else opened.test.of(folder / MODEL, module=_module(found))
    release = _release(priced, result, found, test)
    release |= {"preparation": _preparation(priced, columns), **described(settled.study, columns)}
    release["cells"] = None
    if price.cells is not None and released is not None and released.counts is not None:
        release["cells"] = price.cells.released(released.counts, price.delta)
    if (why := withheld_in_words(release)) is not None:
        release |= {"score": None, "notes": [*release["notes"], why]}
    facts = search_facts(
        parts=price.parts,
        search=price.search,
        law=settled.law,
        delta=price.delta,
        bounds=None if price.purchase is None else price.purchase.guarantee,
        cells=None if price.cells is None else price.cells.guarantee,
        final=None if price.second is None else price.second.guarantee,
        budget=_budget_moved(settled, result.receipt),
    )
    if settled.study.person is not None:
        facts["rows"] = {}  # several rows of a person are covered
    pages = _pages(release, facts)
    write_atomically(folder / FACTS, _json(facts))
    for name, page in pages.items():
        write_atomically(folder / name, page.encode())
    write_atomically(folder / RELEASE, _json(release))


def _pages(release: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, str]:
    from dpselect.report.model_card import render_model_card  # Jinja and Matplotlib: for a report alone
    from dpselect.report.page import render_page

    return {REPORT: render_page(release, facts), CARD: render_model_card(release, facts)}


def remake_report(folder: Path, output: Path | None = None) -> Path:
    """Make report.html and model-card.md again, from release.json and facts.json alone; returns where the page is.

    With `output` the page alone is made, and written there.

    Raises `StudyError` when the folder holds no release, or one that this version cannot read.
    """
    from jinja2 import UndefinedError  # loaded with the page

    release, facts = (read_release(folder, name) for name in (RELEASE, FACTS))
    try:
        pages = _pages(release, facts)
    except (LookupError, TypeError, ValueError, AttributeError, UndefinedError):
        raise StudyError(f"{str(folder)!r}: {RELEASE} and {FACTS} are not a release of this version") from None
    made = {folder / name: page for name, page in pages.items()} if output is None else {output: pages[REPORT]}
    for place, page in made.items():
        write_atomically(place, page.encode())
    return folder / REPORT if output is None else output


def _json(content: Mapping[str, Any]) -> bytes:
    return (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()


def read_release(folder: Path, name: str = RELEASE) -> dict[str, Any]:
    """The content of release.json, or of another file beside it; raises `StudyError`."""
    try:
        content = json_file(folder / name, DOCUMENT)
    except OSError:
        raise StudyError(f"{str(folder)!r} holds no {name}: it is not the folder of a release") from None
    except ContentError as error:
        raise StudyError(f"{str(folder)!r}: {error}") from None
    if not isinstance(content, dict):
        raise StudyError(f"{str(folder / name)!r} is not the {name} of a release")
    return content


def _release(
    priced: Priced, result: TuneResult, found: Refitted | None, test: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The content of release.json: the winner's parameters, the guarantee, versions; nothing about other runs.

    Which candidates a portfolio has is public; how they did is not.
    With a ledger also the receipt of the reservation, for `dpselect ledger verify --receipt`; `test` says how the model
    does on public rows.
    """
    study, price = priced.settled.study, priced.price
    chosen = None if found is None else found.chosen
    validation = None if found is None or found.cells is None else figures(priced, found.cells)
    note = accuracy_warning(study, validation)
    named = study.privacy.ledger is not None
    return {
        "study": study.name,
        "design": priced.settled.design,
        "candidates": [dict(candidate.parameters) for candidate in priced.settled.candidates],
        "learner": study.learner.name if chosen is None else chosen.recipe.kind,
        "settings": priced.settled.settings,
        "found": chosen is not None,
        "parameters": None if chosen is None else dict(chosen.parameters),
        "score": result.score,
        "model": None if chosen is None else MODEL,
        "task": study.data.task,
        "validation": validation,
        "test": test,
        "dependence": [] if found is None else strongest_columns(found.content, _module(found)),
        "notes": [note] if note is not None else [],
        "guarantee": price.search.describe(delta=price.delta) | {"unit": "row" if study.person is None else "person"},
        "replayable": result.replayable,
        "receipt": asdict(result.receipt) if named and result.receipt is not None else None,
        "versions": {"dpselect": dpselect.__version__},
    }


def strongest_columns(content: bytes, module: str | None = None) -> list[dict[str, Any]]:
    """The partial dependence of the model. Nothing if a learner from outside cannot answer for synthetic rows."""
    with suppress(Exception):
        return strongest(read_model(content, MODEL, module=module))
    return []


def _module(found: Refitted) -> str | None:
    """The code of the user's own that made the model."""
    return {**found.chosen.recipe.shared, **found.chosen.parameters}.get("module")


def described(study: Study, columns: Mapping[str, Column]) -> dict[str, Any]:
    """Parts of release.json, by their keys; JSON-able. `columns` are those of the model, in its order.

    Of a source its name alone stands there: a folder, a host or a user is no one's business.
    """
    data = study.data
    return {
        "card": study.card.model_dump(),
        "data": {
            "source": source_name(data.source, data.table),
            "form": {key: value for key, value in vars(data.form).items() if value is not None and key != "table"},
            "label": data.label,
            "classes": None if data.classes is None else list(data.classes),
            "label_bounds": None if data.label_bounds is None else list(data.label_bounds),
            "nominal_rows": study.privacy.nominal_rows,
            "person": study.person,
            "columns": {
                name: column.model_dump(mode="json", exclude_defaults=True) for name, column in columns.items()
            },
        },
    }


def _preparation(priced: Priced, columns: Mapping[str, Column]) -> dict[str, Any] | None:
    """The bounds that were bought, and what for."""
    purchase = priced.price.purchase
    if purchase is None:
        return None
    bounds = {name: None if columns[name].private else columns[name].bounds for name in purchase.columns}
    described = purchase.describe(priced.settled.study.privacy.nominal_rows, priced.price.delta)
    return {"bounds": bounds} | {name: described[name] for name in ("epsilon", "column_epsilon", "share")}


def _budget_moved(settled: Settled, receipt: Receipt | None) -> dict[str, Any] | None:
    """The named budget before and after this search, read off the record at its own entry.

    Not as it stands now: what others spent meanwhile depends on how long the search took.
    """
    with budget_of(settled.study, settled.place) as named:
        if named is None or receipt is None or receipt.sequence is None:
            return None
        ledger, budget = named
        entries = [(0, (0.0, 0.0))]
        entries += [(n, (float(spent.epsilon), float(spent.delta))) for n, spent, _ in ledger.history(budget.name)]
        before = [spent for n, spent in entries if n < receipt.sequence][-1]
        after = [spent for n, spent in entries if n <= receipt.sequence][-1]
        return {
            "name": budget.name,
            "accounting": budget.accounting,
            "epsilon": float(budget.epsilon),
            "delta": float(budget.delta),
            "before": {"epsilon": before[0], "delta": before[1]},
            "after": {"epsilon": after[0], "delta": after[1]},
        }
