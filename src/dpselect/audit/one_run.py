"""The audit of a trainer in one run: many canaries at once, each put into the data by its own coin.

Steinke, Nasr and Jagielski, "Privacy Auditing with One (1) Training Run" (NeurIPS 2023), with the exact worst case of
docs/theory/one-run-audit.md in place of their bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import bdtrc, expit

from dpselect.audit.black_box import reported_delta
from dpselect.audit.canaries import guess, include, right_guesses
from dpselect.audit.one_run_bound import claim_test, one_run_epsilon
from dpselect.audit.result import Audit
from dpselect.errors import AdjacencyError, ArgumentError, number
from dpselect.numerics.search import Array, first_true
from dpselect.privacy import Adjacency, Guarantee
from dpselect.privacy.promises import promise
from dpselect.randomness import RandomSource

__all__ = ["OneRunAudit", "audit_guesses", "label_scores"]


def label_scores(model: Any, rows: Array, labels: NDArray[Any]) -> Array:
    """Return the log-odds that a classifier gives each canary's own label, shape (canaries,).

    A row whose label the model does not know scores 0.

    Args:
        model: a classifier with `predict_proba` and `classes_`.
        rows: the canaries' rows, shape (canaries, columns).
        labels: the canaries' labels, shape (canaries,).
    """
    shares = np.clip(np.asarray(model.predict_proba(rows), dtype=np.float64), 1e-300, 1.0)
    own = np.asarray(labels)[:, None] == np.asarray(model.classes_)[None, :]
    log_own = np.sum(np.where(own, np.log(shares), 0.0), axis=1)
    others = np.sum(np.where(own, 0.0, shares), axis=1)
    return np.where(own.any(axis=1), log_own - np.log(np.maximum(others, 1e-300)), 0.0)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class OneRunAudit:
    """One training run on rows and coin-chosen canaries, and a test of the trainer's claim.

    Adding or removing one canary is adding or removing one row, so the claim must be under add-or-remove-one: the
    coins change the number of rows, and a trainer that takes that number for public will be caught, or miscounted.
    Canaries that hardly touch each other's scores show most: rows with a column each, or mislabelled ones.

    Attributes:
        name: what it is called in a report.
        train: `train(rows, labels)` gives a model, or any output that the claim covers.
        score: `score(model, canary_rows, canary_labels)` gives a number a canary, larger if it looks more like a row
            that was trained on. It sees the output and all canaries, never the coins.
        canary_rows, canary_labels: shape (canaries, columns) and (canaries,).
        rows, labels: what is always in the data (None for no rows).
        claim: the guarantee of `train`, under add-or-remove-one.
        inside, outside: how many canaries will be guessed in and out. Fixed before the run. Few guesses suit a strong
            signal on some canaries, all of them a weak signal on each.

    Raises `ArgumentError` for shapes and counts, `AdjacencyError` for another adjacency.

    >>> from dpselect.learners import OutputPerturbationClassifier
    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.randomness import keyed_source
    >>> def train(rows, labels):
    ...     model = OutputPerturbationClassifier(  # a thousandth of the noise that the claim needs
    ...         epsilon=1000.0, classes=[0, 1], nominal_rows=50, regularization=0.1, random=keyed_source(1)
    ...     )
    ...     return model.fit(rows, labels)
    >>> fault = OneRunAudit(name="too little noise", train=train, score=label_scores, claim=pure_dp(epsilon=1.0),
    ...                     canary_rows=np.eye(100), canary_labels=np.ones(100), inside=50, outside=50)
    >>> fault.run(random=keyed_source(2)).violated
    True
    """

    name: str
    train: Callable[[Array, NDArray[Any]], Any]
    score: Callable[[Any, Array, NDArray[Any]], ArrayLike]
    canary_rows: Array
    canary_labels: NDArray[Any]
    claim: Guarantee
    inside: int
    outside: int
    rows: Array | None = None
    labels: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "claim", _of_canaries(self.claim))
        if np.ndim(self.canary_rows) != 2 or np.shape(self.canary_labels) != np.shape(self.canary_rows)[:1]:
            raise ArgumentError(
                "canary_rows must be of shape (canaries, columns) and canary_labels of shape (canaries,)"
            )
        if (self.rows is None) != (self.labels is None):
            raise ArgumentError("rows and labels must be given together")
        if self.rows is not None and np.shape(self.rows)[1:] != np.shape(self.canary_rows)[1:]:
            raise ArgumentError("rows must have as many columns as canary_rows")
        guess(np.zeros(len(self.canary_rows)), inside=self.inside, outside=self.outside)

    def run(self, *, confidence: float = 0.99, delta: float | None = None, random: RandomSource | None = None) -> Audit:
        """Train once, guess, and judge. `random` draws the coins. The trainer draws where it does."""
        number("confidence", confidence, above=0.0, below=1.0)
        reported_delta(self.claim, delta)
        coins = include(len(self.canary_rows), random)
        rows, labels = np.asarray(self.canary_rows)[coins], np.asarray(self.canary_labels)[coins]
        if self.rows is not None and self.labels is not None:
            rows, labels = np.concatenate([self.rows, rows]), np.concatenate([self.labels, labels])
        model = self.train(rows, labels)
        scores = self.score(model, self.canary_rows, self.canary_labels)
        if np.shape(scores) != coins.shape:
            raise ArgumentError(f"score must give one number for each of {len(coins)} canaries, got {np.shape(scores)}")
        guesses = guess(scores, inside=self.inside, outside=self.outside)
        return audit_guesses(guesses, coins, self.claim, name=self.name, confidence=confidence, delta=delta)


def _of_canaries(claim: Guarantee) -> Guarantee:
    claim = promise("claim", claim)
    if claim.adjacency is not Adjacency.ADD_OR_REMOVE_ONE:
        raise AdjacencyError("claim must be under add_or_remove_one: a coin adds or removes a canary")
    return claim


def audit_guesses(
    guesses: ArrayLike,
    included: ArrayLike,
    claim: Guarantee,
    *,
    name: str = "guesses",
    confidence: float = 0.99,
    delta: float | None = None,
) -> Audit:
    """Judge the guesses about canaries that fair coins included, from a run made elsewhere.

    With probability at least `confidence` no true claim is called violated and `epsilon_lower` is below every true
    epsilon at `delta`, both together. Each errs only when the number of correct guesses reaches a mark, and the lower
    of two marks is reached with probability at most 1 - confidence.

    Args:
        guesses: 1 (in), -1 (out) or 0 (no guess) for each canary, shape (canaries,). You must ensure that the number of
            guesses was fixed in advance.
        included: whether each canary was in the data, booleans of shape (canaries,). You must ensure that each was
            decided by its own fair coin.
        claim: the guarantee that is claimed, under add_or_remove_one.
        name: what the audit is called in a report.
        confidence: the probability that everything the audit says holds, above 0 and below 1.
        delta: the delta at which the measured epsilon is reported, from 0 to below 1. By default the claim's own, or
            1e-5 if it has many.

    Returns:
        An `Audit`: the verdict and what was measured.

    Raises:
        ArgumentError: for guesses or inclusions of another form, or numbers out of range.
        AdjacencyError: for a claim under another adjacency.
        PromiseError: (an `ArgumentError` and a `TypeError`) if `claim` is not a `Guarantee`.
    """
    said, truth = np.asarray(guesses), np.asarray(included)
    if said.ndim != 1 or not np.all(np.isin(said, (-1, 0, 1))):
        raise ArgumentError("guesses must be 1, -1 or 0 for each canary")
    if truth.dtype != np.bool_ or truth.shape != said.shape:
        raise ArgumentError("included must be True or False for each canary")
    claim = _of_canaries(claim)
    confidence = number("confidence", confidence, above=0.0, below=1.0)
    delta = reported_delta(claim, delta)
    canaries, count, correct = len(said), int(np.count_nonzero(said)), right_guesses(said, truth)
    test = claim_test(correct=correct, guesses=count, canaries=canaries, claim=claim)
    shown, limit = (
        one_run_epsilon(correct=v, guesses=count, canaries=canaries, delta=delta, confidence=confidence)
        for v in (correct, count)
    )
    claimed = claim.epsilon(delta)
    power = _power(claim, 2.0 * claimed, guesses=count, canaries=canaries, error=1.0 - confidence)
    sides = {(True, False): "with a canary over without it", (False, True): "without a canary over with it"}
    return Audit(
        name=name,
        violated=test.p_value <= 1.0 - confidence,
        epsilon_lower=shown,
        delta=delta,
        claimed_epsilon=claimed,
        confidence=confidence,
        direction=sides.get((bool(np.any(said > 0)), bool(np.any(said < 0))), "both"),
        event=f"{correct} or more right guesses of {count} about {canaries} canaries",
        draws=canaries,
        method="one-run",
        epsilon_limit=limit,
        power=power,
        shown={
            "planted": {"epsilon": 2.0 * claimed, "delta": 0.0},
            "correct": correct,
            "guesses": count,
            "canaries": canaries,
            "p_value": test.p_value,
            "at_epsilon": test.epsilon,
            "at_delta": test.delta,
        },
    )


def _power(claim: Guarantee, epsilon: float, *, guesses: int, canaries: int, error: float) -> float:
    """How often so many guesses refute the claim, where each is right as often as `epsilon` allows at most."""

    def refutes(correct: int) -> bool:
        return claim_test(correct=correct, guesses=guesses, canaries=canaries, claim=claim).p_value <= error

    least = first_true(refutes, 0, guesses)  # the p-value falls as more guesses are right
    if least is None:
        return 0.0
    return float(bdtrc(least - 1, guesses, expit(epsilon))) if least > 0 else 1.0
