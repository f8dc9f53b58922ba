"""`dpselect account --sweep`: what a sweep of another tool cost, as lines, as JSON and as a page for a paper."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from dpselect.cli.computing import computing
from dpselect.cli.described import base_of
from dpselect.cli.options import print_result
from dpselect.cli.terminal import warn
from dpselect.errors import ArgumentError, ContentError
from dpselect.numerics.digits import rounded_up
from dpselect.privacy import Adjacency
from dpselect.version import __version__

if TYPE_CHECKING:
    from dpselect.integrations.sweeps.price import PrivateSearch, SettingsPrice, SweepPrice
    from dpselect.integrations.sweeps.sweep import RecordedSweep

__all__ = ["account_for_sweep", "parse_settings_known", "sweep_page"]

_SHOWN: Final = 12
"""More rows are too many to read: JSON has all."""
_KNOWN: Final = ("fixed", "bounded")


def parse_settings_known(text: str | None) -> Literal["fixed", "bounded"] | None:
    """The option --settings. Raises `ArgumentError`."""
    if text is not None and text not in _KNOWN:
        raise ArgumentError(f"settings must be 'fixed' or 'bounded', got {text[:40]!r}")
    return "fixed" if text == "fixed" else "bounded" if text == "bounded" else None


def account_for_sweep(
    source: str,
    delta: float,
    *,
    form: str | None,
    part: str | None,
    columns: str | None,
    settings: str | None,
    untrained: str | None,
    base: str | None,
    adjacency: str,
    report: Path | None,
    as_json: bool,
) -> None:
    """Read a sweep, price it, print the verdict and write the page."""
    if base is None and adjacency != Adjacency.ADD_OR_REMOVE_ONE:
        raise ArgumentError("--sweep: DP-SGD is priced under add_or_remove_one")
    one_run = None if base is None else base_of(base, adjacency=adjacency)
    from dpselect.integrations.sweeps.price import price_sweep
    from dpselect.integrations.sweeps.roles import parse_columns

    known, given = parse_settings_known(settings), parse_columns(columns)
    names = frozenset(name.strip() for name in (untrained or "").split(",") if name.strip())
    sweep = _read(source, part, form)
    with computing("the price"):
        price = price_sweep(sweep, delta=delta, columns=given, known=known, untrained=names, base=one_run)
    if report is not None:
        _write(report, sweep_page(price))
    print_result(_described(price), as_json, *_lines(price))


def _read(source: str, part: str | None, form: str | None) -> RecordedSweep:
    from dpselect.integrations.sweeps.read import read_sweep

    try:
        return read_sweep(source, part=part, form=form)
    except ContentError as error:
        raise ContentError(f"--sweep: {error}") from None
    except OSError as error:
        raise ArgumentError(f"--sweep: {source!r} cannot be read: {error.strerror or 'not readable'}") from None


def _write(report: Path, page: str) -> None:
    from dpselect.storage.durable import write_atomically

    try:
        write_atomically(report, page.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise ArgumentError(f"--report: {str(report)!r} cannot be written: {error.strerror}") from None
    warn(f"wrote {report}")


def _described(price: SweepPrice) -> dict[str, Any]:
    """As JSON: null for an epsilon that is not guaranteed."""
    return {
        "epsilon": _finite(price.epsilon),
        "delta": price.delta,
        "bound": price.rule,
        "adjacency": price.adjacency.value,
        "sweep": price.sweep.name,
        "format": price.sweep.tool,
        "runs": price.runs,
        "runs_without_guarantee": price.unprotected,
        "statuses": dict(price.statuses),
        "columns": dict(price.columns),
        "settings": [
            {**each.settings.describe(), "runs": each.runs, "epsilon": _finite(each.epsilon)} for each in price.settings
        ],
        "composition_epsilon": _finite(price.composed),
        "bounded_epsilon": _finite(price.bounded),
        "odometer_epsilon": _finite(price.adaptive),
        "private_searches": [
            {"repetitions": each.law.describe(), "epsilon": _finite(each.epsilon), **each.quality.describe()}
            for each in price.searches
        ],
        "rests_on": list(price.rests_on),
        "missing": list(price.missing),
    }


def _lines(price: SweepPrice) -> list[str]:
    first = (
        "no guarantee for the whole sweep"
        if math.isinf(price.epsilon)
        else f"epsilon {rounded_up(price.epsilon)} at delta {price.delta:g} for the whole sweep: {price.rule}"
    )
    read = ", ".join(f"{role} from {column!r}" for role, column in price.columns.items())
    return [
        first,
        f"sweep {price.sweep.name!r} ({price.sweep.tool}): {_counted(price.statuses)}",
        *([f"read: {read}"] if read else []),
        *_listed("runs by their settings:", [_of_settings(each) for each in price.settings]),
        *_listed(_PROTECTED if price.unprotected else _CONDITIONS, _others(price)),
        *_listed(_SEARCH.format(runs=price.runs), [_search(each) for each in price.searches]),
        *_listed("it rests on:", price.rests_on, most=None),
        *_listed("missing:", price.missing, most=None),
    ]


_CONDITIONS: Final = "the same runs under other conditions:"
_PROTECTED: Final = "the runs with a guarantee alone:"
_SEARCH: Final = "as a private search of {runs} runs on average (their number secret, the best run released):"


def _of_settings(each: SettingsPrice) -> str:
    named = ", ".join(f"{name} {_short(value)}" for name, value in each.settings.describe().items()) or "the base"
    return f"{each.runs} of {named}: epsilon {rounded_up(each.epsilon)} for one"


def _short(value: float) -> str:
    return f"{value:.6g}"


def _others(price: SweepPrice) -> list[str]:
    """The epsilons that hold under other conditions than the one of the headline."""
    if price.composed is None:
        return []
    found = (
        (price.composed, "if settings and number of runs were fixed in advance"),
        (price.bounded, "if only the number of runs and the limits of their settings were"),
        (price.adaptive, "if nothing was fixed in advance (odometer)"),
    )
    return [f"epsilon {rounded_up(value)} {words}" for value, words in found if value is not None]


def _search(each: PrivateSearch) -> str:
    return f"{each.law.describe()['law']}: epsilon {rounded_up(each.epsilon)}; the winner: {each.quality.words()}"


def _counted(statuses: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {status}" for status, count in statuses.items())


def _listed(title: str, lines: Sequence[str], most: int | None = _SHOWN) -> list[str]:
    more = [f"- and {len(lines) - most} more"] if most is not None and len(lines) > most else []
    return [title, *(f"- {line}" for line in lines[:most]), *more] if lines else []


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


# ---- the page --------------------------------------------------------------------------------------------------------


def sweep_page(price: SweepPrice) -> str:
    """The verdict as Markdown: a paragraph for a paper, tables of the settings and of private searches, conditions."""
    return "\n".join(
        [
            "# The privacy cost of a sweep",
            "",
            _paragraph(price),
            "",
            "| settings | runs | epsilon of one run |",
            "|---|---|---|",
            *(
                f"| {_settings_cell(each.settings.describe())} | {each.runs} | {rounded_up(each.epsilon)} |"
                for each in price.settings
            ),
            "",
            "| condition | epsilon of the sweep |",
            "|---|---|",
            *(_row(line) for line in _others(price)),
            "",
            *_page_of_searches(price),
            *_page_list("## It rests on", price.rests_on),
            *_page_list("## Missing", price.missing),
            f"Computed by dpselect {__version__} (`dpselect account --sweep`), format `{price.sweep.tool}`.",
            "",
        ]
    )


_NEIGHBOURS: Final = {"add_or_remove_one": "adding or removing one row", "replace_one": "replacing one row"}


def _paragraph(price: SweepPrice) -> str:
    name, counted = _escaped(price.sweep.name), _counted(price.statuses)
    whole = f"The record of the sweep *{name}* has these runs: {counted}. Each counts, regardless of its status."
    if math.isinf(price.epsilon):
        return f"{whole} **The sweep has no differential privacy guarantee**, for the reasons listed below."
    return (
        f"{whole} The choice of hyperparameters is part of the mechanism. All runs together satisfy "
        f"**({rounded_up(price.epsilon)}, {price.delta:g})-differential privacy** under "
        f"{_NEIGHBOURS[price.adjacency.value]} ({price.rule}), if the conditions below hold."
    )


def _settings_cell(described: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {_short(value)}" for name, value in described.items()) or "the base"


def _row(line: str) -> str:
    value, _, words = line.removeprefix("epsilon ").partition(" ")
    return f"| {words} | {value} |"


def _page_of_searches(price: SweepPrice) -> list[str]:
    if not price.searches:
        return []
    return [
        "## The same as a private search",
        "",
        f"The number of runs is drawn from a public distribution with mean {price.runs} and stays secret. Each run "
        "draws its settings from those of the sweep. Only the best run is released.",
        "",
        "| distribution | epsilon | expected quantile of the winner | as good as the best of |",
        "|---|---|---|---|",
        *(
            f"| {each.law.describe()['law']} | {rounded_up(each.epsilon)} | {each.quality.expected_quantile:.3f} "
            f"| {each.quality.fixed_runs:.3g} runs |"
            for each in price.searches
        ),
        "",
    ]


def _page_list(title: str, lines: Sequence[str]) -> list[str]:
    return [title, "", *(f"- {_escaped(line)}" for line in lines), ""] if lines else []


def _escaped(text: str) -> str:
    """Text in which no sign is markup, on one line."""
    plain = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#" else sign for sign in plain if sign.isprintable())
