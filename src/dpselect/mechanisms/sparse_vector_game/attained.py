"""What a sparse vector attains: queries far below their thresholds, half of which move up and half move down."""

from __future__ import annotations

from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.privacy.below import AttainedPair, parts_below
from dpselect.privacy.losses.pairs import RandomizedResponsePairs
from dpselect.privacy.losses.pld import suitable_interval
from dpselect.privacy.profile import PrivacyProfile

__all__ = ["attained_profile"]


def attained_profile(game: SparseVectorGame) -> PrivacyProfile | None:
    """Randomised response with loss `query_rate` (half of it for monotonic queries), once for each positive.

    Ask two queries in turn until one is positive, so far below the threshold that every probability is a tail of the
    noise. On the neighbour one has moved up by a sensitivity and the other down (or one has moved, for monotonic ones):
    whatever the noise on the threshold, the odds of which of them is the positive one have moved by the factor
    exp(2 query_rate), and with their thresholds a sensitivity apart they are exp(query_rate) and one over it. None with
    a limit of queries, which far thresholds do not have, with other noise, and where the losses have no mesh.
    Source: docs/theory/sparse-vector.md, Theorem 5.
    """
    if game.noise != "laplace" or game.queries is not None:
        return None
    loss = game.query_rate * (0.5 if game.monotonic else 1.0) * (1.0 - 2.0**-50)
    one = AttainedPair(RandomizedResponsePairs(loss))
    return parts_below([(one, game.positives)], suitable_interval(None, game.positives * loss))
