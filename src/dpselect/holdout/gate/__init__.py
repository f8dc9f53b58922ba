"""A gate of one bit: is the candidate better than the incumbent? `docs/theory/gate.md` has the theorem."""
