from .beta_binomial import BetaBinomial as BetaBinomial, Uniform as Uniform
from .binomial import Binomial as Binomial, Fixed as Fixed
from .by_name import (
    families as families,
    from_description as from_description,
    law_named as law_named,
)
from .harmonic import Harmonic as Harmonic
from .law import Family as Family, Repetitions as Repetitions, repetition_law as repetition_law
from .negative_binomial import (
    Geometric as Geometric,
    Logarithmic as Logarithmic,
    TruncatedNegativeBinomial as TruncatedNegativeBinomial,
)
from .poisson import Poisson as Poisson, ZeroTruncatedPoisson as ZeroTruncatedPoisson
from .splitting import independent_counts as independent_counts, split_counts as split_counts
from .tabulated import Tabulated as Tabulated
from .truncation import Capped as Capped, Conditioned as Conditioned, Tilted as Tilted, capped as capped
