"""The output calculus: a price for each class of outputs, and what follows from it (Hartmann et al. 2022)."""
