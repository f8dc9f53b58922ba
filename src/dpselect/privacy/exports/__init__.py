"""Guarantees in the forms of other libraries: loss distributions, events, Renyi orders, Gaussian DP."""
