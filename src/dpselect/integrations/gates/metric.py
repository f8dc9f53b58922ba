"""A metric that tells no one anything: what it measures goes into a gate. For DSPy, GEPA and what else calls one."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, SupportsFloat

from dpselect.holdout import Gate

__all__ = ["GateMetric"]


class GateMetric:
    """Takes the place of a metric on held-out tasks, and asks a gate about all of them together.

    Called like the metric that it wraps, by as many threads as there are, it keeps the outcome and returns 0. So the
    mean that an evaluation prints says nothing. A metric that raises, and a task that it was never called for, count as
    outcome 0.

    Args:
        gate: the gate's file.
        metric: of one example: `metric(example, prediction, ...)`, a number in [0, 1], True or False; or an object with
            such a `score`.
        key: the id of an example's task.

    >>> import tempfile
    >>> from dpselect.holdout.gate.terms import GateRules
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = os.path.join(folder.name, "my.gate")
    >>> made = Gate.create(path, {number: 0 for number in range(30)}, rules=GateRules(answer_seconds=0))
    >>> held_out = GateMetric(path, lambda example, answer: answer == 2 * example, key=lambda example: example)
    >>> [held_out(number, 2 * number) for number in range(30)][:3], held_out.ask()
    ([0.0, 0.0, 0.0], True)
    """

    def __init__(self, gate: str | os.PathLike[str], metric: Callable[..., Any], *, key: Callable[[Any], Any]) -> None:
        self._gate = Gate.open(gate)
        self._metric, self._key = metric, key
        self._lock = threading.Lock()
        self._outcomes: dict[str, list[Any]] = {}

    def __call__(self, example: Any, *arguments: Any, **options: Any) -> float:
        """Measure one example and say nothing about it."""
        name = str(self._key(example))
        try:
            found = self._metric(example, *arguments, **options)
            outcome = getattr(found, "score", found)
        except Exception:
            outcome = 0.0
        with self._lock:
            self._outcomes.setdefault(name, []).append(outcome)
        return 0.0

    def ask(self, stake: SupportsFloat | str | None = None, *, candidate: str | bytes | None = None) -> bool:
        """Whether the outcomes since the last time are better than the incumbent. Arguments as of `Gate.ask`."""
        with self._lock:
            outcomes, self._outcomes = self._outcomes, {}
        # by a function: that a task is missing, because its program failed, must not be a free answer
        return self._gate.ask(lambda: outcomes, stake, candidate=candidate)  # type: ignore[arg-type]
