"""Laws of the number of runs."""

from dpselect.repetitions.law import Repetitions, from_description
from dpselect.repetitions.negative_binomial import Geometric, Logarithmic, TruncatedNegativeBinomial

__all__ = ["Geometric", "Logarithmic", "Repetitions", "TruncatedNegativeBinomial", "from_description"]
