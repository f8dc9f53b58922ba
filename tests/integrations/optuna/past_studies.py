"""What the tests of past Optuna searches share: a base for each noise, and what a caller declares."""

from dpselect.privacy import gaussian

DECLARED = {"fixed_beforehand": True, "only_winner_seen": True}
BASE = gaussian(noise_multiplier=4)


def base(noise):
    return BASE if noise is None else gaussian(noise_multiplier=noise)
