"""The price of releasing the best of a random number of runs.

A bound is a function from (base guarantee, law of K) to a guarantee, in a file of its own in `bounds/`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from dpselect.accounting.best_of_k.bounds.optimal import optimal
from dpselect.accounting.best_of_k.bounds.renyi import MinimumRenyi
from dpselect.accounting.best_of_k.search_bound import BOUNDS, default_bounds
from dpselect.accounting.optimal.best_of import expect_atoms
from dpselect.cures import write_one_of
from dpselect.errors import BoundUnavailableError
from dpselect.privacy import Guarantee
from dpselect.privacy.profile import MinimumProfile
from dpselect.privacy.promises import promise
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import expect_law

__all__ = ["best_of", "smallest_of"]


def best_of(
    base: Guarantee, repetitions: Repetitions, *, bound: str | None = None, atoms: int | None = None
) -> Guarantee:
    """Return the guarantee of running a mechanism K times and releasing only the best output.

    With K = 0 the release is "none", the same regardless of the data.

    You must ensure all of these:

    - The score that decides among runs is part of a run's output, so `base` covers it.
    - K is drawn from `repetitions` independently of the data.
    - Runs are independent draws of one mixture of candidates.
    - Only the best output is released: not K, not a losing run, not the time it took.

    Args:
        base: the guarantee of one run, its score included, or what `as_guarantee` takes.
        repetitions: the distribution of K, public.
        bound: the name of one bound, or None, the default, for the smallest of "optimal", "renyi" and "pure". Each of
            these is valid by itself, and those that do not exist for the base are left out.

            - "optimal": the supremum over every mechanism that the base's dominating pairs allow. `epsilon_bracket`
              also gives the value that some mechanism attains.
            - "renyi": a Renyi curve.
            - "pure": an epsilon outside a failure mass.
            - "profile": hockey-stick bounds, quicker and looser.
            - "published": the Renyi theorems in closed form, quicker and looser.
        atoms: into how many pieces the optimal bound cuts the base, from 16 to 200,000. None, the default, takes 3,000.
            The width of the bracket falls with the square, and the time grows in proportion. Other bounds ignore it.

    Returns:
        A guarantee with the base's adjacency, rounded up.

    Raises:
        BoundUnavailableError: if the named bound is unknown or does not exist for this base. The message lists those
            that do.
        ArgumentError: if `atoms` is out of range, or `base` is not a `Guarantee` (`PromiseError`).
        TypeError: if `repetitions` is not a distribution.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.repetitions import Logarithmic
    >>> total = best_of(pure_dp(epsilon=1.0), Logarithmic.with_mean(mean=10.0))
    >>> round(total.epsilon(delta=0.0), 4)
    1.9392
    """
    base = promise("base", base)
    expect_law(repetitions)
    if bound is not None and bound not in BOUNDS:
        said = f"bound must be one of {_listed(BOUNDS)}, got {bound!r}"
        raise BoundUnavailableError(said + write_one_of("bound", bound, BOUNDS))
    finer = {} if atoms is None else {"optimal": partial(optimal, atoms=expect_atoms(atoms))}
    names = default_bounds() if bound is None else [bound]
    found = [g for g in (finer.get(name, BOUNDS[name])(base, repetitions) for name in names) if g is not None]
    if not found:
        others = [name for name in default_bounds() if name != bound and BOUNDS[name](base, repetitions) is not None]
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

    Those that hold outside a failure mass must share it: every bound of `best_of` has the failure mass of Lemma
    20 of Papernot, Steinke 2022.
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
