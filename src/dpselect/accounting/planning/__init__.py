"""Choosing the noise, the law of the number of runs and the method for a stated total."""
