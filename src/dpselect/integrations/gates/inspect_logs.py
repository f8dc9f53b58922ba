"""Outcomes from a log of Inspect (inspect.aisi.org.uk): what its scorers gave each sample. Needs no Inspect."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["inspect_outcomes"]

_LETTERS: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS: Final = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}


def inspect_outcomes(log: Any, *, scorer: str | None = None, field: str | None = None) -> dict[str, list[Any]]:
    """The outcome of each sample by its id, one for each epoch. It is 0 for a sample that failed or has no such score.

    For `Gate.create` and, within a function, for `Gate.ask`: an evaluation that broke off has samples missing, and that
    must not be an answer that costs nothing.

    Args:
        log: an `EvalLog` with its samples, as `inspect_ai.eval` and `read_eval_log` give it.
        scorer: the name of the scorer; by default the first one.
        field: of scores that are dictionaries, the field that counts.

    >>> from types import SimpleNamespace as Sample
    >>> right, wrong = ({"match": Sample(value=letter)} for letter in "CI")
    >>> inspect_outcomes(Sample(samples=[Sample(id=1, scores=right), Sample(id="b", scores=wrong)]))
    {'1': [1.0], 'b': [0.0]}
    """
    found: dict[str, list[Any]] = {}
    for sample in log.samples or ():
        scores = getattr(sample, "scores", None) or {}
        score = scores.get(scorer) if scorer is not None else next(iter(scores.values()), None)
        value = getattr(score, "value", None)
        if field is not None:
            value = value.get(field) if isinstance(value, dict) else None
        found.setdefault(str(sample.id), []).append(_outcome(value))
    return found


def _outcome(value: Any) -> Any:
    if isinstance(value, str):
        return _LETTERS.get(value, _WORDS.get(value.lower(), value))
    return 0.0 if value is None else value
