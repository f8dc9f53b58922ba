"""A privacy profile as a privacy-loss distribution of dp-accounting that its arithmetic cannot make smaller.

The losses are those that connect the dots of the profile (`losses.connect_the_dots`). They dominate the mechanism at
every epsilon. An epsilon read from them is at most one cell of the mesh above the profile's own, since the curve falls.

dp-accounting then adds floating-point numbers from the largest loss down. Let there be n cells up to a loss t, of width
w, and let u = 2^-53. Its sums are off by a share n u at most. Its losses are counted down by repeated subtraction, and
off by n u t. Let U be the mass of the losses above epsilon. Then a delta moves by at most n u (2 + t) U.

To cover it, every loss is raised by m = 4 n u (1 + t), and every mass by the share m. The delta then grows by at least
m delta + m (U - delta) = m U. Every mass is raised by a millionth more, since two searches over Renyi orders differ by
less than that. The losses of a search are raised by a quarter of a cell more, since its curve is read from a table
whose rounding differs from that of `epsilon`.

A raised loss l + m is between l and l + w, and becomes its chord in exp(loss). The share
a = (1 - exp(-m)) / (1 - exp(-w)) of its mass goes to l + w. The rest stays. This keeps the mass of the second law.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.privacy.losses.composition import Losses
from dpselect.privacy.losses.pld import DEFAULT_INTERVAL, profile_loss
from dpselect.privacy.profile import PrivacyProfile

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

__all__ = ["loss_distribution", "mesh_for", "raised"]

_UNIT: Final = 2.0**-53
_CELLS_OF_LEAST: Final = 512.0
"""Cells up to the epsilon at delta 1e-3, so that one cell is at most 0.2 % of it."""
_DELTAS: Final = (1e-3, 1e-6, 1e-10)
_MOST_CELLS: Final = 2e5
_ROUNDED: Final = 2e-7
"""A cell of this times the root of the largest loss is wider than what rounding adds to the loss."""
_OF_A_SEARCH: Final = 0.25
_SEARCHED: Final = 1e-6
"""How far two searches for the best order may differ, as a share of delta."""


def mesh_for(epsilon: Callable[[float], float]) -> float:
    """The width of a mesh for a guarantee, from its epsilons: 1e-4, dp-accounting's own, times a power of two.

    Finer if one cell is more than 0.2 % of an epsilon. Wider if there are more than 2e5 cells up to an epsilon, or if
    rounding would fill a cell.
    """
    found = [value for value in map(epsilon, _DELTAS) if 0.0 < value < math.inf]
    if not found:
        return DEFAULT_INTERVAL
    finest, widest = found[0] / _CELLS_OF_LEAST, max(max(found) / _MOST_CELLS, _ROUNDED * math.sqrt(max(found)))
    powers = (math.floor(math.log2(finest / DEFAULT_INTERVAL)), math.ceil(math.log2(widest / DEFAULT_INTERVAL)))
    return DEFAULT_INTERVAL * 2.0 ** max(-30, min(0, powers[0]), powers[1])


def loss_distribution(profile: PrivacyProfile, interval: float) -> PrivacyLossDistribution:
    """The privacy-loss distribution of dp-accounting for both directions of a profile, pessimistic."""
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution  # takes a second to import

    both = profile_loss(profile)(interval)
    extra = _OF_A_SEARCH * interval if profile.costly else 0.0
    remove = raised(both.remove, extra)
    if both.symmetric:
        return PrivacyLossDistribution.create_from_rounded_probability(
            _as_mapping(remove), remove.infinite, interval, pessimistic_estimate=True
        )
    add = raised(both.add, extra)
    return PrivacyLossDistribution.create_from_rounded_probability(
        _as_mapping(remove),
        remove.infinite,
        interval,
        pessimistic_estimate=True,
        rounded_probability_mass_function_add=_as_mapping(add),
        infinity_mass_add=add.infinite,
        symmetric=False,
    )


def raised(losses: Losses, extra: float = 0.0) -> Losses:
    """The losses and their masses raised by more than the rounding of dp-accounting takes off (see the module).

    `extra` is added to what the losses are raised by.
    """
    top = max(abs(losses.first), abs(losses.last)) * losses.width
    margin = 4.0 * _UNIT * losses.masses.size * (1.0 + top)
    if margin + extra >= losses.width:
        raise ArgumentError(
            f"interval {losses.width!r} is too fine for losses up to {top:.3g}: rounding errors would fill it. "
            "Give a wider one"
        )
    share = math.expm1(-margin - extra) / math.expm1(-losses.width)
    masses = np.append(losses.masses, 0.0) * (1.0 - share)
    masses[1:] += losses.masses * share
    factor = 1.0 + margin + _SEARCHED
    return Losses(losses.width, losses.first, masses * factor, min(1.0, losses.infinite * factor))


def _as_mapping(losses: Losses) -> dict[int, float]:
    return dict(enumerate(losses.masses.tolist(), start=losses.first))
