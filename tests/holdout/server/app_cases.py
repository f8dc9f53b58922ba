"""How many questions a holdout and a gate were asked."""

from dpselect.holdout import Gate, Holdout


def asked(folder):
    return Holdout.open(folder / "pets.holdout").status()["asked"], Gate.open(folder / "my.gate").status()["asked"]
