"""`dpselect gate`: is the candidate better than the incumbent? One bit a query, out of one error budget."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dpselect.cli.commands import group
from dpselect.cli.options import (
    AsJson,
    Decimal,
    Delimiter,
    Encoding,
    SkipRows,
    Thousands,
    print_result,
    stake_of,
)
from dpselect.cli.terminal import print_json, say
from dpselect.cures import near_file
from dpselect.decoding.json_text import json_file
from dpselect.decoding.limits import DOCUMENT
from dpselect.errors import ArgumentError, ContentError
from dpselect.holdout import Gate, GateRules, advise_gate, plan_gate
from dpselect.holdout.files import submitted
from dpselect.holdout.gate.certificates import NO_KEY, parse_key, pin_key, pinned_key, verify_certificate
from dpselect.holdout.gate.files import read_groups, read_outcomes
from dpselect.holdout.gate.outcomes import wins_and_losses
from dpselect.holdout.gate.terms import GateTerms
from dpselect.holdout.shared_record import name_of
from dpselect.numerics.digits import rounded, rounded_down, rounded_up
from dpselect.tables import Written

__all__ = ["gate_app"]

gate_app = group("gate")

_Consultations = Annotated[int, typer.Option(help="Asks that the default stakes share the purse among; no limit.")]
_Failure = Annotated[float, typer.Option(help="The chance of ever accepting a candidate that is not better.")]
_Where = Annotated[str, typer.Option("--gate", help="The gate's file, or postgresql://...#NAME.")]


@gate_app.command()
def plan(
    tasks: Annotated[int, typer.Option(help="Independent tasks, or clusters of tasks.")],
    consultations: _Consultations,
    failure_probability: _Failure = 0.05,
    discordant: Annotated[float, typer.Option(help="The share of tasks on which both differ: a guess.")] = 0.2,
    as_json: AsJson = False,
) -> None:
    """Before any run: which gains will be believable, and with what chance."""
    found = plan_gate(
        tasks=tasks, consultations=consultations, failure_probability=failure_probability, discordant=discordant
    )
    lines = [f"{tasks} tasks, {consultations} asks with even stakes, each at level {rounded_up(found.level)}"]
    first = found.smallest_gain[0]
    if first is None:
        lines.append("no gain is believable: take more tasks, fewer asks or larger stakes")
    else:
        lines.append(f"accepted: observed gains from {rounded(first)} ({discordant:.0%} of the tasks discordant)")
        for power, gain in ((50, found.half_power), (90, found.ninety_power)):
            what = f"a true gain of {rounded(gain)}" if gain else "no true gain"
            lines.append(f"{what} is accepted with {power} %")
        later = [gain for gain in found.after_accepts[1:5] if gain is not None]
        if later:
            lines.append(f"after accepts in a row, observed gains from {', '.join(map(rounded, later))}")
    print_result(found.describe(), as_json, *lines)


@gate_app.command()
def create(
    incumbent: Annotated[Path, typer.Argument(metavar="INCUMBENT.csv", help="Ids and outcomes; CSV or JSON lines.")],
    to: Annotated[str, typer.Option(help="The gate's file, which is made; or postgresql://...#NAME.")],
    consultations: _Consultations = 20,
    failure_probability: _Failure = 0.05,
    test: Annotated[str, typer.Option(help="auto, sign, bet or wins (see docs/how-to/gate.md).")] = "auto",
    margin: Annotated[float, typer.Option(help="By how much better an accepted candidate is.")] = 0.0,
    cluster_column: Annotated[
        str | None, typer.Option(help="A column of the incumbent's file: tasks of one cluster count as one.")
    ] = None,
    id_column: Annotated[str, typer.Option(help="The column of ids.")] = "id",
    outcome_column: Annotated[
        list[str] | None, typer.Option(help="A column of outcomes; once for each grader. [default: outcome]")
    ] = None,
    regraded: Annotated[bool, typer.Option(help="The incumbent is graded again beside every candidate.")] = False,
    bound_failure_probability: Annotated[
        float | None, typer.Option(help="A second purse, for bounds on how much better: see `gate retire`.")
    ] = None,
    answer_seconds: Annotated[float, typer.Option(help="Answers come at whole multiples of this time.")] = 0.1,
    key_variable: Annotated[
        str | None, typer.Option(help="An environment variable with the key, in place of a file in the state folder.")
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    as_json: AsJson = False,
) -> None:
    """Seal the incumbent's outcomes into a gate: everything that is tested is fixed here.

    INCUMBENT.csv should be deleted or moved away from anyone who shapes candidates.
    """
    form = Written(delimiter, encoding, decimal, thousands, skip_rows)
    rules = GateRules(
        test=test,
        margin=margin,
        regraded=regraded,
        bound_failure_probability=bound_failure_probability,
        answer_seconds=answer_seconds,
        id_column=id_column,
        outcome_columns=tuple(outcome_column or ["outcome"]),
    )
    outcomes = read_outcomes(incumbent, id_column, rules.outcome_columns, form=form, own=True)
    clusters = None if cluster_column is None else read_groups(incumbent, id_column, cluster_column, form=form)
    made = Gate.create(
        to,
        outcomes,
        consultations=consultations,
        failure_probability=failure_probability,
        clusters=clusters,
        rules=rules,
        key_variable=key_variable,
    )
    terms, name = made.terms, name_of(to) or to
    clustered = f" in {terms.units} clusters" if clusters is not None else ""
    repeated = f", {terms.repeats} outcomes each" if terms.repeats > 1 else ""
    print_result(
        {"gate": name, **terms.fields(), "claim": terms.claim},
        as_json,
        f"{name}: {terms.tasks} tasks{clustered}{repeated}, test {terms.test}, margin {terms.margin:g}",
        f"accepted means: {terms.claim}",
        f"all of it but for a probability of {terms.failure_probability:g}, however often it is asked",
    )


@gate_app.command()
def ask(
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE.csv", help="Ids and outcomes of the candidate.")],
    gate: _Where,
    stake: Annotated[
        str | None, typer.Option(help='Of the purse: a number or "all". [default: an even share of what is left]')
    ] = None,
    content: Annotated[
        Path | None,
        typer.Option(help="The candidate itself, a file: the same content against the same incumbent is not charged."),
    ] = None,
    incumbent: Annotated[
        Path | None, typer.Option(help="The incumbent's outcomes, graded again beside the candidate.")
    ] = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit with 0 for accepted, 1 for rejected.")] = False,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    as_json: AsJson = False,
) -> None:
    """Print accepted or rejected, and nothing else.

    Exit status 2 for outcomes of another form, which are not charged; 3 when the purse is empty.
    """
    form = Written(delimiter, encoding, decimal, thousands, skip_rows)
    place = Gate.open(gate)
    columns = place.terms.id_column, place.terms.outcome_columns
    try:
        limits = submitted(place.terms.tasks * place.terms.repeats)
        outcomes = read_outcomes(candidate, *columns, form=form, limits=limits)
        again = None if incumbent is None else read_outcomes(incumbent, *columns, form=form, limits=limits)
        name = None if content is None else hashlib.sha256(content.read_bytes()).digest()
        accepted = place.ask(outcomes, stake_of(stake), candidate=name, incumbent=again)
    except ContentError as malformed:
        raise ArgumentError(f"{malformed}; nothing was charged") from None
    except OSError as unreadable:  # not status 1, which could be taken for an answer
        raise ArgumentError(
            f"{unreadable.filename} cannot be read; nothing was charged{near_file(unreadable.filename)}"
        ) from None
    verdict = "accepted" if accepted else "rejected"
    print_result({"verdict": verdict}, as_json, verdict)
    if exit_code and not accepted:
        raise typer.Exit(1)


@gate_app.command()
def advise(
    incumbent: Annotated[Path, typer.Argument(metavar="INCUMBENT.csv", help="Its outcomes on development tasks.")],
    candidate: Annotated[Path, typer.Argument(metavar="CANDIDATE.csv", help="The candidate's, on the same tasks.")],
    tasks: Annotated[int, typer.Option(help="Independent tasks of the gate.")],
    purse: Annotated[float, typer.Option(help="What is left in the gate's purse.")],
    typical_gain: Annotated[float, typer.Option(help="How large the gains of experiments are, good and bad.")] = 0.05,
    id_column: Annotated[str, typer.Option(help="The column of ids.")] = "id",
    outcome_column: Annotated[str, typer.Option(help="The column of outcomes.")] = "outcome",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    as_json: AsJson = False,
) -> None:
    """On the searcher's side: whether to ask now or to improve further first, and what to stake.

    Reads development tasks of the searcher's own, never those of the gate. A bad stake costs power, not validity.
    """
    form = Written(delimiter, encoding, decimal, thousands, skip_rows)
    before, after = (
        read_outcomes(each, id_column, [outcome_column], form=form, own=True) for each in (incumbent, candidate)
    )
    wins, losses, count = wins_and_losses(before, after)
    found = advise_gate(
        tasks=tasks, purse=purse, wins=wins, losses=losses, development_tasks=count, typical_gain=typical_gain
    )
    verdict = "ask" if found.ask else "do not ask yet: improve the candidate further, or drop it"
    chance = f"{verdict}; {rounded(100.0 * found.chance, digits=3)} % chance of being accepted"
    stake = [f"stake {rounded_down(found.stake)}"] if found.ask else []
    print_result(found.describe(), as_json, chance, *stake)


@gate_app.command()
def status(gate: _Where, as_json: AsJson = False) -> None:
    """The purse, and what has been asked. Costs nothing."""
    found = Gate.open(gate).status()
    state = "retired" if found["retired"] else "open" if found["open"] else "the purse is empty"
    lines = [
        f"{state}: {rounded_down(found['purse'])} left of {found['failure_probability']:g}",
        f"asked {found['asked']}, accepted {found['accepted']}; {found['tasks']} tasks, test {found['test']}",
        *(f"{one['ask']}. {one['verdict']}, stake {rounded_up(one['stake'])}" for one in found["asks"]),
    ]
    if found["restored"]:
        lines.append(f"older copies were restored: {found['restored']}; answers that they lacked stay charged")
    print_result(found, as_json, *lines, f"accepted means: {found['claim']}")


@gate_app.command()
def retire(gate: _Where, as_json: AsJson = False) -> None:
    """Close a gate for good, and print how much better the accepted candidates are at least."""
    found = Gate.open(gate).retire()
    if as_json:
        print_json({"gains": found})
        return
    for number, gain in enumerate(found, 1):
        say(f"accepted candidate {number}: better by at least {rounded_down(gain) if gain > 0 else gain:}")


@gate_app.command()
def certify(
    gate: _Where,
    to: Annotated[Path, typer.Option(help="The certificate, which is made: a JSON document.")],
) -> None:
    """Write what was asked and answered as a signed certificate. Costs nothing."""
    document = Gate.open(gate).certificate()
    with to.open("x", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2) + "\n")
    say(f"{to}: {len(document['asks'])} asks, signed with {document['terms']['public_key']}")


@gate_app.command()
def verify(
    certificate: Annotated[Path | None, typer.Argument(metavar="[CERTIFICATE.json]", help="A certificate.")] = None,
    gate: Annotated[str | None, typer.Option("--gate", help="The gate's file, where it is at hand.")] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            "--public-key",
            help="The gate's public key, from someone who is trusted: its digits, or a file with them.",
        ),
    ] = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Keep the key in the state folder, for later certificates of this gate.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a gate's record, a certificate, or a certificate against its gate. Exit status 1 when it does not hold.

    No certificate is valid without a key that is trusted: by --gate, by --key, or pinned before by --pin.
    """
    if certificate is None and gate is None:
        raise ArgumentError("give a certificate, --gate or both")
    known = None if gate is None else Gate.open(gate).certificate()
    trusted = None if key is None else parse_key(key)
    try:
        document: Any = known if certificate is None else json_file(certificate, DOCUMENT, unique=True)
        terms = _verified(document, known, trusted)
    except ContentError as error:
        _refuse(str(error), as_json)
    if pin:
        pin_key(document["gate"], terms.public_key)
    accepted = sum(one["verdict"] == "accepted" for one in document["asks"])
    found = {"valid": True, "asked": len(document["asks"]), "accepted": accepted, "key": terms.public_key}
    said = f"valid: {len(document['asks'])} asks, {accepted} accepted; accepted means: {terms.claim}"
    print_result({**found, "claim": terms.claim}, as_json, said)


def _verified(document: Any, known: dict[str, Any] | None, trusted: str | None) -> GateTerms:
    """The terms of a certificate that holds by a trusted key. Raises `ContentError`."""
    if known is not None:
        if trusted not in (None, known["terms"]["public_key"]):
            raise ContentError("the gate has another public key")
        trusted = known["terms"]["public_key"]
    if trusted is None and isinstance(document, dict):
        trusted = pinned_key(document.get("gate"))
    terms = verify_certificate(document, public_key=trusted)
    if known is not None and document["asks"] != known["asks"][: len(document["asks"])]:
        raise ContentError("the certificate says something else than the gate's record")
    return terms


def _refuse(reason: str, as_json: bool) -> NoReturn:
    if as_json:
        print_result({"valid": False, "reason": reason}, as_json)
        raise typer.Exit(1)
    what = f"{reason}; anyone can sign with a key of their own. Give --key or --gate" if reason == NO_KEY else reason
    raise ContentError(f"not valid: {what}")
