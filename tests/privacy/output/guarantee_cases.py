"""Randomised responses and the delta that a guarantee by output needs."""

from __future__ import annotations

import math

from hypothesis import strategies as st

from dpselect.privacy import OutputGuarantee
from dpselect.privacy.output.oracle import output_delta


def randomized_response(epsilon, delta=0.0):
    """The worst (epsilon, delta)-private pair (Kairouz, Oh, Viswanath 2015): outputs 0 to 3."""
    e = math.exp(epsilon)
    law = [delta, (1 - delta) * e / (1 + e), (1 - delta) / (1 + e), 0.0]
    return law, law[::-1]


def tight_delta(upper, lower, cells, epsilons):
    return max(
        output_delta(upper, lower, cells=cells, epsilons=epsilons),
        output_delta(lower, upper, cells=cells, epsilons=epsilons),
    )


def identity_guarantee(cells, epsilons, delta):
    table = dict(enumerate(cells))
    return OutputGuarantee(cell=lambda output: table[output], epsilons=epsilons, delta=delta)


def laws(upper, lower):
    return [(dict(enumerate(upper)), dict(enumerate(lower)))]


masses = st.lists(st.integers(1, 60), min_size=4, max_size=4).map(lambda w: [x / sum(w) for x in w])


@st.composite
def mechanisms(draw):
    """A finite pair, a cell for each output, a price for each cell, and the delta that these need."""
    upper, lower = draw(masses), draw(masses)
    cells = draw(st.lists(st.sampled_from("abc"), min_size=4, max_size=4))
    epsilons = {cell: draw(st.integers(0, 20)) / 10 for cell in "abc"}
    return upper, lower, cells, epsilons, tight_delta(upper, lower, cells, epsilons)
