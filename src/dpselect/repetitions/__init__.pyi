from .beta_binomial import BetaBinomial as BetaBinomial, Uniform as Uniform
from .binomial import Binomial as Binomial, Fixed as Fixed
from .distribution import Repetitions as Repetitions, repetition_law as repetition_law
from .harmonic import Harmonic as Harmonic
from .negative_binomial import (
    Geometric as Geometric,
    Logarithmic as Logarithmic,
    TruncatedNegativeBinomial as TruncatedNegativeBinomial,
)
from .poisson import Poisson as Poisson, ZeroTruncatedPoisson as ZeroTruncatedPoisson
from .splitting import independent_counts as independent_counts, split_counts as split_counts
from .table import Tabulated as Tabulated
from .truncation import capped as capped
