"""The guarantee of one fit of an estimator, found before there is data.

An estimator, or each step of a pipeline, must be one of three things. It is private, with a guarantee that follows from
its parameters. It is data-independent (a row's transform depends on that row alone). Or it is declared public
(`PublicTransformer`). Everything else is refused. The private steps of one fit see the same rows and are composed.
"""

from __future__ import annotations

import inspect
import itertools
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Final

from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, Normalizer, OneHotEncoder, PolynomialFeatures
from sklearn.utils.validation import check_is_fitted

from dpselect.accounting import mixture
from dpselect.errors import ArgumentError
from dpselect.integrations.sklearn.declarations import how_to_declare, is_declared
from dpselect.integrations.sklearn.diffprivlib_models import is_diffprivlib, refuse_facts_from_data, reviewed_epsilon
from dpselect.integrations.sklearn.distributions import MixedSpace, check_params, finite_choices, with_params
from dpselect.integrations.sklearn.methods import has_method
from dpselect.integrations.sklearn.public import PublicTransformer
from dpselect.learners import DPSGDClassifier
from dpselect.preprocessing.transformers import is_known_map
from dpselect.privacy import Guarantee, compose
from dpselect.privacy.promises import promise, promise_or_function
from dpselect.tuning import Space

__all__ = [
    "Base",
    "PrivateStep",
    "UnknownRows",
    "dense",
    "fit_guarantee",
    "is_free",
    "mark_unknown_rows",
    "parts_of",
    "private_steps",
    "searched_guarantee",
]

Base = Guarantee | Callable[[Any], Guarantee]

_CONTAINERS: Final = (Pipeline, ColumnTransformer, FeatureUnion)
_ROW_BY_ROW: Final = (Normalizer, Binarizer, PolynomialFeatures)
_MOST_SETTINGS: Final = 1024


@dataclass(frozen=True, repr=False)
class PrivateStep:
    """A private part of an estimator. `path` is the prefix of its parameters in the whole, "" or "scale__"."""

    path: str
    step: Any
    guarantee: Callable[[], Guarantee]

    @property
    def has(self) -> dict[str, Any]:
        """Its parameters."""
        return dict(self.step.get_params(deep=False))


def private_steps(estimator: Any, base: Base | None = None, *, columns: int | None = None) -> list[PrivateStep]:
    """The private steps, in order. `base` prices the last one. Raises `ArgumentError` for a step that is not private.

    `columns` is the public number of columns of X, for a guarantee that depends on it.
    """
    steps = list(_walk(estimator, "", base, columns, final=True))
    if not steps:
        raise ArgumentError(f"estimator {type(estimator).__name__} has no private step")
    return steps


def fit_guarantee(estimator: Any, base: Base | None = None, *, columns: int | None = None, rows: int = 1) -> Guarantee:
    """The guarantee of one fit for so many rows of one person: the composition of its private steps."""
    guarantees = [step.guarantee().of_rows(rows) for step in private_steps(estimator, base, columns=columns)]
    return guarantees[0] if len(guarantees) == 1 else compose(*guarantees)


def _walk(node: Any, path: str, base: Base | None, columns: int | None, *, final: bool) -> Iterator[PrivateStep]:
    if type(node) in _CONTAINERS:
        _refuse_peeking(node)
        for name, part, last in parts_of(node):
            yield from _walk(part, f"{path}{name}__", base, None, final=final and last)
    elif is_free(node):
        if isinstance(node, PublicTransformer):
            check_is_fitted(node.transformer)
    else:
        yield PrivateStep(path, node, _pricing(node, path, base if final else None, columns))


def is_free(node: Any) -> bool:
    """Whether a step learns nothing from private rows. Of the exact types: what inherits from them may learn."""
    if node is None or (isinstance(node, str) and node in ("passthrough", "drop")):
        return True
    return type(node) in (PublicTransformer, *_ROW_BY_ROW) or is_known_map(node) or is_declared(node)


def dense(estimator: Any) -> Any:
    """The estimator with every `ColumnTransformer` in it, which counts the rows' zeros to choose, set to dense output.

    Its choice would be kept in the released model. Encoders are set to dense output too, as private learners need it.
    """
    for part in estimator.get_params(deep=True).values():
        if isinstance(part, ColumnTransformer):
            part.set_params(sparse_threshold=0.0)
        elif type(part) is OneHotEncoder:
            part.set_params(sparse_output=False)
    return estimator


def _refuse_peeking(node: Any) -> None:
    if isinstance(node, Pipeline) and node.memory is not None:
        raise ArgumentError("a Pipeline with memory keeps fitted steps from one run for the next: set memory=None")
    for name, _, columns in node.transformers if isinstance(node, ColumnTransformer) else ():
        # the selector reads names and types, any other function could read the rows
        if callable(columns) and type(columns) is not make_column_selector:
            raise ArgumentError(
                f"the columns of {name!r} are chosen by a function that sees the rows: list them, or use "
                "make_column_selector"
            )


def parts_of(node: Any) -> Iterator[tuple[str, Any, bool]]:
    """Name, part, and whether it is the estimator at the end of a pipeline."""
    if isinstance(node, Pipeline):
        for place, (name, part) in enumerate(node.steps):
            yield name, part, place == len(node.steps) - 1
    elif isinstance(node, FeatureUnion):
        yield from ((name, part, False) for name, part in node.transformer_list)
    else:
        yield from ((name, part, False) for name, part, _ in node.transformers)
        yield "remainder", node.remainder, False


def _pricing(step: Any, path: str, base: Base | None, columns: int | None) -> Callable[[], Guarantee]:
    if not (has_method(step, "fit") and has_method(step, "get_params")) or isinstance(step, type):
        raise ArgumentError(f"estimator{_where(path)} must be a scikit-learn estimator, got {step!r}")
    if isinstance(step, DPSGDClassifier) and step.early_stopping is not None:
        raise ArgumentError(
            "early_stopping is not searched: its scores and its budget are per fit; search over steps instead"
        )
    parameters = step.get_params(deep=False)
    if parameters.get("spender") is not None:
        raise ArgumentError(
            f"estimator{_where(path)} has a spender, which would be charged for every run and so show their number: "
            "give ledger= to the search"
        )
    if "param_distributions" in parameters:
        raise ArgumentError(f"estimator{_where(path)} is a search itself: give its estimator and its space to this one")
    if is_diffprivlib(step):
        refuse_facts_from_data(step)
    if base is not None:
        declared = promise_or_function("base", base, "from the estimator to one")
        if isinstance(declared, Guarantee):
            return lambda: declared
        return lambda: promise("what base returns", declared(step))
    if has_method(step, "guarantee"):
        takes_columns = "columns" in inspect.signature(step.guarantee).parameters
        # a step behind others sees their columns, not those of X
        known = {"columns": columns} if takes_columns and columns is not None and not path else {}
        return lambda: promise(f"{type(step).__name__}.guarantee()", step.guarantee(**known))
    if is_diffprivlib(step):
        return lambda: reviewed_epsilon(step)
    raise ArgumentError(_refusal(step, path))


def _where(path: str) -> str:
    return f" step {path.removesuffix('__')!r}" if path else ""


def _refusal(step: Any, path: str) -> str:
    name = type(step).__name__
    if has_method(step, "transform") and not has_method(step, "predict"):
        return (
            f"{name}{_where(path)} learns from the data it is fitted to, without privacy. Fit it on public data and "
            f"declare it, PublicTransformer({name}(...).fit(public)); or use a private one with a guarantee, or what "
            "learns nothing, as the maps of dpselect.preprocessing do. (What has nothing to learn and treats each row "
            f"by itself may be declared public too.){how_to_declare(step)}"
        )
    return (
        f"{name}{_where(path)} has no guarantee: use a private learner (dpselect.learners, diffprivlib), or an "
        "estimator with a method guarantee() that needs no data, or declare what one fit promises by base="
    )


def searched_guarantee(estimator: Any, space: Space, make: Callable[[Any], Guarantee]) -> Guarantee:
    """The guarantee of one run with parameters drawn from `space`. `make` prices an estimator with parameters set.

    Parameters that the price does not read are left out. Each setting of those that it reads is a candidate. The price
    is that of the mixture of the candidates: a fixed distribution draws the setting, which is released with the winner.

    Raises `ArgumentError` for a parameter with infinitely many values that the price reads.
    """
    found = _merged(_candidates(estimator, space, make))
    weights, guarantees = zip(*found, strict=True)
    return guarantees[0] if len(guarantees) == 1 else mixture(guarantees, weights)


def _candidates(estimator: Any, space: Space, make: Callable[[Any], Guarantee]) -> list[tuple[float, Guarantee]]:
    if isinstance(space, MixedSpace):
        share = 1.0 / len(space.spaces)
        return [(share * w, g) for part in space.spaces for w, g in _merged(_candidates(estimator, part, make))]
    finite = {name: finite_choices(law) for name, law in space.parameters.items()}
    # A number that is not read raises no flag; whether something is None, or what a name means, is asked unnoticed.
    listed = [name for name, values in finite.items() if values is not None and not all(map(_is_number, values))]
    while True:
        try:
            return _settings(estimator, finite, listed, make)
        except _ParameterRead as read:
            if read.name == _ROWS:
                raise UnknownRows(
                    "nominal_rows must be given: a public figure for the number of rows, from which the price follows "
                    "(of DPSGDClassifier and DPSGDRegressor only where steps is None)"
                ) from None
            if read.name not in finite or finite[read.name] is None:
                raise ArgumentError(
                    f"param_distributions[{read.name!r}] enters the guarantee and takes too many values to price each: "
                    "give a list of values, or fix it in the estimator"
                ) from None
            listed.append(read.name)


def _settings(
    estimator: Any,
    finite: Mapping[str, Sequence[Any] | None],
    listed: Sequence[str],
    make: Callable[[Any], Guarantee],
) -> list[tuple[float, Guarantee]]:
    choices = [finite[name] or () for name in listed]
    combinations = list(itertools.islice(itertools.product(*choices), _MOST_SETTINGS + 1))
    if len(combinations) > _MOST_SETTINGS:
        raise ArgumentError(
            f"param_distributions has more than {_MOST_SETTINGS} settings of parameters that enter the guarantee, or "
            f"may: {', '.join(listed)}"
        )
    flags = {name: _Unread(name) for name in finite if name not in listed}
    check_params(estimator, flags)
    return [
        (
            1.0 / len(combinations),
            make(with_params(estimator, dict(zip(listed, each, strict=True))).set_params(**flags)),
        )
        for each in combinations
    ]


def _merged(candidates: Sequence[tuple[float, Guarantee]]) -> list[tuple[float, Guarantee]]:
    """Candidates with one and the same guarantee are one candidate."""
    groups: dict[bytes, tuple[float, Guarantee]] = {}
    for weight, guarantee in candidates:
        key = pickle.dumps(guarantee, protocol=5)
        groups[key] = (groups[key][0] + weight if key in groups else weight, guarantee)
    return list(groups.values())


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


_ROWS: Final = "the public number of rows"


class UnknownRows(ArgumentError):
    """The price follows from a public number of rows that was not given."""


def mark_unknown_rows(steps: Sequence[PrivateStep]) -> None:
    """Let steps that are to be priced show whether they read the public number of rows, which is unknown.

    A run gets a number, which may be that of the rows. A price without one would be that of something else.
    """
    for place in steps:
        if place.has.get("nominal_rows", 0) is None:
            place.step.set_params(nominal_rows=_Unread(_ROWS))


class _ParameterRead(Exception):
    """No error: it tells which parameter a price depends on."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the guarantee depends on {name!r}")
        self.name = name


class _Unread:
    """Represents a numeric parameter in an estimator that is priced. Code that uses it raises `_ParameterRead`."""

    def __init__(self, name: str) -> None:
        self._name = name

    def _read(self, *_: Any, **__: Any) -> Any:
        raise _ParameterRead(self._name)

    def __getattr__(self, name: str) -> Any:
        # scikit-learn asks every parameter whether it is an estimator
        if name.startswith("__") or name in ("get_params", "fit", "transform", "_sklearn_auto_wrap_output_keys"):
            raise AttributeError(name)
        raise _ParameterRead(self.__dict__.get("_name", ""))

    __float__ = __int__ = __index__ = __bool__ = __len__ = __iter__ = __hash__ = __str__ = __format__ = _read
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _read
    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _read
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __pow__ = __rpow__ = __neg__ = __abs__ = _read
    __round__ = __trunc__ = __floor__ = __ceil__ = __complex__ = __array__ = __getitem__ = __call__ = _read
