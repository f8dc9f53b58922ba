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

_Consultations = Annotated[
    int, typer.Option(help="The number of queries that the default stakes are planned for. It is no limit.")
]
_Failure = Annotated[float, typer.Option(help="The probability of ever accepting a candidate that is not better.")]
_Where = Annotated[str, typer.Option("--gate", help="The gate's file, or postgresql://...#NAME.")]


@gate_app.command()
def plan(
    tasks: Annotated[int, typer.Option(help="Independent tasks, or clusters of tasks.")],
    consultations: _Consultations,
    failure_probability: _Failure = 0.05,
    discordant: Annotated[float, typer.Option(help="Your guess of the fraction of tasks on which both differ.")] = 0.2,
    as_json: AsJson = False,
) -> None:
    """Print which gains a gate can detect, and with what probability. Needs no outcomes."""
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
    to: Annotated[str, typer.Option(help="The gate's new file, or postgresql://...#NAME.")],
    consultations: _Consultations = 20,
    failure_probability: _Failure = 0.05,
    test: Annotated[str, typer.Option(help="auto, sign, bet or wins (see docs/how-to/gate.md).")] = "auto",
    margin: Annotated[float, typer.Option(help="How much better a candidate must be to be accepted.")] = 0.0,
    cluster_column: Annotated[
        str | None, typer.Option(help="A column that names clusters. The tasks of a cluster count as one.")
    ] = None,
    id_column: Annotated[str, typer.Option(help="The column of ids.")] = "id",
    outcome_column: Annotated[
        list[str] | None, typer.Option(help="A column of outcomes. Repeat it for each grader. The default is outcome.")
    ] = None,
    regraded: Annotated[bool, typer.Option(help="Grade the incumbent again with every candidate.")] = False,
    bound_failure_probability: Annotated[
        float | None, typer.Option(help="A second error budget, for bounds on the improvement: see `gate retire`.")
    ] = None,
    answer_seconds: Annotated[float, typer.Option(help="Answers come at multiples of this time.")] = 0.1,
    key_variable: Annotated[
        str | None,
        typer.Option(help="The environment variable with the key. The default is a file in the state folder."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    as_json: AsJson = False,
) -> None:
    """Make a gate: seal the incumbent's outcomes and fix the rules of the test.

    Then delete INCUMBENT.csv, or move it away from anyone who improves candidates.
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
        str | None,
        typer.Option(
            help='The part of the error budget to bet: a number or "all". The default is an even share of the rest.'
        ),
    ] = None,
    content: Annotated[
        Path | None,
        typer.Option(
            help="The candidate itself, a file. The same content against the same incumbent costs nothing again."
        ),
    ] = None,
    incumbent: Annotated[
        Path | None, typer.Option(help="The incumbent's outcomes, graded again with the candidate.")
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

    Exit status 2: outcomes of another form, not charged. Exit status 3: the error budget is used up.
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
    incumbent: Annotated[
        Path, typer.Argument(metavar="INCUMBENT.csv", help="The incumbent's outcomes on your development tasks.")
    ],
    candidate: Annotated[
        Path, typer.Argument(metavar="CANDIDATE.csv", help="The candidate's outcomes on the same tasks.")
    ],
    tasks: Annotated[int, typer.Option(help="The number of independent tasks of the gate.")],
    purse: Annotated[float, typer.Option(help="What is left of the gate's error budget.")],
    typical_gain: Annotated[
        float, typer.Option(help="The typical size of gains and losses of your experiments.")
    ] = 0.05,
    id_column: Annotated[str, typer.Option(help="The column of ids.")] = "id",
    outcome_column: Annotated[str, typer.Option(help="The column of outcomes.")] = "outcome",
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    skip_rows: SkipRows = None,
    as_json: AsJson = False,
) -> None:
    """Advise whether to ask the gate now, and what to stake.

    Reads your own development tasks, never those of the gate. A bad stake costs power, not validity.
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
    """Print the error budget and the queries so far. Costs nothing."""
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
    """Close a gate for good, and print a lower bound on the gain of each accepted candidate."""
    found = Gate.open(gate).retire()
    if as_json:
        print_json({"gains": found})
        return
    for number, gain in enumerate(found, 1):
        say(f"accepted candidate {number}: better by at least {rounded_down(gain) if gain > 0 else gain:}")


@gate_app.command()
def certify(
    gate: _Where,
    to: Annotated[Path, typer.Option(help="The certificate to write (JSON).")],
) -> None:
    """Write all queries and answers as a signed certificate. Costs nothing."""
    document = Gate.open(gate).certificate()
    with to.open("x", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2) + "\n")
    say(f"{to}: {len(document['asks'])} asks, signed with {document['terms']['public_key']}")


@gate_app.command()
def verify(
    certificate: Annotated[Path | None, typer.Argument(metavar="[CERTIFICATE.json]", help="A certificate.")] = None,
    gate: Annotated[str | None, typer.Option("--gate", help="The gate's file, if you have it.")] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            "--public-key",
            help="The gate's public key from a source that you trust: its digits, or a file with them.",
        ),
    ] = None,
    pin: Annotated[
        bool, typer.Option("--pin", help="Keep the key in the state folder, for later certificates of this gate.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check a gate, a certificate, or a certificate against its gate. Exit status 1 if it is not valid.

    A certificate needs a key that you trust: by --gate, by --key, or pinned earlier by --pin.
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
