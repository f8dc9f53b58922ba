"""Bounds on the best of K runs, one file each: `best_of` finds them here."""
