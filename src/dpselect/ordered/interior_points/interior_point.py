"""A private interior point: any value between the smallest and the largest of the data."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, SupportsFloat, Unpack

import numpy as np
from numpy.typing import NDArray

from dpselect.errors import ArgumentError, ContentError, integer, number
from dpselect.mechanisms import bounded_range, noisy_count, noisy_count_guarantee
from dpselect.ordered.domains import Codes, Domain, WholeNumbers
from dpselect.ordered.interior_points.binary_search import draw_binary_search
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.dyadic import DyadicParameters, draw_dyadic
from dpselect.ordered.interior_points.rows import METHODS, InteriorPointPlan, Method, plan_method
from dpselect.ordered.interior_points.search_tree import sort_codes
from dpselect.ordered.interior_points.tree_log import TreeLogParameters, draw_tree_log
from dpselect.ordered.interior_points.tree_log_price import tree_log_price
from dpselect.ordered.public_domain import PublicDomain, domain_of_bounds, size_of_domain
from dpselect.ordered.sources.plain_lists import cells_as, hardly_any, is_missing, whole_or_zero
from dpselect.privacy import Adjacency, Guarantee, Release, Spender, approximate_dp, compose, gaussian, paid, pure_dp
from dpselect.privacy.adjacency import parse_adjacency
from dpselect.randomness import RandomSource, resolve

__all__ = ["choose_method", "cumulative_interior_point", "interior_point", "interior_point_guarantee"]


def interior_point(
    values: Any,
    *,
    epsilon: SupportsFloat,
    delta: SupportsFloat = 0.0,
    domain_size: int | None = None,
    lower: int | float | None = None,
    upper: int | float | None = None,
    granularity: SupportsFloat | None = None,
    method: Method | Literal["auto"] = "auto",
    expected_rows: int | None = None,
    failure_probability: SupportsFloat = 0.01,
    count_epsilon: SupportsFloat | None = None,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    spender: Spender | None = None,
    label: str = "interior-point",
    random: RandomSource | None = None,
) -> Release:
    """A value z with min(values) <= z <= max(values), except with `failure_probability`, if there are rows enough.

    Private whatever the values are, and however few. `interior_point_rows` says how many rows are enough. The value
    need not be among the data; with too few rows it may be any value of the domain, or None.

    Args:
        values: a one-dimensional array or sequence. Whole numbers (Python integers of any size) with `domain_size`, or
            with whole-number bounds; doubles with bounds of which one is a float: the domain is then all doubles
            between them. A value outside the domain counts as the nearest end; NaN and, in a sequence of Python
            objects, whatever is no (whole) number count as the lower one.
        epsilon, delta: the whole privacy budget; "exponential" spends no delta.
        domain_size: the domain is 0 .. domain_size - 1.
        lower, upper: or from lower to upper, both included.
        granularity: the multiples of it between the bounds instead; a number goes to the nearest.
        method: "exponential" (the exponential mechanism on min(#{x <= z}, #{x >= z})), "dyadic" (depth, stable choice,
            point), "tree_log" and "cumulative" (Cohen et al. 2022, Algorithms 5 and 8, tuned), "tree_log_printed"
            (Algorithm 5 with the constants of the paper), "binary_search" (Gaussian noise), or "auto": see
            `choose_method`.
        expected_rows: a public guess of the number of rows, for "auto"; never the true number unless that is public.
        failure_probability: the probability that the method is planned for.
        count_epsilon: if given, a noisy count is paid for first, in addition, and None is released if it is too small.
        adjacency: under replace_one the number of rows is public, and "auto" uses it unless `expected_rows` is given.
        spender, label: where the price is paid, before the values are looked at, and its name in the record.

    The `Release` holds the value or None (no node was heavy enough, or the count was too small; both are decisions of
    private mechanisms). Running time depends on the data and is not covered.

    Raises `ArgumentError` for parameters, `ContentError` for values that are not one-dimensional real numbers
    by their type or, in a sequence, evidently (fewer than a tenth are),
    `BudgetError` when the spender refuses.

    >>> from dpselect.randomness import keyed_source
    >>> release = interior_point([2**40 + i for i in range(200)], domain_size=2**64, epsilon=1, random=keyed_source(1))
    >>> 2**40 <= release.value < 2**40 + 200, release.guarantee.epsilon(delta=0) <= 1
    (True, True)
    """
    source = resolve(random)
    adjacency = parse_adjacency(adjacency)
    domain = domain_of_bounds(doubles=True, domain_size=domain_size, lower=lower, upper=upper, granularity=granularity)
    if expected_rows is not None:
        expected_rows = integer("expected_rows", expected_rows, at_least=0, at_most=1 << 1000)
    rows = _container(values, domain)
    # under replace_one the number of rows is public
    known = len(rows) if adjacency is Adjacency.REPLACE_ONE and expected_rows is None else expected_rows
    plan = _plan(method, domain.size, epsilon, delta, failure_probability, adjacency, known)
    guarantee = _guarantee(plan, domain.size, adjacency)
    counted = None
    if count_epsilon is not None:
        counted = number("count_epsilon", count_epsilon, at_least=1e-6, at_most=1e3)
        guarantee = compose(guarantee, noisy_count_guarantee(epsilon=counted, adjacency=adjacency))

    def run() -> Any:
        codes = _codes(rows, domain)
        value = None
        if counted is None or noisy_count(len(codes), epsilon=counted, random=source) >= plan.rows:
            found = _draw(plan, sort_codes(codes), domain.size, SecretDraws(source))
            value = None if found is None else domain.decode(min(found, domain.size - 1))
        return value

    return paid(run, guarantee, spender=spender, label=label, replayable=source.replayable)


def interior_point_guarantee(
    *,
    epsilon: SupportsFloat,
    delta: SupportsFloat = 0.0,
    method: Method | Literal["auto"] = "auto",
    expected_rows: int | None = None,
    failure_probability: SupportsFloat = 0.01,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    **domain: Unpack[PublicDomain],
) -> Guarantee:
    """What `interior_point` with these arguments promises, before it runs; at most (epsilon, delta).

    Under replace_one "auto" depends on the number of rows, which is public: give it as `expected_rows`, or
    `ArgumentError` is raised.

    >>> g = interior_point_guarantee(domain_size=2**256, epsilon=1, delta=1e-6, method="tree_log")
    >>> g.epsilon(delta=1e-6) <= 1.0
    True
    """
    adjacency, size = parse_adjacency(adjacency), size_of_domain(doubles=True, **domain)
    if method == "auto":
        method = choose_method(
            domain_size=size,
            epsilon=epsilon,
            delta=delta,
            expected_rows=expected_rows,
            failure_probability=failure_probability,
            adjacency=adjacency,
        )
    plan = _plan(method, size, epsilon, delta, failure_probability, adjacency, None)
    return _guarantee(plan, size, adjacency)


def choose_method(
    *,
    epsilon: SupportsFloat,
    delta: SupportsFloat = 0.0,
    expected_rows: int | None = None,
    failure_probability: SupportsFloat = 0.01,
    adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE,
    **domain: Unpack[PublicDomain],
) -> Method:
    """The method that "auto" takes, from public parameters: the one that needs the fewest rows.

    With `expected_rows` the exponential mechanism is taken wherever it makes do with that many: it spends no delta.
    Under replace_one it must be given: the call takes the number of rows, which is public. 0 asks for the fewest rows.

    >>> [choose_method(domain_size=size, epsilon=1, delta=1e-6) for size in (2**64, 2**256)]
    ['exponential', 'dyadic']
    """
    adjacency = parse_adjacency(adjacency)
    if expected_rows is not None:
        expected_rows = integer("expected_rows", expected_rows, at_least=0, at_most=1 << 1000)
    elif adjacency is Adjacency.REPLACE_ONE:
        raise ArgumentError("expected_rows must be given: under replace_one 'auto' goes by the number of rows")
    size = size_of_domain(doubles=True, **domain)
    return _plan("auto", size, epsilon, delta, failure_probability, adjacency, expected_rows).method


def _plan(
    method: Method | Literal["auto"],
    size: int,
    epsilon: SupportsFloat,
    delta: SupportsFloat,
    failure_probability: SupportsFloat,
    adjacency: Adjacency,
    rows: int | None,
) -> InteriorPointPlan:
    if method != "auto":
        plan = plan_method(method, size, epsilon, delta, failure_probability, adjacency)
        if plan is None:
            raise ArgumentError(
                f"method={method!r} needs a delta above 0 and below a quarter of failure_probability"
                + (", and replace_one" if method == "cumulative" else "")
            )
        return plan
    found = [plan_method(name, size, epsilon, delta, failure_probability, adjacency) for name in METHODS]
    plans = [plan for plan in found if plan is not None]
    if rows is not None and plans[0].rows <= rows:
        return plans[0]
    return min(plans, key=lambda plan: plan.rows)


def _guarantee(plan: InteriorPointPlan, size: int, adjacency: Adjacency) -> Guarantee:
    """The price of a plan; replacing a row is twice a step, (2e, (1 + exp(e)) d) for a step (e, d)."""
    steps = 1 if adjacency is Adjacency.ADD_OR_REMOVE_ONE else 2
    terms = {"mechanism": "interior_point", "method": plan.method, "domain_size": size}
    parameters, bits = plan.parameters, _bits(size)
    if isinstance(parameters, TreeLogParameters):
        cumulative = plan.method == "cumulative"
        price = tree_log_price(parameters, bits=bits, distance=1 if cumulative else None)
        theorem = f"TreeLog (Cohen et al. 2022, Theorem {'B.1' if cumulative else '3.8'}, constants of tree_log_price)"
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
        found = compose(node, *ends)
    elif plan.method == "exponential":
        theorem = "exponential mechanism"
        found = bounded_range(epsilon=parameters * steps, adjacency=adjacency)
    else:
        theorem = "noisy binary search, Gaussian noise"
        found = gaussian(noise_multiplier=parameters / steps, adjacency=adjacency)
    return replace(found, theorem=theorem, terms=terms)


def _stepped(epsilon: float, delta: float, steps: int, adjacency: Adjacency) -> Guarantee:
    if steps == 2:
        epsilon, delta = 2.0 * epsilon, (1.0 + float(np.exp(epsilon))) * delta * (1.0 + 1e-12)
    if delta == 0.0:
        return pure_dp(epsilon=epsilon, adjacency=adjacency)
    return approximate_dp(epsilon=epsilon, delta=delta, adjacency=adjacency)


def _draw(plan: InteriorPointPlan, codes: Codes, size: int, draws: SecretDraws) -> int | None:
    parameters, bits = plan.parameters, _bits(size)
    if isinstance(parameters, TreeLogParameters):
        return draw_tree_log(codes, bits, parameters, draws)
    if isinstance(parameters, DyadicParameters):
        return draw_dyadic(codes, bits, parameters, draws)
    if plan.method == "exponential":
        return draws.interior(codes, size, parameters)
    return draw_binary_search(codes, bits, parameters, draws)


def cumulative_interior_point(
    codes: Any,
    *,
    bits: int,
    parameters: TreeLogParameters,
    distance: int,
    adjacency: Adjacency | str = Adjacency.REPLACE_ONE,
    spender: Spender | None = None,
    label: str = "interior-point",
    random: RandomSource | None = None,
) -> Release:
    """Algorithm 8 on codes 0 .. 2**bits - 1 in any order, private at cumulative distance `distance`.

    Two data sets of equal size are at cumulative distance d if at every y the numbers of points at or below y differ
    by at most d; replacing one point is distance one. `tuned_cumulative` finds parameters. That what the caller calls
    neighbours (`adjacency` is only its name) is at most at this distance is owed. Codes outside count as the ends.
    """
    source = resolve(random)
    price = tree_log_price(parameters, bits=bits, distance=integer("distance", distance, at_least=1))
    guarantee = _stepped(price.epsilon, price.delta, 1, parse_adjacency(adjacency))
    terms = {"mechanism": "cumulative_interior_point", "bits": bits, "distance": distance}
    guarantee = replace(
        guarantee, terms=terms, theorem="cumulative TreeLog (Cohen et al. 2022, Theorem B.1, corrected)"
    )
    domain = WholeNumbers(0, (1 << bits) - 1)
    rows = _container(codes, domain)

    def run() -> Any:
        ordered = sort_codes(_codes(rows, domain))
        value = draw_tree_log(ordered, bits, parameters, SecretDraws(source))
        return value

    return paid(run, guarantee, spender=spender, label=label, replayable=source.replayable)


def _bits(size: int) -> int:
    return max((size - 1).bit_length(), 1)


def _container(values: Any, domain: Domain) -> Any:
    """An array of numbers or objects, of which the type and the length are known; no value has been looked at."""
    if isinstance(values, (str, bytes, dict)):
        raise ContentError("values must be a one-dimensional array or sequence of real numbers")
    rows = np.asarray(values) if hasattr(values, "__array__") else list(values)
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
    """One code a row, by a map that knows one row at a time: what is no number is the lowest.

    Raises `ContentError` for objects that evidently are no such numbers (see `hardly_any`).
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
