"""A private interior point: any value between the smallest and the largest of the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpselect.capabilities import NumPyArray
from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, ContentError, integer, number
from dpselect.mechanisms import Mechanism, NoisyCount, bounded_range, noisy_count
from dpselect.ordered.domains import Codes, Domain, WholeNumbers
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.dyadic import DyadicParameters, draw_dyadic
from dpselect.ordered.interior_points.rows import METHODS, InteriorPointPlan, Method, plan_method
from dpselect.ordered.interior_points.search_tree import code_bits, draw_binary_search, sort_codes
from dpselect.ordered.interior_points.tree_log import TreeLogParameters, draw_tree_log
from dpselect.ordered.interior_points.tree_log_price import tree_log_price
from dpselect.ordered.public_domain import PublicDomain
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, approximate_dp, compose, gaussian, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.privacy.composition import together
from dpselect.public_api import options_of
from dpselect.randomness import RandomSource
from dpselect.tables.categories import is_missing
from dpselect.tables.column_cells import unmasked
from dpselect.tables.plain_lists import cells_as, hardly_any, whole_or_zero

__all__ = ["CumulativeInteriorPoint", "InteriorPoint", "interior_point"]


@dataclass(frozen=True, kw_only=True)
class InteriorPoint(PublicDomain, Mechanism):
    """A value z with min(values) <= z <= max(values), except with `failure_probability`, if there are rows enough.

    It is private regardless of the values, and however few there are. `rows` says how many rows are enough. The value
    need not be among the data. With too few rows it may be any value of the domain, or None.

    Attributes:
        epsilon, delta: the whole privacy budget; "exponential" spends no delta.
        domain_size: the domain is 0 .. domain_size - 1.
        lower, upper: or from lower to upper, both included.
        granularity: the multiples of it between the bounds instead; a number goes to the nearest.
        method: "exponential" (the exponential mechanism on min(#{x <= z}, #{x >= z})), "dyadic" (depth, stable choice,
            point), "tree_log" and "cumulative" (Cohen et al. 2022, Algorithms 5 and 8, tuned), "tree_log_printed"
            (Algorithm 5 with the constants of the paper), "binary_search" (Gaussian noise), or "auto": the one that
            needs the fewest rows, or the exponential mechanism wherever it makes do with `expected_rows`.
        expected_rows: a public guess of the number of rows, for "auto"; never the true number unless that is public. 0
            asks for the fewest rows.
        failure_probability: the probability that the method is planned for.
        count_epsilon: if given, a noisy count is paid for first, in addition, and None is released if it is too small.
        adjacency: under replace_one the number of rows is public, and "auto" uses it unless `expected_rows` is given;
            what is asked before there are rows needs it then.

    You run it on a one-dimensional array or sequence. With `domain_size`, or with integer bounds, the values are
    integers (Python integers of any size). If one of the bounds is a float, the values are doubles, and the domain is
    all doubles between the bounds. A value outside the domain counts as the nearest end. NaN counts as the lower end.
    In a sequence of Python objects, so does anything that is not a number (for a domain of integers, not an integer).
    The `Release` holds the value or None. None means that no node was heavy enough, or that the count was too small.
    Both are decisions of private mechanisms. Running time depends on the data and is not covered.

    Raises `ArgumentError` for parameters, `ContentError` for values that are not one-dimensional real numbers
    by their type or, in a sequence, (fewer than a tenth are),
    `BudgetError` when the spender refuses.

    >>> point = InteriorPoint(domain_size=2**64, epsilon=1, delta=1e-6)
    >>> point.plan.method, point.rows, point.guarantee.epsilon(delta=0) <= 1
    ('exponential', 97, True)
    >>> [InteriorPoint(domain_size=2**64, epsilon=1, delta=1e-6, method=m).rows for m in ("exponential", "dyadic")]
    [97, 155]
    """

    epsilon: float
    delta: float = 0.0
    method: Method | Literal["auto"] = "auto"
    expected_rows: int | None = None
    failure_probability: float = 0.01
    count_epsilon: float | None = None
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE

    def __post_init__(self) -> None:
        rows, counted = self.expected_rows, self.count_epsilon
        self._parsed(
            epsilon=number("epsilon", self.epsilon, at_least=1e-6, at_most=1e3, rounding="down"),
            delta=number("delta", self.delta, at_least=0.0, below=0.5, rounding="down"),
            failure_probability=number("failure_probability", self.failure_probability, above=1e-12, below=1.0),
            expected_rows=None if rows is None else integer("expected_rows", rows, at_least=0, at_most=1 << 1000),
            count_epsilon=None
            if counted is None
            else number("count_epsilon", counted, at_least=1e-6, at_most=1e3, rounding="down"),
            adjacency=parse_adjacency(self.adjacency),
        )
        if self.method not in (*METHODS, "auto"):
            said = f"method must be one of {', '.join(map(repr, METHODS))}, got {self.method!r}"
            raise ArgumentError(said + write_one_of("method", self.method, METHODS))
        _ = self.domain

    @cached_property
    def domain(self) -> Domain:
        """The domain that the arguments declare."""
        return self.by_bounds(doubles=True)

    def _method(self, method: Method) -> InteriorPointPlan | None:
        public = (self.epsilon, self.delta, self.failure_probability, parse_adjacency(self.adjacency))
        return plan_method(method, self.domain.size, *public)

    @cached_property
    def plan(self) -> InteriorPointPlan:
        """The method that is taken, its parameters and the number of rows that it needs."""
        if self.method != "auto":
            plan = self._method(self.method)
            if plan is None:
                raise ArgumentError(
                    f"method={self.method!r} needs a delta above 0 and below a quarter of failure_probability"
                    + (", and replace_one" if self.method == "cumulative" else "")
                )
            return plan
        if self.expected_rows is None and self.adjacency is Adjacency.REPLACE_ONE:
            raise ArgumentError("expected_rows must be given: under replace_one 'auto' goes by the number of rows")
        plans = [plan for plan in map(self._method, METHODS) if plan is not None]
        if self.expected_rows is not None and plans[0].rows <= self.expected_rows:
            return plans[0]
        return min(plans, key=lambda plan: plan.rows)

    @property
    def rows(self) -> int | None:
        """Enough for an interior point except with `failure_probability`, or None if the method needs another delta."""
        plan = self.plan if self.method == "auto" else self._method(self.method)
        return None if plan is None else plan.rows

    @cached_property
    def guarantee(self) -> Guarantee:
        """At most (epsilon, delta), and the count. Replacing a row is twice a step, (2e, (1 + exp(e)) d) for (e, d)."""
        plan, adjacency, size = self.plan, parse_adjacency(self.adjacency), self.domain.size
        steps = 1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2
        terms = {"mechanism": "interior_point", "method": plan.method, "domain_size": size}
        parameters = plan.parameters
        if isinstance(parameters, TreeLogParameters):
            cumulative = plan.method == "cumulative"
            price = tree_log_price(parameters, bits=code_bits(size), distance=1 if cumulative else None)
            proved = f"Theorem {'B.1' if cumulative else '3.8'}, constants of tree_log_price"
            theorem = f"TreeLog (Cohen et al. 2022, {proved})"
            found = _stepped(price.epsilon, price.delta, 1 if cumulative else steps, adjacency)
        elif isinstance(parameters, DyadicParameters):
            theorem = "exponential mechanism, stable choice, exponential mechanism"
            epsilons = (parameters.epsilon_depth, parameters.epsilon_point)
            # the choice has twice epsilon and twice delta under a swap
            node = approximate_dp(
                epsilon=parameters.choice.epsilon * steps,
                delta=parameters.choice.delta * steps * (1.0 + 1e-12),
                adjacency=adjacency,
            )
            ends = (bounded_range(epsilon=e * steps, adjacency=adjacency) for e in epsilons)
            found = together(node, *ends)
        elif plan.method == "exponential":
            theorem = "exponential mechanism"
            found = bounded_range(epsilon=parameters * steps, adjacency=adjacency)
        else:
            theorem = "noisy binary search, Gaussian noise"
            found = gaussian(noise_multiplier=parameters / steps, adjacency=adjacency)
        found = replace(found, theorem=theorem, terms=terms)
        if self.count_epsilon is None:
            return found
        return compose(found, NoisyCount(epsilon=self.count_epsilon, adjacency=adjacency).guarantee)

    def bind(self, *data: Any) -> tuple[InteriorPoint, tuple[Any]]:
        """With the number of rows, where it is public and asked for."""
        rows = _container(data[0], self.domain)
        known = self.adjacency is Adjacency.REPLACE_ONE and self.method == "auto" and self.expected_rows is None
        return replace(self, expected_rows=len(rows)) if known else self, (rows,)

    def prepared(self, values: Any) -> Callable[[RandomSource], Any]:
        """The value, or None, for these values."""
        domain, plan, counted = self.domain, self.plan, self.count_epsilon

        def run(random: RandomSource) -> Any:
            codes = _codes(values, domain)
            if counted is not None and noisy_count(len(codes), epsilon=counted, random=random) < plan.rows:
                return None
            found = _draw(plan, sort_codes(codes), domain.size, SecretDraws(random))
            return None if found is None else domain.decode(min(found, domain.size - 1))

        return run


@options_of(InteriorPoint)
def interior_point(
    values: Any,
    *,
    spender: Spender | None = None,
    label: str = "interior-point",
    random: RandomSource | None = None,
    **options: Any,
) -> Release:
    """Return a private value between the smallest and the largest of these values, or None.

    It runs `InteriorPoint` with these options on the values, and its documentation says when it succeeds.

    Args:
        values: a one-dimensional array or a sequence of real numbers, private.
        spender: pays the cost before the values are looked at. None charges no budget.
        label: the public name of the charge in the spender's record.
        random: the source of randomness. By default it is a fresh one from system entropy.
        **options: the attributes of `InteriorPoint`, all public: `epsilon`, and the domain as `domain_size`, or as
            `lower` and `upper` (and `granularity`). `delta`, `method`, `expected_rows`, `failure_probability`,
            `count_epsilon` and `adjacency` have the defaults of that class.

    Returns:
        A `Release` with the guarantee. Its `value` is None if no node was heavy enough, or the noisy count was too
        small.

    Raises:
        ArgumentError: if an option does not fit.
        ContentError: if the values are not one-dimensional real numbers by their type. In a sequence, if fewer than a
            tenth of them are such numbers.
        BudgetError: if the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> release = interior_point([2**40 + i for i in range(200)], domain_size=2**64, epsilon=1, random=keyed_source(1))
    >>> 2**40 <= release.value < 2**40 + 200, release.guarantee.epsilon(delta=0) <= 1
    (True, True)
    """
    return InteriorPoint(**options)(values, spender=spender, label=label, random=random)


def _stepped(epsilon: float, delta: float, steps: int, adjacency: Adjacency) -> Guarantee:
    if steps == 2:
        epsilon, delta = 2.0 * epsilon, (1.0 + float(np.exp(epsilon))) * delta * (1.0 + 1e-12)
    if delta == 0.0:
        return pure_dp(epsilon=epsilon, adjacency=adjacency)
    return approximate_dp(epsilon=epsilon, delta=delta, adjacency=adjacency)


def _draw(plan: InteriorPointPlan, codes: Codes, size: int, draws: SecretDraws) -> int | None:
    parameters, bits = plan.parameters, code_bits(size)
    if isinstance(parameters, TreeLogParameters):
        return draw_tree_log(codes, bits, parameters, draws)
    if isinstance(parameters, DyadicParameters):
        return draw_dyadic(codes, bits, parameters, draws)
    if plan.method == "exponential":
        return draws.interior(codes, size, parameters)
    return draw_binary_search(codes, bits, parameters, draws)


@dataclass(frozen=True, kw_only=True)
class CumulativeInteriorPoint(Mechanism):
    """Algorithm 8 on codes 0 .. 2**bits - 1 in any order, private at cumulative distance `distance`.

    Two data sets of equal size are at cumulative distance d if the numbers of points at or below y differ by at most d
    at every y. Replacing one point is distance one. `tuned_cumulative` finds parameters. You must ensure that
    neighbours are at most at this distance (`adjacency` is only their name). Codes outside count as the ends.
    """

    bits: int
    parameters: TreeLogParameters
    distance: int
    adjacency: Adjacency | str = Adjacency.REPLACE_ONE

    @property
    def guarantee(self) -> Guarantee:
        """(epsilon, delta) by the price of TreeLog at this distance."""
        distance = integer("distance", self.distance, at_least=1)
        price = tree_log_price(self.parameters, bits=self.bits, distance=distance)
        theorem = "cumulative TreeLog (Cohen et al. 2022, Theorem B.1, corrected)"
        terms = {"mechanism": "cumulative_interior_point", "bits": self.bits, "distance": distance}
        found = _stepped(price.epsilon, price.delta, 1, parse_adjacency(self.adjacency))
        return replace(found, theorem=theorem, terms=terms)

    def prepared(self, codes: Any) -> Callable[[RandomSource], int | None]:
        """An interior point of the codes, or None."""
        domain = WholeNumbers(0, (1 << self.bits) - 1)
        rows = _container(codes, domain)
        return lambda random: draw_tree_log(
            sort_codes(_codes(rows, domain)), self.bits, self.parameters, SecretDraws(random)
        )


def _container(values: Any, domain: Domain) -> Any:
    """An array of numbers or objects. Its type and its length are known, and no value has been looked at."""
    if isinstance(values, (str, bytes, dict)):
        raise ContentError("values must be a one-dimensional array or sequence of real numbers")
    values = unmasked(values)
    rows = np.asarray(values) if isinstance(values, NumPyArray) else list(values)
    if isinstance(rows, np.ndarray):
        kinds = "iuO" if isinstance(domain, WholeNumbers) else "fiubO"
        if rows.ndim != 1 or (len(rows) and rows.dtype.kind not in kinds):
            raise ContentError(f"values must be one-dimensional, and {_kind(domain)} numbers as the bounds are")
        return rows
    cells = np.empty(len(rows), dtype=object)
    for place, cell in enumerate(rows):
        cells[place] = cell
    return cells


def _kind(domain: Domain) -> str:
    return "whole" if isinstance(domain, WholeNumbers) else "real"


def _codes(rows: Any, domain: Domain) -> Codes:
    """One code a row, by a map that knows one row at a time: what is not a number is the lowest.

    Raises `ContentError` for objects that are no such numbers (see `hardly_any`).
    """
    if not isinstance(domain, WholeNumbers):
        doubles = rows
        if rows.dtype.kind == "O":
            doubles, present = cells_as(rows, np.dtype(np.float64))
            _check(present | [is_missing(cell) for cell in rows], domain)
        doubles = doubles.astype(np.float64)
        return domain.encode(np.where(np.isnan(doubles), -np.inf, doubles) + 0.0)
    if rows.dtype.kind in "iu":
        codes = domain.encode(rows)
    else:
        cells, present = whole_or_zero(rows)
        _check(present, domain)
        codes = [code if there else 0 for code, there in zip(domain.encode(cells), present, strict=True)]
    return codes if domain.size > 1 << 64 else np.array(codes, dtype=np.uint64)


def _check(fitting: NDArray[np.bool_], domain: Domain) -> None:
    if hardly_any(int(np.count_nonzero(fitting)), int(np.count_nonzero(~fitting))):
        raise ContentError(f"values must be a one-dimensional array of {_kind(domain)} numbers")
