"""The sparse vector as a game of coins: what it costs at a delta (docs/theory/sparse-vector.md)."""
