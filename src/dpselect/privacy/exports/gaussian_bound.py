"""The smallest Gaussian mechanism that dominates a privacy profile, and how much it gives away.

Gaussian DP with parameter mu says that H_{exp(e)} is at most D_mu(e) at every e, where D_mu is the profile of N(0,1)
against N(mu,1). Both directions at e >= 0 suffice, by reciprocity. Profiles fall in e. So it is enough that on a mesh
D_mu(e[i + 1]) >= h(e[i]) for each cell, with h the larger direction.

The regret of saying mu in place of h is the Delta-divergence between the trade-off functions f of h and g of mu:

    inf { k >= 0 : f(a + k) - k <= g(a) for every a } = max over e of (D_mu(e) - h(e)) / (1 + exp(e)).

The two are equal since f is the supremum of the lines 1 - h(e) - exp(e) a. Moved by (-k, -k), the line of e has the
intercept 1 - h(e) - k (1 + exp(e)). A negative e gives the same ratio as -e. So the regret is the largest difference
between the Bayes errors of the two, over all priors 1 / (1 + exp(e)).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

import numpy as np

from dpselect.errors import ArgumentError
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import root_between
from dpselect.privacy.profile import GaussianProfile, PrivacyProfile, both_directions

__all__ = ["GaussianBound", "gaussian_bound"]

_CELLS: Final = 1 << 14
_LARGEST: Final = 1e3
_RELATIVE: Final = 1e-7


class GaussianBound(NamedTuple):
    """A Gaussian mechanism that dominates another one.

    Attributes:
        mu: Gaussian DP with this parameter holds for every delta from `smallest_delta` on. Rounded up.
        regret: the largest difference between the errors of a test against the mechanism and against its Gaussian, at
            any prior, for the profile as it is known on a mesh. Between 0 and 1.
        smallest_delta: the delta that was asked for.

    >>> from dpselect.privacy import gaussian
    >>> round(gaussian(noise_multiplier=2).gaussian_mu_bound().mu, 3)
    0.5
    """

    mu: float
    regret: float
    smallest_delta: float


def gaussian_bound(profile: PrivacyProfile, epsilon: float, smallest_delta: float) -> GaussianBound:
    """The bound for the epsilons from 0 to `epsilon`, at which the profile is at most `smallest_delta`."""
    # more cells near 0, where mu grows the most with epsilon
    mesh = epsilon * np.square(np.linspace(0.0, 1.0, _CELLS + 1))
    values = np.minimum(both_directions(profile, mesh), 1.0)
    left, right = mesh[:-1], mesh[1:]

    def dominates(mu: float) -> bool:
        return bool(np.all(GaussianProfile(mu).below(right) >= values[:-1]))

    mu = root_between(dominates, safe=_LARGEST, unsafe=0.0, relative=_RELATIVE)
    if not dominates(mu):
        raise ArgumentError(
            "this guarantee has losses so large that no Gaussian mechanism is seen to dominate it. Give its epsilons"
        )
    found = GaussianProfile(mu)
    given = (found.at(left) - values[1:]) / (1.0 + np.exp(np.minimum(left, 700.0)))
    past = float(found.at(mesh[-1:])[0]) / (1.0 + math.exp(min(epsilon, 700.0)))
    return GaussianBound(mu, max(0.0, past, float(np.max(given))) * ROUND_UP, smallest_delta)
