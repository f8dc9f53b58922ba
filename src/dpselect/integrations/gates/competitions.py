"""Holdouts and gates as the scoring programs of competition platforms: EvalAI, Codabench."""

from __future__ import annotations

import json
import os
import urllib.parse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpselect.errors import ArgumentError, StudyError
from dpselect.holdout import Gate, Holdout
from dpselect.holdout.files import read_columns
from dpselect.holdout.gate.files import read_outcomes
from dpselect.holdout.server import HoldoutClient

__all__ = ["answer_file", "codabench_score", "evalai_evaluate"]


def answer_file(
    where: str | os.PathLike[str], file: str | os.PathLike[str], *, claim: float | None = None
) -> dict[str, Any]:
    """The answer of a holdout or gate to a table of predictions or outcomes, as a dictionary.

    Args:
        where: the file of the holdout or gate; or its URL on a server, for platforms whose workers forget: the token is
            in the environment variable DPSELECT_TOKEN then.
        file: the table.
        claim: for a holdout, what the score is taken to be.

    Returns a score's fields, or {"verdict": "accepted" or "rejected"}.
    """
    place, path = os.fspath(where), Path(file)
    if place.startswith(("https://", "http://")):
        url, slash, name = place.rstrip("/").rpartition("/boards/")
        if not slash or not name:
            raise ArgumentError(f"where must be a leaderboard's URL, as https://example.org/boards/pets, got {place!r}")
        client = HoldoutClient(url, token=os.environ.get("DPSELECT_TOKEN"))
        return client.submit(urllib.parse.unquote(name), path, claim=claim)
    try:
        holdout = Holdout.open(place)
    except StudyError as no_holdout:
        try:
            gate = Gate.open(place)
        except StudyError:
            raise no_holdout from None
        terms = gate.terms
        outcomes = read_outcomes(path, terms.id_column, terms.outcome_columns)
        return {"verdict": "accepted" if gate.ask(outcomes) else "rejected"}
    ids, values = read_columns(path, [holdout.terms.id_column, "prediction"])
    return holdout.score(ids=ids, predictions=values, claim=claim).describe()


def evalai_evaluate(where: str | os.PathLike[str]) -> Callable[..., dict[str, Any]]:
    """Return the function `evaluate` of an EvalAI challenge.

    The annotation file is not read. A call raises what `codabench_score` raises.

    Args:
        where: the file of the holdout or gate, or its URL on a server, as in `answer_file`.
    """

    def evaluate(
        test_annotation_file: str,  # noqa: ARG001 - labels are in the holdout
        user_submission_file: str,
        phase_codename: str,
        **submission: Any,  # noqa: ARG001 - EvalAI's metadata
    ) -> dict[str, Any]:
        shown = _numbers(answer_file(where, user_submission_file))
        return {"result": [{phase_codename: shown}], "submission_result": shown}

    return evaluate


def codabench_score(
    where: str | os.PathLike[str],
    input_folder: str | os.PathLike[str],
    output_folder: str | os.PathLike[str],
    *,
    file: str = "predictions.csv",
) -> dict[str, float]:
    """Run the scoring program of a Codabench competition and return the scores that it writes to `scores.json`.

    Args:
        where: the file of the holdout or gate, or its URL on a server, as in `answer_file`.
        input_folder: the folder with the submission in `res/`.
        output_folder: the folder where `scores.json` is written.
        file: the name of the table of predictions or outcomes in `res/`, "predictions.csv" by default.

    Returns:
        For a holdout its `score`, and the ends `low` and `high` of its interval if there is one. For a gate `accepted`,
            1.0 or 0.0.

    Raises:
        ArgumentError: for a URL that is not a leaderboard's.
        StudyError: if `where` is neither a holdout nor a gate.
        ContentError: for a table that cannot be used.
        BudgetError: if no more can be asked.
        Exception: for a URL, anything that `HoldoutClient.submit` raises.
    """
    shown = _numbers(answer_file(where, Path(input_folder, "res", file)))
    Path(output_folder, "scores.json").write_text(json.dumps(shown), encoding="utf-8")
    return shown


def _numbers(answer: dict[str, Any]) -> dict[str, float]:
    """The numbers of an answer that a leaderboard can hold."""
    if "verdict" in answer:
        return {"accepted": float(answer["verdict"] == "accepted")}
    ends = {} if answer["interval"] is None else dict(zip(("low", "high"), answer["interval"], strict=True))
    return {"score": answer["value"], **ends}
