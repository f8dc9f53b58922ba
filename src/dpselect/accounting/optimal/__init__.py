"""Optimal accounting of private selection: the exact worst case over mechanisms and orders, enclosed numerically."""
