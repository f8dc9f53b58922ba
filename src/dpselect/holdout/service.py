"""A holdout that lasts: one file of sealed labels, many adaptive questions, a certificate for all answers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError, expect, number, public_text
from dpselect.holdout.draws import Draws, class_codes, fingerprint
from dpselect.holdout.files import NAMING, aligned, class_names, numbers, predicted_classes, texts, unique_ids
from dpselect.holdout.machine import Entry, State
from dpselect.holdout.record import Snapshot
from dpselect.holdout.scores import METRICS, HoldoutMetric, Scored
from dpselect.holdout.shared_record import AnyRecord, create_record, open_record
from dpselect.holdout.terms import HoldoutRequest, Terms
from dpselect.privacy import Spender
from dpselect.privacy.paying import Payment, asked_at
from dpselect.randomness import system_source
from dpselect.randomness.session import Unrepeatable

__all__ = ["Holdout", "HoldoutLabels", "Score"]

_KIND = "holdout"


def _format(metrics: Sequence[str]) -> str:
    """A label's. All labels of a holdout have one size, so that the size of what is sealed tells nothing about them."""
    if METRICS[metrics[0]].numeric_labels:
        return "<f8"
    return "?" if tuple(metrics) == ("auc",) else "<u8"


@dataclass(frozen=True, kw_only=True)
class Score:
    """One answer.

    `agrees`: whether the claim was confirmed, or None without one. `value`: a score, or the claim when it was confirmed
    and no score was given (the Gaussian mechanism always gives one). `interval`: around the population's score, by the
    certificate. None if that is about quantiles. `repeated`: it was given before and cost nothing now.
    """

    agrees: bool | None
    value: float
    interval: tuple[float, float] | None
    repeated: bool
    questions_left: int
    answers_left: int

    def describe(self) -> dict[str, Any]:
        """JSON-able."""
        return {**asdict(self), "interval": None if self.interval is None else list(self.interval)}


@dataclass(frozen=True, kw_only=True, repr=False)
class HoldoutLabels:
    """Held-out labels with the names of their rows, as texts: what a holdout seals. Secret.

    Args:
        ids: one public name a row, all different.
        labels: classes for accuracy (`class_names` says which are the same), numbers for errors, two classes for auc.
            The rows must be independent draws from one population (you must ensure this).
        positive: for auc, f1 and log-loss: the class that predictions are about. How many rows it has becomes public,
            but for log-loss alone.
        id_column, label_column: what both are called in errors, and later the ids of predictions.

    >>> HoldoutLabels(ids=range(3), labels=["cat", "dog", "cat"]).ids
    ('0', '1', '2')
    """

    ids: Iterable[Any]
    labels: Iterable[Any]
    positive: Any = None
    id_column: str = "id"
    label_column: str = "label"

    def __post_init__(self) -> None:
        public_text("id_column", self.id_column)
        public_text("label_column", self.label_column)
        object.__setattr__(self, "ids", tuple(texts(self.ids)))
        object.__setattr__(self, "labels", tuple(texts(self.labels)))

    def sealed(self, metrics: Sequence[str], key: bytes) -> tuple[NDArray[Any], int | None, str | None]:
        """The labels as they are sealed, of one size each, what `HoldoutRequest.plan` takes as `rarer`, where it is
        public, and the code of the positive class."""
        of_class = any(METRICS[name].of_class for name in metrics)
        if (self.positive is None) == of_class:
            needed = "needed" if of_class else "not taken"
            raise ArgumentError(f"positive is {needed} for the metric {' and '.join(map(repr, metrics))}")
        classes, names, column = tuple(self.labels), tuple(self.ids), self.label_column
        if len(names) != len(classes):
            raise ContentError("ids and labels differ in length")
        unique_ids(names, self.id_column)
        if "" in classes:
            raise ContentError(f"column {column!r} has rows without a label")
        named = class_names(classes)
        form = _format(metrics)
        if form == "<f8":
            return numbers(classes, column).astype(form), None, None
        codes = class_codes(key, named).astype(form if form != "?" else "<u8")
        if not of_class:
            return codes, None, None
        (code,) = class_codes(key, class_names(texts([self.positive])))
        first = codes == code
        count = int(first.sum())
        two = set(metrics) <= {"accuracy", "f1"} or len(set(named)) == 2
        if not two or min(count, len(first) - count) < 4:
            raise ContentError(f"column {column!r} must hold two classes, one of them the positive one, of 4 rows each")
        if form == "?":
            return first, min(count, len(first) - count), None
        return codes, count if {"auc", "f1"} & set(metrics) else None, f"{int(code):016x}"


class Holdout(Unrepeatable):
    """A sealed set of labels that you may ask about, again and again.

    Make one with `create`, find it again with `open`. Any number of processes of one account may hold the same holdout.
    An answer is on disk before it is shown. The same question gets the same answer, once charged. `BudgetError` ends
    it.

    Args:
        record: the open record of the holdout, which `create` and `open` pass.

    >>> import tempfile, numpy as np
    >>> from pathlib import Path
    >>> folder = tempfile.TemporaryDirectory()
    >>> labels = np.random.default_rng(0).integers(0, 2, 5000)
    >>> request = HoldoutRequest(metric="accuracy", questions=100, answers=5, failure_probability=0.05)
    >>> rows = HoldoutLabels(ids=range(5000), labels=labels)
    >>> holdout = Holdout.create(Path(folder.name, "labels.holdout"), rows, request)
    >>> found = holdout.score(ids=range(5000), predictions=labels ^ (np.arange(5000) % 10 == 0), claim=0.9)
    >>> found.agrees, found.value, found.questions_left
    (True, 0.9, 99)
    """

    def __init__(self, record: AnyRecord) -> None:
        self._record = record
        secret = json.loads(record.secret())  # decodes: sealed
        self._terms = Terms.parse(record.terms)
        self._key = bytes.fromhex(secret["key"])
        self._places: dict[str, int] = {name: place for place, name in enumerate(secret["ids"])}
        metrics = (self._terms.metric.name, *self._terms.further)
        self._labels = np.frombuffer(bytes.fromhex(secret["labels"]), dtype=_format(metrics))
        self._positive = int(secret.get("positive") or "0", 16)
        self._naming = secret.get("naming", 1)
        plan = self._terms.plan
        nothing = State(plan.questions, plan.answers, plan.answers == plan.questions)
        self._folded = Snapshot(lambda state, entries: state.after(map(Entry.parse, entries)), nothing)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        labels: HoldoutLabels,
        request: HoldoutRequest,
        *,
        spender: Spender | None = None,
        label: str = "holdout",
        key_variable: str | None = None,
    ) -> Holdout:
        """Seal labels into a new file. Nothing about them is in the clear but their number.

        Args:
            path: the new file, or postgresql://...#NAME (docs/how-to/server.md). Its key goes to the state folder of
                the user.
            labels: no one may have seen them (you must ensure this).
            request: what may be asked. Errors need its `bound`.
            spender: charged for the whole holdout, before the file appears. It needs epsilon. A crash in between leaves
                the charge.
            label: of the charge.
            key_variable: an environment variable for the key, in place of a file in the state folder.

        Raises `ArgumentError` when no mechanism is certified, `ContentError` for labels that cannot be used,
        `BudgetError` when the spender refuses, `StudyError` when the file cannot be made.
        """
        expect("labels", labels, HoldoutLabels)
        expect("request", request, HoldoutRequest)
        label, kind = public_text("label", label), METRICS[request.metrics[0]]
        for name in request.metrics:
            if METRICS[name].bounded and request.bound is None:
                raise ArgumentError(f"bound is needed for the metric {name!r}")
        names, key = list(labels.ids), system_source().bytes(32)
        found, rarer, positive = labels.sealed(request.metrics, key)
        choice = request.plan(rows=len(names), rarer=rarer)
        plan = choice.plan
        if spender is not None and (plan.row_privacy is None or request.epsilon is None):
            raise ArgumentError("a ledger needs epsilon: without it nothing is promised to a row")
        terms = Terms(
            metric=kind,
            bound=request.scale,
            rows=len(names),
            id_column=labels.id_column,
            plan=plan,
            reason=choice.reason,
            delta=request.delta,
            further=choice.further,
        )

        def reserve(identifier: str) -> None:
            if plan.row_privacy is not None:
                payer = asked_at(spender, request.delta)
                Payment.open(plan.row_privacy, spender=payer, label=label, identifier=identifier).close()

        secret = {
            "key": key.hex(),
            "ids": names,
            "labels": found.tobytes().hex(),
            "positive": positive,
            "naming": NAMING,
        }
        record = create_record(
            path,
            kind=_KIND,
            terms=terms.fields(),
            secret=json.dumps(secret).encode(),
            exposure=(0, 0),
            key_variable=key_variable,
            reserve=reserve,
        )
        return cls(record)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Holdout:
        """Find a holdout again. Raises `StudyError` when it is none, was changed, is newer, or its key is missing."""
        return cls(open_record(path, kind=_KIND))

    @property
    def terms(self) -> Terms:
        """The questions that may be asked, the certificate and the guarantee."""
        return self._terms

    @property
    def identifier(self) -> str:
        """Random, public, fixed."""
        return self._record.identifier

    def score(
        self,
        *,
        ids: Iterable[Any],
        predictions: Iterable[Any],
        claim: SupportsFloat | None = None,
        column: str = "prediction",
        submitter: str = "",
        metric: str | None = None,
    ) -> Score:
        """Check a claimed score of these predictions, or answer with a score.

        A confirmed claim uses up a question, anything else a question and an answer. Predictions that were asked
        about before with the same claim are answered from the record.

        Args:
            ids: the holdout's ids, each once, in any order.
            predictions: one a row: a class, or a number. A class that no label has is wrong. None and NaN are refused.
            claim: what the submitter takes the score to be, from other data (not from earlier answers about the same
                rows only: a claim costs nothing when it is right).
            column: the predictions' name in errors.
            submitter: whose question it is, if several ask who should not learn of each other's. The same question of
                another submitter is another question, and charged.
            metric: one of those that the holdout was made for, by default the first. Each is a question of its own.

        Raises `ContentError` for predictions that cannot be used and `ArgumentError` for a claim out of range, before
        anything is charged. Raises `BudgetError` when nothing is left, and `StudyError` when the file or its counter
        cannot be used: nothing was shown then, and asking again costs no more.
        """
        kind, plan = self._terms.of(metric)
        scored = self._scored(kind, texts(ids), texts(predictions), column)
        claimed, scale = None, self._terms.scale(kind)
        if claim is not None:
            claimed = number("claim", claim, at_least=0.0, at_most=scale) / scale
        predicted = fingerprint(self._key, scored.predictions.tobytes())
        further = [kind.name] if kind is not self._terms.metric else []
        of_whom = [public_text("submitter", submitter)] if submitter else []
        more = [json.dumps([further, of_whom]).encode()] if further or of_whom else []
        question = fingerprint(self._key, predicted.encode(), repr(claimed).encode(), *more)
        with self._record.turn() as turn:
            state = self._folded.of(turn.entries)
            entry = state.known.get(question)
            repeated = entry is not None
            if entry is None:
                state.check()
                draws = Draws(self._key, predicted, question, run=state.exposure.answered)
                entry = Entry(question, *plan.answer(scored, claimed, draws))
                state = replace(state, exposure=state.exposed(entry))
                turn.append(entry.fields(), state.exposure)
        interval = plan.interval(entry.value, entry.agrees)
        return Score(
            agrees=entry.agrees,
            value=entry.value * scale,
            interval=None if interval is None else (interval[0] * scale, interval[1] * scale),
            repeated=repeated,
            questions_left=state.questions_left,
            answers_left=state.answers_left,
        )

    def status(self) -> dict[str, Any]:
        """The questions asked and left, JSON-able. Costs nothing, and shows nothing about the labels."""
        with self._record.turn() as turn:
            state = self._folded.of(turn.entries)
        return {
            "asked": state.exposure.asked,
            "answered": state.exposure.answered,
            "questions_left": state.questions_left,
            "answers_left": state.answers_left,
            "open": state.questions_left > 0,
            **self._terms.describe(),
        }

    def _scored(self, metric: HoldoutMetric, ids: list[str], predictions: list[str], column: str) -> Scored:
        terms, labels = self._terms, self._labels
        given = aligned(self._places, ids, predictions, terms.id_column)
        if metric.of_class and labels.dtype != np.bool_:
            labels = labels == self._positive
        if metric.numeric:
            values: Any = numbers(given, column)
            if metric.probabilities and not ((values >= 0.0) & (values <= 1.0)).all():
                raise ContentError(f"column {column!r} must hold probabilities of the positive class, from 0 to 1")
        else:
            values = class_codes(self._key, predicted_classes(given, column, naming=self._naming))
            values = values == self._positive if metric.of_class else values
        return Scored(metric, labels, values, terms.scale(metric))

    def __repr__(self) -> str:
        return f"<Holdout {self._terms.metric.name}, {self._terms.plan.mechanism}>"
