from .integers import discrete_gaussian_array as discrete_gaussian_array, geometric as geometric
from .source import (
    RandomSource as RandomSource,
    keyed_source as keyed_source,
    resolve as resolve,
    system_source as system_source,
)
