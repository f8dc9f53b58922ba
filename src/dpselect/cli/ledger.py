"""`dpselect ledger`: create a budget, show what is left, verify the record, move it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dpselect.cli.commands import group
from dpselect.cli.options import AsJson, print_result
from dpselect.cli.terminal import console, plain, write_data
from dpselect.decoding.files import lines_of
from dpselect.decoding.json_text import json_file
from dpselect.decoding.limits import DOCUMENT, EXPORT
from dpselect.errors import ArgumentError
from dpselect.ledger import Budget, Ledger
from dpselect.ledger.accounting import Amounts
from dpselect.ledger.transfer import export_lines, import_lines
from dpselect.numerics.digits import rounded_down, rounded_up
from dpselect.privacy.release import Receipt

__all__ = ["ledger_app"]

ledger_app = group("ledger")

Where = Annotated[str, typer.Argument(metavar="LEDGER", help="A file, or a postgresql:// URL.")]


@ledger_app.command()
def create(
    ledger: Where,
    name: Annotated[str, typer.Option("--budget", help="The name of the new budget.")],
    epsilon: Annotated[str, typer.Option(help="Epsilon of the whole budget, exact: 3, 0.1 or 1/3.")],
    delta: Annotated[str, typer.Option(help="Delta of the whole budget.")] = "0",
    accounting: Annotated[
        str, typer.Option(help="output (adds up, with refunds) or renyi (tighter for many charges).")
    ] = "output",
    filter_name: Annotated[
        str, typer.Option("--filter", help="With --accounting renyi: renyi, zcdp or gaussian.")
    ] = "renyi",
    adjacency: Annotated[str | None, typer.Option(help="add_or_remove_one or replace_one.")] = None,
    parent: Annotated[str | None, typer.Option(help="The parent budget. A charge must fit both.")] = None,
    part: Annotated[str | None, typer.Option(help="The part of the parent's data that this budget covers.")] = None,
    partition: Annotated[str | None, typer.Option(help="The rule that assigns a row to its part, in words.")] = None,
    delta_each: Annotated[
        str | None, typer.Option(help="The delta of each charge that needs one, such as Gaussian noise.")
    ] = None,
    dates: Annotated[bool, typer.Option("--dates", help="Record the date of each charge, in a new ledger.")] = False,
    as_json: AsJson = False,
) -> None:
    """Create a budget, and the ledger if there is none."""
    with Ledger.open(ledger, dates=dates) as record:
        budget = record.create_budget(
            name,
            epsilon=epsilon,
            delta=delta,
            accounting=accounting,
            filter=filter_name,
            adjacency=adjacency,
            parent=parent,
            part=part,
            partition=partition,
            delta_each=delta_each,
        )
        said = f"budget {name!r}: epsilon {epsilon} at delta {delta} ({accounting})"
        print_result(_described(budget), as_json, said)


@ledger_app.command()
def show(
    ledger: Where,
    budget: Annotated[str | None, typer.Option(help="Show only this budget.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw the charges to this file.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show budgets: spent, left and refunded."""
    if plot is not None and budget is None:
        raise ArgumentError("--plot needs --budget")
    with Ledger.open(ledger, create=False) as record:
        budgets = record.budgets() if budget is None else [record.budget(budget)]
        head = record.head()
        described = [_described(b) for b in budgets]
        if plot is not None and budget is not None:
            _plot(record, budget, plot)
    result = {"budgets": described, "sequence": head.sequence, "head": head.head}
    if not as_json:
        _table(described)
    print_result(result, as_json, f"entry {head.sequence}, head {head.head}")


@ledger_app.command()
def verify(
    ledger: Where,
    receipt: Annotated[
        Path | None, typer.Option(help="A receipt, or a release with one (JSON). The ledger must contain its entry.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check every entry of the ledger and name the first bad one. Exit status 1 if there is one."""
    named = _receipt(receipt) if receipt is not None else None
    with Ledger.open(ledger, create=False) as record:
        record.verify(named)
        head = record.head()
    result = {"verified": True, "sequence": head.sequence, "head": head.head}
    print_result(result, as_json, f"{head.sequence} entries verified, head {head.head}")


@ledger_app.command(name="export")
def export_(
    ledger: Where, output: Annotated[Path | None, typer.Argument(help="A file. The default is standard output.")] = None
) -> None:
    """Write the ledger as JSON lines. It reveals which outputs were charged, so keep it as private as they are."""
    with Ledger.open(ledger, create=False) as record:
        if output is None:
            for line in export_lines(record):
                write_data(f"{line}\n")
            return
        with output.open("x", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in export_lines(record))


@ledger_app.command(name="import")
def import_(
    source: Annotated[Path, typer.Argument(help="JSON lines from `dpselect ledger export`.")],
    ledger: Where,
    as_json: AsJson = False,
) -> None:
    """Make a new ledger from an export and check every entry. Then delete the old one, or both can be spent."""
    with import_lines(lines_of(source, EXPORT), ledger) as record:
        head = record.head()
    result = {"sequence": head.sequence, "head": head.head}
    print_result(result, as_json, f"{head.sequence} entries imported, head {head.head}")


def _described(budget: Budget) -> dict[str, Any]:
    return {
        "name": budget.name,
        "parent": budget.parent,
        "accounting": budget.accounting,
        "adjacency": budget.adjacency.value,
        "epsilon": float(budget.epsilon),
        "delta": float(budget.delta),
        "spent": _amounts(budget.spent()),
        "remaining": _amounts(budget.remaining()),
        "refunded_epsilon": float(budget.refunded()),
    }


def _amounts(amounts: Amounts) -> dict[str, Any]:
    exact = {"epsilon_exact": str(amounts.epsilon), "delta_exact": str(amounts.delta)}
    return {"epsilon": float(amounts.epsilon), "delta": float(amounts.delta), **exact}


def _table(described: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("budget", "within", "counts", "epsilon", "spent", "left", "saved", "delta", "delta left", box=None)
    for row in described:
        table.add_row(
            plain(row["name"]),
            plain(row["parent"] or ""),
            row["accounting"],
            rounded_down(row["epsilon"]),
            rounded_up(row["spent"]["epsilon"]),
            rounded_down(row["remaining"]["epsilon"]),
            rounded_down(row["refunded_epsilon"]),
            rounded_down(row["delta"]),
            rounded_down(row["remaining"]["delta"]),
        )
    console().print(table)


def _plot(record: Ledger, name: str, path: Path) -> None:
    from dpselect.report.plots import plotting, save_plot  # Matplotlib takes a second to import

    history = record.history(name)
    entries = [moment[0] for moment in history]
    spent = [float(reading.epsilon) for _, reading, _ in history]
    without = [float(reading.epsilon + refunded) for _, reading, refunded in history]
    with plotting(height=4.0) as axes:
        axes.step(entries, without, where="post", label="without refunds", linestyle=":")
        axes.step(entries, spent, where="post", label="spent")
        axes.axhline(float(record.budget(name).epsilon), color="black", linewidth=0.8, label="budget")
        axes.set(xlabel="entry", ylabel="epsilon", title=name, ylim=(0, None))
        axes.legend()
        save_plot(axes, path, title=name)


def _receipt(path: Path) -> Receipt:
    try:
        found = json_file(path, DOCUMENT)
        named = found.get("receipt") or found
        sequence, head = named["sequence"], named["head"]
        if not isinstance(sequence, int) or not isinstance(head, str):
            raise TypeError
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ArgumentError(f"receipt: {path} holds no receipt of a ledger (sequence and head)") from None
    return Receipt(str(named.get("account")), str(named.get("identifier")), {}, sequence, head)
