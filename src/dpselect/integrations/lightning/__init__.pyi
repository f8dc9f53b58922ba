from .training import fit_lightning as fit_lightning
