"""Train, test privately, release only if good: what is withheld can cost less than what is released.

Hartmann, Bindschaedler, Bentkamp, West, "Privacy accounting economics" (2022), section 6: Algorithm 5, Theorem 17.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, SupportsFloat

from dpselect.errors import ArgumentError, number
from dpselect.privacy import Guarantee, OutputGuarantee
from dpselect.privacy.output.amounts import charged_amount, charged_price
from dpselect.privacy.promises import promise

__all__ = ["gated", "logistic_error_shift", "noise_unit", "released_or_none"]


def released_or_none(output: Any) -> str:
    """The cell of a gate's output: "none" for None, else "released".

    >>> released_or_none(None), released_or_none("a model")
    ('none', 'released')
    """
    return "none" if output is None else "released"


def noise_unit(*, train_shift: SupportsFloat, test_shift: SupportsFloat) -> float:
    """a = max(train_shift, test_shift): the test's noise is Laplace of scale a/test_epsilon."""
    train = number("train_shift", train_shift, at_least=0.0, rounding="up")
    return max(train, number("test_shift", test_shift, above=0.0, rounding="up"))


def gated(
    training: Guarantee,
    *,
    test_epsilon: SupportsFloat,
    test_shift: SupportsFloat,
    train_shift: SupportsFloat | None = None,
    disjoint: bool = True,
    delta: SupportsFloat = 0.0,
) -> OutputGuarantee:
    """Train a model, add Laplace noise of scale a/test_epsilon to its error, release it if that is small, else None.

    Claim, with a = `noise_unit` of both shifts and e1 = training.epsilon(delta):

        released: max(e1, test_shift/a test_epsilon),  none: min(released, test_epsilon)               test rows apart,
        released: e1 + test_shift/a test_epsilon,
        none: min(released, (train_shift + test_shift)/a test_epsilon)                     tested on the training rows.

    Proof. Someone who sees a model sees a composition of training with a test of that model. Both use the same data, or
    parts of it, and a neighbour changes one part. Someone who sees None sees the noisy error only. Couple the two
    trainings so that the error moves by train_shift at most. Given both models the noise covers the shift, no matter
    what they are: no delta, and no price of training. With a delta, `training` alone fails, so the whole has that
    delta. Source: Hartmann et al. 2022, Theorem 17 (its proof, for other models than theirs).

    Args:
        training: the guarantee of training alone.
        test_epsilon: the scale of the test's noise is a/test_epsilon.
        test_shift: how far the error of a fixed model moves when one test row changes (you must ensure this).
        train_shift: for neighbouring training data there must be a coupling of the two trained models under which the
            error always moves by at most this (you must ensure this). For noise added to a minimiser it is the same
            noise. None if there is no such coupling: then a = test_shift and None costs as much as a model.
        disjoint: whether the test rows are apart from the training rows by a rule on a single row. If not, both see all
            rows. Under replace_one the part of a row must be fixed, and the replacement fall in the same part (you must
            ensure this).
        delta: the delta of the result, if `training` is not purely private.

    Raises `ArgumentError` when `training` has no finite epsilon at `delta`.

    >>> from dpselect.privacy import pure_dp
    >>> gate = gated(pure_dp(epsilon=1.0), test_epsilon=0.1, test_shift=0.01, train_shift=0.005)
    >>> dict(gate.epsilons)
    {'released': 1.0, 'none': 0.1}
    """
    training = promise("training", training)
    spent = number("test_epsilon", test_epsilon, at_least=2.0**-60, rounding="up")
    test = number("test_shift", test_shift, above=0.0, rounding="up")
    delta = number("delta", delta, at_least=0.0, below=1.0, rounding="up")
    first = training.epsilon(delta)
    if not math.isfinite(first):
        raise ArgumentError("training has no finite epsilon at this delta")
    train = None if train_shift is None else number("train_shift", train_shift, at_least=0.0, rounding="up")
    unit = noise_unit(train_shift=train or 0.0, test_shift=test)
    trained, noise = charged_amount("epsilon", first), charged_amount("test_epsilon", spent)
    tested = Fraction(test) / Fraction(unit) * noise
    released = max(trained, tested) if disjoint else trained + tested
    seen = released
    if train is not None:
        moved = Fraction(1) if disjoint else (Fraction(train) + Fraction(test)) / Fraction(unit)
        seen = min(released, moved * noise)
    return OutputGuarantee(
        cell=released_or_none,
        epsilons={"released": charged_price(released), "none": charged_price(seen)},
        delta=delta,
        adjacency=training.adjacency,
    )


def logistic_error_shift(margin: SupportsFloat, *, bound: Literal["tight", "paper"] = "tight") -> float:
    """How far |tanh(u/2) - y| moves at most when u moves by `margin`, for a label y in [-1, 1]. Rounded up, at most 2.

    "tight": 2 tanh(margin/4), attained around u = 0. "paper": 2 (exp(margin) - 1), more than four times as much. For
    the exact minimiser of a mean logistic loss over n rows of norm at most 1 with regularisation lambda, the margin is
    2/(n lambda) when a row is replaced. Source: Hartmann et al. 2022, Lemma 21.

    >>> round(logistic_error_shift(2 / 7), 8), round(logistic_error_shift(2 / 7, bound="paper"), 6)
    (0.14261468, 0.661424)
    """
    margin = number("margin", margin, at_least=0.0)
    if bound == "tight":
        found = 2.0 * math.tanh(margin / 4.0)
    elif bound == "paper":
        found = 2.0 * math.expm1(min(margin, 1.0))  # above 2 from log 2 on
    else:
        raise ArgumentError(f"bound must be 'tight' or 'paper', got {bound!r}")
    return min(found * (1.0 + 2.0**-50), 2.0)
