"""What a sparse vector costs at delta 1e-6: the pure price, the game's and what is attained, beside autodp and OpenDP.

    python -m benchmarks.sparse_vector

Noises are given by their scales in sensitivities. autodp, where it is installed, prices a limit of 1000 queries; the
game has none. OpenDP (looked at: 0.16.0) has no above-threshold mechanism, so one that stops at its first positive is
given to it as a user's measurement; it composes a run for each positive, by adding epsilons up and by zero-concentrated
privacy. Seconds are of processor time for the first price of each row.
"""

from __future__ import annotations

import math
import time

from tests.audits.broken_sparse_vectors import published_games

from dpselect.mechanisms.sparse_vector_game.game import SparseVectorGame
from dpselect.mechanisms.sparse_vector_game.price import game_guarantee

DELTA = 1e-6
ROWS = {
    "1 positive": {"positives": 1, "scales": (100 / 3, 40)},
    "10 positives": {"positives": 10, "scales": (100 / 3, 40)},
    "100 positives": {"positives": 100, "scales": (100 / 3, 40)},
    "100, the best split of that accuracy": {"positives": 100, "scales": (8.7, 51.3)},
    "100, no noise on the threshold": {"positives": 100, "scales": (None, 52.1)},
    "500 positives": {"positives": 500, "scales": (2.6, 52)},
    "500, no noise on the threshold": {"positives": 500, "scales": (None, 52.1)},
    "100, monotonic": {"positives": 100, "scales": (100 / 3, 20), "monotonic": True},
    "10, a new threshold for each": {"positives": 10, "scales": (100 / 3, 40), "restarts": True},
    "100, a new threshold for each": {"positives": 100, "scales": (100 / 3, 40), "restarts": True},
    "100, five sessions": {"positives": 100, "scales": (100 / 3, 40), "thresholds": 5},
    "10, at most 20 queries": {"positives": 10, "scales": (100 / 3, 40), "queries": 20},
}


def by_autodp(positives: int, scale: float, queries: int = 1000) -> float | None:
    """Its Laplace sparse vector of scales b and 2 b, by Renyi divergences."""
    try:
        from autodp.mechanism_zoo import LaplaceSVT_Mechanism
    except ImportError:
        return None
    return float(LaplaceSVT_Mechanism({"b": scale, "k": queries, "c": positives}).get_approxDP(DELTA))


def by_opendp(positives: int, each: float) -> tuple[float, float] | None:
    """Its prices of so many runs of above-threshold, each with this epsilon: at delta 0, and at the delta."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return None
    dp.enable_features("contrib", "honest-but-curious")
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.symmetric_distance()
    one = dp.m.make_user_measurement(
        *space, dp.max_divergence(), lambda _: 0, lambda distance: each * distance, TO="ExtrinsicObject"
    )
    pure = dp.c.make_composition([one] * positives).map(1)
    concentrated = dp.c.make_composition([dp.c.make_pureDP_to_zCDP(one)] * positives)
    return pure, dp.c.make_zCDP_to_approxDP(concentrated).map(1).epsilon(DELTA)


def main() -> None:
    print(f"{'':37} {'pure':>8} {'game':>8} {'attained':>8} {'seconds':>8}")
    for name, row in ROWS.items():
        first, second = row["scales"]
        more = {key: value for key, value in row.items() if key != "scales"}
        game = SparseVectorGame(threshold_rate=None if first is None else 1 / first, query_rate=1 / second, **more)
        started = time.process_time()
        guarantee = game_guarantee(game)
        lower, upper = guarantee.epsilon_bracket(DELTA)
        spent = time.process_time() - started
        pure = guarantee.epsilon(0)
        shown = "none" if pure == math.inf else f"{pure:.3f}"
        print(f"{name:37} {shown:>8} {upper:8.4f} {lower:8.4f} {spent:8.2f}")
    for positives in (1, 10, 100):
        theirs = by_autodp(positives, 20.0)
        game = SparseVectorGame(threshold_rate=1 / 20, query_rate=1 / 40, positives=positives)
        ours = game_guarantee(game).epsilon(DELTA)
        shown = "not installed" if theirs is None else f"{theirs:.4f} for 1000 queries"
        print(f"scales 20 and 40, {positives} positives: the game {ours:.4f}, autodp {shown}")
    for positives in (10, 100):
        composed = by_opendp(positives, 0.08)
        game = SparseVectorGame(threshold_rate=0.03, query_rate=1 / 40, positives=positives, restarts=True)
        shown = "not installed" if composed is None else f"{composed[1]:.4f}, and {composed[0]:.4f} at delta 0"
        ours = game_guarantee(game).epsilon(DELTA)
        print(f"scales 33.3 and 40, {positives} positives, each by a new run: the game {ours:.4f}, OpenDP {shown}")
    print("\nLyu, Su, Li 2017, Figure 1, at a claim of 1 for 20 positives, 40 queries:")
    for number, game in published_games(epsilon=1.0, c=20, queries=40).items():
        priced = None if game is None else game_guarantee(game)
        text = "none"
        if priced is not None:
            pure = "none" if priced.epsilon(0) == math.inf else f"{priced.epsilon(0):.3f}"
            text = f"pure {pure}, at the delta {priced.epsilon(DELTA):.3f}"
        print(f"algorithm {number}: {text}")


if __name__ == "__main__":
    main()
