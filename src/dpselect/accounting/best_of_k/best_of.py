"""The price of releasing the best of a random number of runs.

A bound is a function from (base guarantee, law of K) to a guarantee; `BOUNDS` names them. Add one by adding a line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from dpselect.accounting.best_of_k.profile_bounds import BestOfProfile
from dpselect.accounting.best_of_k.pure_bounds import pure_best_of
from dpselect.accounting.best_of_k.renyi_bounds import BestOfRenyi, MinimumRenyi, renyi_curve_of
from dpselect.accounting.best_of_k.theorems import lemma_20
from dpselect.accounting.optimal import ATOMS, optimal_best_of
from dpselect.errors import BoundUnavailableError
from dpselect.privacy import Guarantee, approximate_dp
from dpselect.privacy.profile import MinimumProfile
from dpselect.privacy.promises import promise
from dpselect.repetitions import Repetitions

__all__ = ["BOUNDS", "best_of", "smallest_of"]

Builder = Callable[[Guarantee, Repetitions], Guarantee | None]


def _pure(base: Guarantee, law: Repetitions) -> Guarantee | None:
    """Epsilon outside the failure mass; with none, pure privacy (Papernot, Steinke 2022, Lemmas 7 and 20)."""
    tilted, failure = lemma_20(law=law, failure=base.failure)
    epsilon = pure_best_of(law=tilted, epsilon=base.pure_epsilon)
    if not np.isfinite(epsilon) or failure >= 1.0:
        return None
    priced = approximate_dp(epsilon=epsilon, delta=failure, adjacency=base.adjacency)
    return replace(priced, theorem="exact pure privacy of the best of K runs", lower_profile=None)


def _renyi(base: Guarantee, law: Repetitions, *, numeric: bool = True) -> Guarantee | None:
    """A Renyi curve outside the failure mass (Papernot, Steinke 2022)."""
    inside = _without_failure(base)
    if renyi_curve_of(inside) is None:
        return None
    tilted, failure = lemma_20(law=law, failure=base.failure)
    if failure >= 1.0:
        return None
    curve = BestOfRenyi(inside, tilted, numeric)
    return Guarantee(adjacency=base.adjacency, theorem=curve.theorem, failure=failure, renyi_curve=curve)


def _published(base: Guarantee, law: Repetitions) -> Guarantee | None:
    """The closed forms of the Renyi curve alone: what other libraries compute, in a tenth of a millisecond."""
    return _renyi(base, law, numeric=False)


def _without_failure(base: Guarantee) -> Guarantee:
    """What holds outside the failure mass: the profile counts that mass, so it is not among it."""
    if base.failure == 0.0:
        return base
    return replace(base, failure=0.0, profile=None, lower_profile=None, loss=None, gaussian_mu=None)


def _profile(base: Guarantee, law: Repetitions) -> Guarantee | None:
    """A privacy profile (Koskela, Redberg, Wang 2024, and two sharper bounds)."""
    if base.profile is None and base.renyi_curve is None and not np.isfinite(base.pure_epsilon):
        return None
    profile = BestOfProfile(base, law)
    return Guarantee(adjacency=base.adjacency, theorem=profile.theorem, profile=profile)


def _optimal(base: Guarantee, law: Repetitions, *, atoms: int = ATOMS) -> Guarantee | None:
    """The supremum over every mechanism that the base allows (docs/theory/optimal-selection.md)."""
    if base.profile is None and base.renyi_curve is None and not np.isfinite(base.pure_epsilon):
        return None
    return optimal_best_of(base, law, atoms=atoms)


BOUNDS: dict[str, Builder] = {"optimal": _optimal, "renyi": _renyi, "pure": _pure}
"""The bounds whose smallest is the default, by name; a builder returns None where its bound does not exist."""

CHEAPER: dict[str, Builder] = {"profile": _profile, "published": _published}
"""Bounds that are never smaller than the default, by name: quicker, and a cross-check."""


def best_of(
    base: Guarantee, repetitions: Repetitions, *, bound: str | None = None, atoms: int | None = None
) -> Guarantee:
    """The guarantee of running a mechanism K times and releasing the best output alone.

    One run satisfies `base`, the score that decides among runs being part of its output; K is drawn from
    `repetitions` independently of the data; runs are independent draws of one mixture of candidates; nothing but the
    best output is released: not K, not a losing run, not the time it took (all owed by the caller). With K = 0 the
    release is "none", the same whatever the data.

    `bound` is one of

    - "optimal": the supremum over every mechanism that the base's dominating pairs allow, with the value that some
      mechanism attains in `epsilon_bracket`;
    - "renyi": a Renyi curve; "pure": an epsilon outside a failure mass;
    - "profile": hockey-stick bounds, and "published": the Renyi theorems in closed form, both quicker and looser;
    - None for the smallest of "optimal", "renyi" and "pure", as far as they exist, each valid by itself.

    `atoms` (16 to 200,000; 3,000 unless told) is how finely the optimal bound cuts the base: the width of its bracket
    falls with the square, the time grows in proportion.

    Same adjacency as the base; rounded up. Raises `BoundUnavailableError` when the named bound does not exist for
    this base, listing those that do.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Logarithmic
    >>> total = best_of(pure_dp(epsilon=1.0), Logarithmic.with_mean(mean=10.0))
    >>> round(total.epsilon(delta=0.0), 4)
    1.9392
    """
    base = promise("base", base)
    if not isinstance(repetitions, Repetitions):
        raise TypeError(f"repetitions must be a law of K, got {type(repetitions).__name__}")
    known = BOUNDS | CHEAPER
    if atoms is not None:
        known["optimal"] = partial(_optimal, atoms=atoms)
    if bound is not None and bound not in known:
        raise BoundUnavailableError(f"bound must be one of {_listed(known)}, got {bound!r}")
    names = list(BOUNDS) if bound is None else [bound]
    found = [g for g in (known[name](base, repetitions) for name in names) if g is not None]
    if not found:
        others = [name for name, build in BOUNDS.items() if name != bound and build(base, repetitions) is not None]
        raise BoundUnavailableError(
            f"bound {bound!r} does not exist for this base; available: {_listed(others)}"
            if others
            else "base makes no statement that a search could be priced by"
        )
    terms = {
        "mechanism": "best-of",
        "base": dict(base.terms),
        "repetitions": repetitions.describe(),
        "bound": bound or "smallest",
    }
    return replace(smallest_of(*found), terms=terms)


def _listed(names: object) -> str:
    return ", ".join(repr(name) for name in names)  # type: ignore[attr-defined]


def smallest_of(*guarantees: Guarantee) -> Guarantee:
    """All statements about one mechanism in one guarantee.

    Those that hold outside a failure mass must share it: every bound of `best_of` has the failure mass of Lemma 20.
    """
    if len(guarantees) == 1:
        return guarantees[0]
    curves = [g.renyi_curve for g in guarantees if g.renyi_curve is not None]
    profiles = [g.profile for g in guarantees if g.profile is not None]
    lower = [g.lower_profile for g in guarantees if g.lower_profile is not None]
    return Guarantee(
        adjacency=guarantees[0].adjacency,
        theorem="the smallest of the bounds for the best of K runs",
        failure=max(g.failure for g in guarantees),
        pure_epsilon=min(g.pure_epsilon for g in guarantees),
        renyi_curve=None if not curves else curves[0] if len(curves) == 1 else MinimumRenyi(tuple(curves)),
        profile=None if not profiles else profiles[0] if len(profiles) == 1 else MinimumProfile(tuple(profiles)),
        lower_profile=lower[0] if lower else None,
    )
