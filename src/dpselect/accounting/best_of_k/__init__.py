"""The best of a random number of runs (Papernot, Steinke 2022): the published bounds and sharper ones."""
