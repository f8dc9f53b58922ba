"""Privacy losses as finite pairs and grids: what dominates a mechanism, what it attains, and their compositions."""
