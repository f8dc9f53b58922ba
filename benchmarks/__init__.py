"""Measurements. `python -m benchmarks` runs one of every kind; the scripts go further."""
