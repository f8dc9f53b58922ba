"""Runs that may stop or withhold their output, charged at the realised price (Hartmann et al. 2022)."""
