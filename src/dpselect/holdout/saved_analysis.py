"""An `AdaptiveAnalysis` that lives on disk: its exposure, its answers and its noise outlast the process.

The data are not in the file. They are given again to open it, and must be the same. Everything random comes from a
sealed key. The cut into blocks is the same in every process. The noise of an answer is a function of the question and
of how many were asked before it. So a crash before an answer is on record costs nothing, and one after it neither.

The noise of a run of verifications is kept in memory only. A run is put on record and charged when it begins, as if it
had been refused. When its process ends, it is closed. Every run has a charge and a noise of its own. Its certificate
allows for that many runs, however they end.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, SupportsFloat, Unpack

import joblib

from dpselect.adaptive import AdaptiveAnalysis, Verification
from dpselect.adaptive.analysis import Verified
from dpselect.adaptive.certificate import Certificate
from dpselect.adaptive.choosing import choice_guarantee
from dpselect.adaptive.grids import AnswerGrid
from dpselect.adaptive.subsamples import Estimator, evaluate
from dpselect.errors import ArgumentError, BudgetError, ContentError, number, public_text
from dpselect.holdout.draws import fingerprint
from dpselect.holdout.record import Record
from dpselect.privacy import Guarantee, Release, Spender
from dpselect.privacy.paying import Payment
from dpselect.privacy.release import Receipt
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource, keyed_source, system_source
from dpselect.randomness.session import Session, answers

__all__ = ["SavedAnalysis"]

_KIND = "analysis"
_TERMS = (
    "queries",
    "subsample_size",
    "failure_probability",
    "grid_size",
    "rank",
    "mechanism",
    "accounting",
    "validity_only",
    "verifications",
    "refusals",
    "verification_rank",
    "margin",
    "order",
)


class SavedAnalysis(Session):
    """A series of adaptive questions about one data set, from any number of processes of one account.

    Make one with `create`, find it again with `open`. Every question has a name. The same name gets the same answer,
    charged once, no matter what happened in between. See `AdaptiveAnalysis` for what is certified.

    Args:
        record: the open record of the analysis, which `create` and `open` pass.
        data: the private rows, the same in the same order as when the analysis was made.
        jobs: the number of joblib processes over the blocks, as in `AdaptiveAnalysis`.
        spender: the budget that pays for the answers. None charges nothing.
        label: the public text of the charges.

    Raises:
        ContentError: for other data than those of the analysis.

    >>> import tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> rows = np.random.default_rng(1).normal(0.3, 1.0, 60_000)
    >>> where = Path(folder.name, "rows.analysis")
    >>> analysis = SavedAnalysis.create(where, rows, queries=10, subsample_size=20, failure_probability=0.05)
    >>> first = analysis.estimate("median", np.median, lower=-10, upper=10, granularity=0.01)
    >>> again = SavedAnalysis.open(where, rows).estimate("median", np.median, lower=-10, upper=10, granularity=0.01)
    >>> first.value == again.value, analysis.remaining
    (True, 9)
    """

    def __init__(self, record: Record, data: Any, jobs: int | None, spender: Spender | None, label: str) -> None:
        super().__init__()
        secret = json.loads(record.secret())  # decodes: sealed
        self._record, self._jobs, self._spender, self._label = record, jobs, spender, label
        self._key = bytes.fromhex(secret["key"])
        if joblib.hash(data) != secret["data"]:
            raise ContentError("data must be what the analysis was made with: the same rows in the same order")
        self._analysis = AdaptiveAnalysis(data, **record.terms, jobs=jobs, random=self._source("cut"))
        self._run: int | None = None  # the run of verifications whose threshold this process holds

    @classmethod
    @options_of(AdaptiveAnalysis)
    def create(
        cls,
        path: str | os.PathLike[str],
        data: Any,
        *,
        jobs: int | None = 1,
        spender: Spender | None = None,
        label: str = "saved-analysis",
        key_variable: str | None = None,
        **terms: Any,
    ) -> SavedAnalysis:
        """Make a new file. `terms` are those of `AdaptiveAnalysis`. They are public, and so is the file's size.

        Raises what `AdaptiveAnalysis` does, before there is a file, and `StudyError` when it cannot be made.
        """
        label = _label(label)
        unknown = [name for name in terms if name not in _TERMS]
        if unknown:
            raise ArgumentError(f"no such argument: {', '.join(unknown)}")
        AdaptiveAnalysis(data, **terms)  # anything that can be wrong is found before there is a file
        record = Record.create(
            Path(path),
            kind=_KIND,
            terms={
                name: float(value) if name in _NUMBERS and value is not None else value for name, value in terms.items()
            },
            secret=json.dumps({"key": system_source().bytes(32).hex(), "data": joblib.hash(data)}).encode(),
            exposure=(0, 0, 0),
            key_variable=key_variable,
        )
        return cls(record, data, jobs, spender, label)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        data: Any,
        *,
        jobs: int | None = 1,
        spender: Spender | None = None,
        label: str = "saved-analysis",
    ) -> SavedAnalysis:
        """Find an analysis again. Raises `StudyError` as `Record.open`, `ContentError` when the data are others."""
        return cls(Record.open(Path(path), kind=_KIND), data, jobs, spender, _label(label))

    @property
    def certificate(self) -> Certificate:
        """The certificate and the guarantee."""
        return self._analysis.certificate

    @property
    @answers  # it waits for the file, which an answer on its way holds
    def remaining(self) -> int:
        """How many estimates and choices may still be asked for."""
        with self._record.turn() as turn:
            return max(self._analysis.certificate.plan.queries - _exposure(turn.entries)[0], 0)

    @property
    @answers
    def refusals_left(self) -> int:
        """How many runs of verifications may still end. One that this process holds is among them."""
        planned = self._planned()
        with self._record.turn() as turn:
            return max(planned.plan.refusals - _exposure(turn.entries)[2], 0) + (self._run is not None)

    @answers
    @options_of(AdaptiveAnalysis.estimate)
    def estimate(
        self,
        question: str,
        estimator: Estimator,
        *,
        axis: bool = False,
        **grid: Unpack[AnswerGrid],
    ) -> Release:
        """`AdaptiveAnalysis.estimate`, on record under the name of the question before it is returned."""

        def answer() -> Release:
            return self._analysis.estimate(estimator, axis=axis, **grid)

        return self._ask("estimate", question, answer, self._analysis.certificate.answer)

    @answers
    def choose(
        self,
        question: str,
        candidates: Sequence[Estimator] | Mapping[str, Estimator],
        *,
        maximize: bool = True,
        axis: bool = False,
    ) -> Release:
        """`AdaptiveAnalysis.choose`. The keys of a mapping must be texts."""
        if isinstance(candidates, Mapping) and not all(isinstance(name, str) for name in candidates):
            raise ArgumentError("candidates must have texts as keys")
        guarantee = choice_guarantee(self._analysis.certificate.plan)
        return self._ask(
            "choose", question, lambda: self._analysis.choose(candidates, maximize=maximize, axis=axis), guarantee
        )

    @answers
    def verify(self, question: str, estimator: Estimator, guess: SupportsFloat, *, axis: bool = False) -> Release:
        """`AdaptiveAnalysis.verify`. Unless this process holds a run, one is begun first, on record and charged."""
        planned, guessed = self._planned(), number("guess", guess)
        name = self._named("verify", question, repr(guessed))
        guarantee = planned.run_guarantee
        with self._record.turn() as turn:
            found = _find(turn.entries, name)
        if found is not None:
            return Release(value=found["value"], guarantee=guarantee)
        values = evaluate(estimator, planned.blocks, axis=axis, jobs=self._jobs)
        receipt = self._begin_run(planned)
        with self._record.turn() as turn:
            entry = _find(turn.entries, name)
            if entry is None:
                estimates, checked, runs = _exposure(turn.entries)
                if checked >= planned.plan.queries:
                    raise BudgetError(f"all {planned.plan.queries} verifications of this analysis were made")
                agrees = bool(planned.check(values, guessed).value)
                entry = {"question": name, "kind": "verify", "value": agrees}
                held, self._run = self._run, None  # an answer that cannot be put on record ends the run
                turn.append(entry, (estimates, checked + 1, runs))
                self._run = held if agrees else None
        return Release(value=entry["value"], guarantee=guarantee, receipt=receipt)

    @options_of(AdaptiveAnalysis.estimate)
    def verify_or_correct(
        self,
        question: str,
        estimator: Estimator,
        guess: SupportsFloat,
        *,
        axis: bool = False,
        **grid: Unpack[AnswerGrid],
    ) -> Release:
        """`verify`, and after a no an `estimate` while questions are left. Its value is a `Verified`."""
        found = self.verify(question, estimator, guess, axis=axis)
        if found.value:
            return replace(found, value=Verified(True, float(guess)))
        try:
            corrected = self.estimate(question, estimator, axis=axis, **grid)
        except BudgetError:
            return replace(found, value=Verified(False, None))
        return replace(corrected, value=Verified(False, corrected.value))

    def _ask(self, kind: str, question: str, answer: Callable[[], Release], guarantee: Guarantee) -> Release:
        name = self._named(kind, question)
        receipt = None
        with self._record.turn() as turn:
            entry = _find(turn.entries, name)
            if entry is None:
                asked, checked, runs = _exposure(turn.entries)
                if asked >= self._analysis.certificate.plan.queries:
                    raise BudgetError(f"all {self._analysis.certificate.plan.queries} questions were asked")
                # the same after a crash, so charged once
                identifier = f"{self._record.identifier}-{asked}-{name[:16]}"
                receipt = self._reserve(guarantee, self._label, identifier)
                self._analysis.resume(asked=asked, random=self._source(f"answer {asked} {name}"))
                entry = {"question": name, "kind": kind, "value": answer().value}
                turn.append(entry, (asked + 1, checked, runs))
        return Release(value=entry["value"], guarantee=guarantee, receipt=receipt)

    def _begin_run(self, planned: Verification) -> Receipt | None:
        """Hold a run's threshold, charged for durably before anything is compared with it."""
        if self._run is not None:
            return None
        with self._record.turn() as turn:
            asked, checked, runs = _exposure(turn.entries)
            if runs >= planned.plan.refusals:
                raise BudgetError("all runs of verifications were used: each refusal and each restart ends one")
            # a file and a state folder that are put back together know nothing of a run's answers: another run has a
            # charge and a noise of its own
            token = system_source().bytes(16).hex()
            identifier = f"{self._record.identifier}-run-{runs}-{token}"
            receipt = self._reserve(planned.run_guarantee, f"{self._label}/verify", identifier)
            turn.append({"kind": "run"}, (asked, checked, runs + 1))
        planned.resume(
            asked=min(checked, planned.plan.queries), refused=runs, random=self._source(f"run {runs} {token}")
        )
        self._run = runs
        return receipt

    def _reserve(self, guarantee: Guarantee, label: str, identifier: str) -> Receipt | None:
        """It is never settled: a settled identifier would be refused when a crash has it asked for again."""
        return Payment.open(guarantee, spender=self._spender, label=label, identifier=identifier).receipt

    def _planned(self) -> Verification:
        if self._analysis.verification is None:
            raise ArgumentError("no verification was planned: give verifications= and refusals=")
        return self._analysis.verification

    def _named(self, *parts: str) -> str:
        if not all(isinstance(part, str) for part in parts):
            raise ArgumentError("question must be a text")
        return fingerprint(self._key, *(part.encode("utf-8", "surrogatepass") for part in parts))

    def _source(self, label: str) -> RandomSource:
        return keyed_source(self._key).spawn(label)

    def __repr__(self) -> str:
        return f"<SavedAnalysis {self._analysis.certificate.plan.mechanism}>"


_NUMBERS = ("failure_probability", "rank", "verification_rank", "margin")


def _label(label: str) -> str:
    """With room for what verifications add to it."""
    return public_text("label", label, longest=190)


def _find(entries: list[dict[str, Any]], name: str) -> dict[str, Any] | None:
    return next((entry for entry in entries if entry.get("question") == name), None)


def _exposure(entries: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Questions, verifications and runs that were used. A loss says what they have become."""
    asked = checked = runs = 0
    for entry in entries:
        if "lost" in entry:
            asked, checked, runs = (max(pair) for pair in zip((asked, checked, runs), entry["lost"], strict=True))
        elif entry["kind"] == "run":
            runs += 1
        elif entry["kind"] == "verify":
            checked += 1
        else:
            asked += 1
    return asked, checked, runs
