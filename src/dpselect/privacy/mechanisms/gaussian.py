"""The Gaussian mechanism."""

from __future__ import annotations

import math
from typing import SupportsFloat

from dpselect.errors import number
from dpselect.privacy.adjacency import Adjacency, parse_adjacency
from dpselect.privacy.bases import base_mechanism
from dpselect.privacy.below import AttainedGaussian
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.profile import GaussianProfile
from dpselect.privacy.renyi import LinearRenyi

__all__ = ["gaussian"]

_DEFAULT = Adjacency.ADD_OR_REMOVE_ONE


@base_mechanism("gaussian", noise="noise_multiplier")
def gaussian(*, noise_multiplier: SupportsFloat, adjacency: Adjacency | str = _DEFAULT) -> Guarantee:
    """Return the exact guarantee of the Gaussian mechanism.

    Args:
        noise_multiplier: noise standard deviation / L2 sensitivity, above 0. You must ensure the sensitivity under the
            given adjacency.
        adjacency: the neighbours, an `Adjacency` or its text; add-or-remove-one unless given.

    Raises:
        ArgumentError: if `noise_multiplier` is not above 0 and finite.
        AdjacencyError: if `adjacency` is unknown.
        TypeError: if `noise_multiplier` is not a number.

    >>> round(gaussian(noise_multiplier=4).epsilon(delta=1e-6), 4)
    1.0607
    """
    noise_multiplier = number("noise_multiplier", noise_multiplier, above=0.0, rounding="down")
    mu = 1.0 / noise_multiplier
    return Guarantee(
        adjacency=parse_adjacency(adjacency),
        theorem="Gaussian mechanism (Balle, Wang 2018, Theorem 8)",
        terms={"mechanism": "gaussian", "noise_multiplier": noise_multiplier},
        renyi_curve=LinearRenyi(math.nextafter(0.5 * mu * mu * (1 + 1e-15), math.inf)),  # rounded up, and never zero
        profile=GaussianProfile(mu),
        lower_profile=AttainedGaussian.of(mu),
        gaussian_mu=mu,
    )
