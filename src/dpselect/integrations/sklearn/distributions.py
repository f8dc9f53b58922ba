"""Search spaces as scikit-learn's random search takes them, drawn from dpselect's random source.

A draw is sound if the settings of all runs are independent draws from one distribution that was fixed before the data
were seen. A frozen SciPy distribution is drawn by inversion, `ppf` of one uniform float64. The three that dpselect has
its own distributions for become these. Any other object with an `rvs` method gets a NumPy generator seeded with
256 bits: equally seeded runs draw equally, and the seeds are independent.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rv_discrete
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from dpselect.errors import ArgumentError
from dpselect.foreign_names import meant
from dpselect.integrations.sklearn.methods import has_method
from dpselect.randomness import RandomSource, resolve
from dpselect.repetitions import Repetitions
from dpselect.tuning import Categorical, IntegerUniform, LogUniform, Space, Uniform
from dpselect.tuning.space import GRID_REFUSAL, Distribution

__all__ = [
    "Choices",
    "InverseLaw",
    "MixedSpace",
    "SeededLaw",
    "check_params",
    "finite_choices",
    "numpy_source",
    "search_space",
    "spaces_of",
    "with_params",
]

_MOST_CHOICES = 256


def numpy_source(random: RandomSource) -> np.random.RandomState:
    """A NumPy generator (Philox) for code that takes no other, seeded with 256 bits of `random`.

    Philox is a good generator, not a cryptographic one.
    """
    words = np.frombuffer(random.bytes(32), dtype="<u4").tolist()
    return np.random.RandomState(np.random.Philox(np.random.SeedSequence(words)))


@dataclass(frozen=True)
class Choices:
    """Each of any objects equally likely: estimators, tuples, callables."""

    values: tuple[Any, ...]

    def sample(self, random: RandomSource) -> Any:
        """One of the values, exactly uniform."""
        return self.values[random.below(len(self.values))]

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        return {"law": "categorical", "choices": [describe_value(value) for value in self.values]}


@dataclass(frozen=True)
class InverseLaw:
    """A frozen SciPy distribution, drawn as its `ppf` of one uniform float64 from the odd multiples of 2**-53."""

    frozen: Any

    def sample(self, random: RandomSource) -> Any:
        """One draw."""
        drawn = float(self.frozen.ppf(random.uniform(1)[0]))
        return int(drawn) if isinstance(self.frozen.dist, rv_discrete) else drawn

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        frozen = self.frozen
        return {"law": f"scipy {frozen.dist.name}", "settings": [describe_value([*frozen.args, frozen.kwds])]}


@dataclass(frozen=True)
class SeededLaw:
    """Any object with `rvs(random_state=...)`, called with a freshly seeded generator for every draw."""

    law: Any

    def sample(self, random: RandomSource) -> Any:
        """One draw."""
        return _plain(self.law.rvs(random_state=numpy_source(random)))

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        # a generator that it may hold is not the law, and changes from one process to the next
        settings = {name: each for name, each in vars(self.law).items() if "random" not in name}
        return {"law": type(self.law).__qualname__, "settings": describe_value(settings)}


@dataclass(frozen=True)
class MixedSpace(Space):
    """One of several spaces, equally likely, and then a setting from it: scikit-learn's list of dictionaries."""

    spaces: tuple[Space, ...] = ()

    def sample(self, random: RandomSource | None = None) -> dict[str, Any]:
        """One setting."""
        source = resolve(random)
        return self.spaces[source.below(len(self.spaces))].sample(source)

    def describe(self) -> dict[str, Any]:
        """A JSON-able description."""
        return {f"space {number}": space.describe() for number, space in enumerate(self.spaces)}


def search_space(distributions: Any) -> Space:
    """The space of `param_distributions`: a dictionary, or a list of them from which each run takes one at random.

    A list or array of values means each of them equally likely, drawn with replacement: a dictionary for
    `GridSearchCV` makes a random search over the same values. Raises `ArgumentError` for a grid as such.

    >>> search_space({"C": [0.1, 1.0], "steps": np.arange(1, 4)}).describe()["steps"]
    {'law': 'categorical', 'choices': [1, 2, 3]}
    """
    if isinstance(distributions, (ParameterGrid, ParameterSampler)):
        raise ArgumentError(f"param_distributions is a {type(distributions).__name__}: {GRID_REFUSAL}")
    if isinstance(distributions, Space):
        return distributions
    if isinstance(distributions, Mapping):
        return Space({name: _distribution(name, law) for name, law in distributions.items()})
    if isinstance(distributions, (list, tuple)) and distributions:
        return MixedSpace({}, tuple(search_space(each) for each in distributions))
    raise ArgumentError(
        "param_distributions must map names of parameters to lists of values or distributions (or be a list of such "
        f"mappings), got {type(distributions).__name__}"
    )


def spaces_of(space: Space) -> tuple[Space, ...]:
    """The spaces from which a run takes one, those of lists within lists too."""
    if not isinstance(space, MixedSpace):
        return (space,)
    return tuple(part for each in space.spaces for part in spaces_of(each))


def with_params(estimator: Any, params: Mapping[str, Any]) -> Any:
    """A copy of an estimator with these parameters, which are copied too: a fit must not change them."""
    check_params(estimator, params)
    return clone(estimator).set_params(**clone(dict(params), safe=False))


def check_params(estimator: Any, params: Iterable[str]) -> None:
    """Raise `ArgumentError` for a parameter that an estimator does not have, with the one that was meant."""
    known = estimator.get_params()
    for name in params:
        if name not in known:
            ours = meant(name.rpartition("__")[2], [each.rpartition("__")[2] for each in known])
            places = [each for each in known if ours is not None and each.rpartition("__")[2] == ours]
            cure = f". Write {places[0]!r}" if places else f", but {', '.join(sorted(known))}"
            raise ArgumentError(f"param_distributions: {type(estimator).__name__} has no parameter {name!r}{cure}")


def finite_choices(law: Distribution) -> tuple[Any, ...] | None:
    """The equally likely values of a law that has few of them, else None."""
    if isinstance(law, Categorical):
        return tuple(law.choices)
    if isinstance(law, Choices):
        return law.values
    if isinstance(law, IntegerUniform) and (law.low == law.high or not law.log) and law.high - law.low < _MOST_CHOICES:
        return tuple(range(law.low, law.high + 1))
    return None


def describe_value(value: Any) -> Any:
    """A JSON-able text that settles a public value: equal texts stand for equal values."""
    value = _plain(value)
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *(describe_value(each) for each in value)]
    if isinstance(value, Mapping):
        return {str(name): describe_value(each) for name, each in value.items()}
    if isinstance(value, BaseEstimator):
        return {f"{type(value).__module__}.{type(value).__qualname__}": describe_value(value.get_params(deep=False))}
    if isinstance(value, Repetitions):
        return value.describe()
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    # of public values alone, so that a digest tells nothing
    return f"{type(value).__qualname__} {hashlib.sha256(pickle.dumps(value, protocol=5)).hexdigest()}"


def _distribution(name: Any, law: Any) -> Distribution:
    if has_method(law, "sample") and has_method(law, "describe"):
        return law
    if has_method(law, "ppf") and has_method(law, "support"):
        return _scipy_law(law)
    if has_method(law, "rvs"):
        return SeededLaw(law)
    if isinstance(law, np.ndarray) and law.ndim == 1:
        law = law.tolist()
    if not isinstance(law, Sequence) or isinstance(law, (str, bytes)):
        raise ArgumentError(
            f"param_distributions[{name!r}] must be a list of values or a distribution with ppf or rvs, got "
            f"{type(law).__name__}; put a single value in a list"
            + (f": write [{law!r}]" if isinstance(law, (str, int, float)) else "")
        )
    values = tuple(_plain(value) for value in law)
    try:
        return Categorical(values)
    except ArgumentError:
        if not values:
            raise
        return Choices(values)


def _scipy_law(frozen: Any) -> Distribution:
    low, high = frozen.support()
    if np.ndim(low) or np.ndim(high):
        raise ArgumentError("param_distributions takes scalar SciPy distributions, not arrays of them")
    name = frozen.dist.name
    if name == "uniform":
        return Uniform(float(low), float(high))
    if name == "randint":
        return IntegerUniform(int(low), int(high))
    if name in ("loguniform", "reciprocal") and len(frozen.args) == 2 and not frozen.kwds:
        return LogUniform(float(low), float(high))
    return InverseLaw(frozen)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
