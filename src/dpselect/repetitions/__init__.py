"""Laws of the number of runs K of a private selection: each draws K, and prices it by its generating function."""

from dpselect.repetitions.beta_binomial import BetaBinomial, Uniform
from dpselect.repetitions.binomial import Binomial, Fixed
from dpselect.repetitions.harmonic import Harmonic
from dpselect.repetitions.law import Repetitions, from_description
from dpselect.repetitions.negative_binomial import Geometric, Logarithmic, TruncatedNegativeBinomial
from dpselect.repetitions.poisson import Poisson, ZeroTruncatedPoisson
from dpselect.repetitions.splitting import independent_counts, split_counts
from dpselect.repetitions.tabulated import Tabulated
from dpselect.repetitions.tilting import Tilted
from dpselect.repetitions.truncation import Capped, Conditioned, capped

__all__ = [
    "BetaBinomial",
    "Binomial",
    "Capped",
    "Conditioned",
    "Fixed",
    "Geometric",
    "Harmonic",
    "Logarithmic",
    "Poisson",
    "Repetitions",
    "Tabulated",
    "Tilted",
    "TruncatedNegativeBinomial",
    "Uniform",
    "ZeroTruncatedPoisson",
    "capped",
    "from_description",
    "independent_counts",
    "split_counts",
]
