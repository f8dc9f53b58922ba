"""Runs that may stop or withhold their output, paid for by what came out (Hartmann et al. 2022)."""
