"""Fully adaptive filters: guarantees chosen after seeing outputs, counted better than by adding epsilons up.

A filter fixes a limit in advance and admits a mechanism while the sum of its units stays within:

- `renyi`: Renyi divergence at one order (Feldman, Zrnic 2021, Theorem 4.3, and Lecuyer 2021). With several orders each
  is a filter for its own share of delta, and one that admits is enough. On the views that it admits to the end its own
  truncation of the process agrees with the process, so the deltas of the filters add up to delta.
- `zcdp`: rho, a bound on all orders at once (Whitehouse et al. 2023, fully adaptive composition).
- `gaussian`: squared mu of Gaussian mechanisms (Smith, Thakurta 2022, and Koskela, Tobaben, Honkela 2023).

Failure masses add up beside, within a share of delta of their own: outside them the two laws are sub-probabilities
with a common factor. Reserved guarantees count, never realised costs: those have no place in an advanced composition.
An exception are outputs that say what they have used of a divergence (`OutputGuarantee.used`): with M the likelihood
ratio to the power a - 1, times exp((1 - a) charges), the mean of M over all histories is at most 1. So the moment of
those whose charges at this order end within its limit is that of the limit, which is all that a conversion needs
(docs/theory/odometer.md, Theorem 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from dpselect.cures import write_one_of
from dpselect.errors import ArgumentError, number
from dpselect.ledger.accounting import Accounting, Amounts, Budgeted, Options, ReservedPrice, below, worst
from dpselect.ledger.entries import amounts_to_text, exact
from dpselect.ledger.fold import ALTERNATIVE, Account
from dpselect.numerics.logs import ROUND_UP
from dpselect.numerics.search import first_true, root_between
from dpselect.privacy import Guarantee, OutputGuarantee, gaussian
from dpselect.privacy.concentrated import concentrated_rho
from dpselect.privacy.output.amounts import charged_amount
from dpselect.privacy.renyi import LinearRenyi, epsilon_from_renyi

__all__ = ["RenyiAccounting"]

_DEAD = Fraction(10**9)
"""Charged to an order at which the divergence has no bound: above every limit."""

_STEPS = 16
"""Levels of the odometer below the budget's epsilon."""

Divergences = Mapping[str, Fraction]


class RenyiAccounting(Accounting):
    """Adaptive filters on Renyi divergence, zero-concentrated privacy or Gaussian trade-off curves."""

    def terms(self, options: Options) -> dict[str, Any]:
        """The filter and its limits, such that (epsilon, delta) holds when they are reached. Rounded down."""
        inside = options.delta - options.failure
        if inside <= 0:
            raise ArgumentError("delta must be above the failure mass: a filter needs a positive delta")
        chosen = _named(options.filter)
        orders = _orders(options, inside) if options.filter == "renyi" else []
        limits = chosen.limits(float(options.epsilon), below(inside), orders)
        if not limits:
            raise ArgumentError("orders: none of them can hold a mechanism within this epsilon and delta")
        return {
            "limits": amounts_to_text({**limits, "failure": options.failure}),
            "filter": options.filter,
        }

    def price(self, terms: Mapping[str, Any], guarantee: Budgeted, delta: Fraction | None) -> ReservedPrice:
        """The worst case in the filter's units. Raises `ArgumentError` when the guarantee says nothing in them."""
        if delta is not None:
            raise ArgumentError("delta: a filter is priced as a whole, at the budget's delta")
        charged = worst(guarantee)
        units = [unit for unit in terms["limits"] if unit != "failure"]
        found = _named(terms["filter"]).charge(charged, units)
        refunded = terms["filter"] == "renyi" and isinstance(guarantee, OutputGuarantee) and guarantee.used is not None
        return ReservedPrice(
            {**found, "failure": charged_amount("failure", charged.failure)}, cells={} if refunded else None
        )

    def settled(self, terms: Mapping[str, Any], guarantee: OutputGuarantee, cell: Hashable) -> dict[str, Any]:
        """The divergences that were used, where they are what was reserved.

        At an order where the pure epsilon was smaller it stays: the smaller of two bounds, chosen afterwards, is none.
        """
        if guarantee.used is None or terms["filter"] != "renyi":
            return {}
        reserved = self.price(terms, guarantee, None).charge
        units = [unit for unit in reserved if unit != "failure"]
        orders, charged = np.array([_order(unit) for unit in units]), guarantee.worst()
        assert charged.renyi_curve is not None
        by_curve = charged.renyi_curve(orders) * ROUND_UP <= charged.pure_epsilon
        used = guarantee.used(cell, orders) * ROUND_UP
        found = {
            unit: min(charged_amount("divergence", float(value)), reserved[unit]) if curved else reserved[unit]
            for unit, value, curved in zip(units, used, by_curve, strict=True)
        }
        return {"charge": amounts_to_text({**found, "failure": reserved["failure"]})}

    def reading(self, account: Account) -> Amounts:
        """The odometer: an epsilon that holds whenever one stops, at the budget's delta.

        Levels k epsilon / 16, each a filter with its own share 6 / (pi k)^2 of delta. The reading is the first level
        that the charges fit (Lecuyer 2021, Rogers et al. 2016). It holds at every adaptively chosen stop, which the
        filter's own promise does not, and near the end may be above the budget, which the filter keeps.
        Source: docs/theory/odometer.md, Theorem 1, and Theorem 2 for charges that fall as divergences come back.
        """
        totals = account.totals()
        terms = account.terms
        inside = below(exact(terms["delta"]) - exact(terms["failure"]))
        spent = {unit: amount for unit, amount in totals.items() if unit != "failure"}
        step = exact(terms["epsilon"]) / _STEPS
        if not any(totals.values()):
            return Amounts(Fraction(0), Fraction(0), MappingProxyType(totals))
        chosen = _named(terms["filter"])

        def fits(level: int) -> bool:
            share = inside * 6.0 / (math.pi * level) ** 2 * (1.0 - 1e-12)
            return chosen.epsilon(spent, share) <= float(step * level) * (1.0 - 1e-15)

        level = first_true(fits, 1, 1 << 60, start=_STEPS)
        if level is None:
            raise ArgumentError("the odometer has no finite reading")
        return Amounts(step * level, exact(terms["delta"]), MappingProxyType(totals))


class _Renyi:
    """Divergences at fixed orders, each with an equal share of delta."""

    @staticmethod
    def limits(epsilon: float, delta: float, orders: list[float]) -> dict[str, Fraction]:
        found = {}
        for order in orders:
            limit = epsilon - _conversion(order, delta / len(orders))
            limit -= 1e-12 * (epsilon + abs(limit))
            if limit > 0.0:
                found[_unit(order)] = Fraction(limit)
        return found

    @staticmethod
    def charge(guarantee: Guarantee, units: list[str]) -> dict[str, Fraction]:
        orders = np.array([_order(unit) for unit in units])
        values = np.full(orders.shape, guarantee.pure_epsilon)
        if guarantee.renyi_curve is not None:
            values = np.minimum(values, guarantee.renyi_curve(orders) * ROUND_UP)
        if not np.any(np.isfinite(values)):
            raise ArgumentError("guarantee: it has no Renyi divergence at the orders of the budget")
        return {
            unit: min(charged_amount("divergence", float(value)), _DEAD) if math.isfinite(value) else _DEAD
            for unit, value in zip(units, values, strict=True)
        }

    @staticmethod
    def epsilon(spent: Divergences, delta: float) -> float:
        share = delta / len(spent)
        return min(
            max(0.0, float(total) + _conversion(_order(unit), share)) * ROUND_UP for unit, total in spent.items()
        )


class _Concentrated:
    """Zero-concentrated privacy: rho bounds the divergence at every order by rho * order.

    The charge is the supremum of the mechanism's own divergence over the order. It is at most epsilon^2 / 2 for an
    epsilon-private mechanism. Source: Bun, Steinke 2016, Proposition 1.4.
    """

    @staticmethod
    def limits(epsilon: float, delta: float, _orders: list[float]) -> dict[str, Fraction]:
        return {"rho": _largest(lambda rho: epsilon_from_renyi(LinearRenyi(rho), delta), epsilon)}

    @staticmethod
    def charge(guarantee: Guarantee, _units: list[str]) -> dict[str, Fraction]:
        limit = guarantee.pure_epsilon
        rho = math.inf if math.isinf(limit) else limit * limit / 2.0 * ROUND_UP
        if guarantee.renyi_curve is not None:
            rho = min(rho, concentrated_rho(guarantee.renyi_curve, limit))
        if math.isinf(rho):
            raise ArgumentError("guarantee: it has no zero-concentrated bound; use filter='renyi'")
        return {"rho": charged_amount("rho", rho)}

    @staticmethod
    def epsilon(spent: Divergences, delta: float) -> float:
        rho = float(spent["rho"]) * ROUND_UP
        return epsilon_from_renyi(LinearRenyi(rho), delta) * ROUND_UP if rho > 0.0 else 0.0


class _Gaussian:
    """Gaussian trade-off curves: squared mu adds up."""

    @staticmethod
    def limits(epsilon: float, delta: float, _orders: list[float]) -> dict[str, Fraction]:
        return {"squared mu": _largest(lambda square: _gaussian_epsilon(square, delta), epsilon)}

    @staticmethod
    def charge(guarantee: Guarantee, _units: list[str]) -> dict[str, Fraction]:
        if guarantee.gaussian_mu is None:
            raise ArgumentError("guarantee: it is not a Gaussian mechanism; use filter='renyi'")
        return {"squared mu": Fraction(guarantee.gaussian_mu * (1.0 + 1e-15)) ** 2}

    @staticmethod
    def epsilon(spent: Divergences, delta: float) -> float:
        square = float(spent["squared mu"]) * ROUND_UP
        return _gaussian_epsilon(square, delta) if square > 0.0 else 0.0


_Filter = type[_Renyi] | type[_Concentrated] | type[_Gaussian]
_FILTERS: dict[str, _Filter] = {"renyi": _Renyi, "zcdp": _Concentrated, "gaussian": _Gaussian}


def _named(name: str) -> _Filter:
    if name not in _FILTERS:
        said = f"filter must be one of {', '.join(map(repr, _FILTERS))}, got {name!r}"
        raise ArgumentError(said + write_one_of("filter", name, _FILTERS))
    return _FILTERS[name]


def _unit(order: float) -> str:
    return f"{ALTERNATIVE}{order!r}"


def _order(unit: str) -> float:
    return float(unit.removeprefix(ALTERNATIVE))


def _conversion(order: float, delta: float) -> float:
    """The excess of epsilon over the divergence at one order. Source: Canonne, Kamath, Steinke 2020, Proposition 12."""
    return math.log1p(-1.0 / order) - (math.log(delta) + math.log(order)) / (order - 1.0)


def _orders(options: Options, inside: Fraction) -> list[float]:
    if options.orders is not None:
        found = sorted({number("orders", order, above=1.0) for order in options.orders})
        if not found:
            raise ArgumentError("orders must not be empty")
        return found
    # around the order that is best for Gaussian noise
    delta = below(inside)
    rho = float(_largest(lambda r: epsilon_from_renyi(LinearRenyi(r), delta), float(options.epsilon)))
    best = 1.0 + math.sqrt(math.log(1.0 / delta) / rho)
    return [float(f"{1.0 + (best - 1.0) * scale:.4g}") for scale in (0.25, 0.5, 1.0, 2.0, 4.0)]


def _gaussian_epsilon(square: float, delta: float) -> float:
    return gaussian(noise_multiplier=1.0 / math.sqrt(square) / (1.0 + 1e-15)).epsilon(delta)


def _largest(epsilon_of: Callable[[float], float], epsilon: float) -> Fraction:
    """Close below the largest unit whose epsilon fits. The answer was seen to fit."""
    none = 1e-280
    found = root_between(lambda unit: epsilon_of(unit) <= epsilon, safe=none, unsafe=1e280, start=1.0, relative=1e-10)
    if found == none:
        raise ArgumentError("epsilon and delta are too small for a filter")
    return Fraction(found)
