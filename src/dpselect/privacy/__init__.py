"""What a mechanism promises: guarantees, their composition, and what leaves a private algorithm."""

from dpselect.privacy.adjacency import Adjacency
from dpselect.privacy.composition import compose, worst_of
from dpselect.privacy.events import from_dp_event
from dpselect.privacy.guarantee import Guarantee, Statement
from dpselect.privacy.losses.dominating_pair import DominatingPair
from dpselect.privacy.mechanisms import (
    approximate_dp,
    dp_sgd,
    from_profile,
    gaussian,
    laplace,
    pure_dp,
    renyi_dp,
    zcdp,
)
from dpselect.privacy.output.guarantee import OutputGuarantee
from dpselect.privacy.realised import RealisedPrice
from dpselect.privacy.release import Receipt, Release, Spender

__all__ = [
    "Adjacency",
    "DominatingPair",
    "Guarantee",
    "OutputGuarantee",
    "RealisedPrice",
    "Receipt",
    "Release",
    "Spender",
    "Statement",
    "approximate_dp",
    "compose",
    "dp_sgd",
    "from_dp_event",
    "from_profile",
    "gaussian",
    "laplace",
    "pure_dp",
    "renyi_dp",
    "worst_of",
    "zcdp",
]
