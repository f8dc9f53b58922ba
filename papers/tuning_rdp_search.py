"""Figure 7 of Papernot, Steinke 2022: the accuracy of a searched network against the total price of the search.

The paper trains a convolutional network on MNIST and repeats the search 500 times. Here every learning rate is run a
few times, and a search draws its runs from that pool; what 500 searches would find on average then needs no
simulation, since the best of K draws from N sorted accuracies is the i-th with probability f(i/N) - f((i-1)/N).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

import numpy as np
from scipy.optimize import brentq

from dpselect.accounting import best_of
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, compose, dp_sgd
from dpselect.privacy.renyi import log_delta_at_orders
from dpselect.repetitions import Poisson, Repetitions, TruncatedNegativeBinomial
from dpselect.repetitions.negative_binomial_theorems import theorem_2
from dpselect.repetitions.poisson import theorem_6
from papers.table import Context, Curve, Figure, Part, Row
from papers.tuning_rdp_bounds import DELTA, LAWS, mean_at
from papers.tuning_rdp_networks import Trainer, trained_pool, trainer

__all__ = ["searched_network"]

Prices = Mapping[str, list[float]]  # by law, one a mean, by the best accounting

_ONE_ROW: Final = 1 / 360
"""Of the digits that are held out, a fifth."""
_SEARCHES: Final = 500  # how often the paper repeats the search; the width of the band
_EXCESS: Final = np.geomspace(0.02, 1000.0, 500)  # orders less 1
_BASE: Final = partial(dp_sgd, noise_multiplier=1.1, sampling_rate=256 / 60_000, steps=14_063)

_TOTALS: Final = {
    2: (3.73759, 3.89398, 4.01298, 3.56878),
    10: (4.57570, 4.97702, 5.33017, 6.07473),
    100: (5.37498, 6.01408, 6.63501, 25.86397),
}
_COMPOSED: Final = {1: 2.90406, 2: 4.21855, 10: 10.48568, 100: 45.12032}
_PRECISION: Final = 1e-4  # relative: orders on a grid on both sides
_BUDGETS: Final = (3.0, 5.0, 8.0)  # E[K] of the Poisson law that the total pays for as published


def searched_network(context: Context) -> Part:
    """Figure 7: totals for the paper's training, and accuracies from a pool of trained runs."""
    chosen = trainer(context)
    pool = trained_pool(chosen, context)
    shown = (2.0, 3.0, 5.0, 10.0, 100.0, 1000.0) if context.quick else np.geomspace(1.5, 1500.0, 25)
    means = tuple(float(mean) for mean in shown)
    prices: dict[str, list[float]] = {}
    base, curves = chosen.guarantee, []
    for at, (name, family) in enumerate(LAWS.items()):
        laws = [family(mean) for mean in means]
        theirs = [published_total(base, law) for law in laws]
        prices[name] = [best_of(base, law, atoms=300).epsilon(delta=DELTA) for law in laws]
        found = [_search(pool, law, chosen.guess) for law in laws]
        reached, band = [mean for mean, _ in found], [2.0 * spread / math.sqrt(_SEARCHES) for _, spread in found]
        curves.append(Curve(f"{name}, as published", theirs, reached, f"C{at}-", band=band))
        curves.append(Curve(f"{name}, this library", prices[name], reached, f"C{at}--", band=band))
    rows = (*_priced(_BASE()), *_compared(chosen, pool, means, prices))
    figure = Figure(
        name="figure-7",
        title=f"Accuracy of the searched model, {chosen.what}",
        x_label="total epsilon at delta = 1e-6",
        y_label=f"mean accuracy (band: two errors of {_SEARCHES} searches)",
        log_x=True,
        curves=tuple(curves),
    )
    unspecified = (
        "delta (1e-6, as in the other figures), batches (Poisson samples), the number of learning rates "
        f"({len(chosen.rates)}), on which rows accuracy is measured (held out, no noise, so the search itself is not "
        "private there)",
        "strides, activation and last layer of the network (here every second layer halves the image; tanh; linear)",
        "what the middle range is, in which the text sees Poisson ahead: here prices of 3 to 8 Poisson runs",
        f"the model here: {chosen.what}; {pool.size} runs in the pool; E[K] at most {means[-1]:.0f}",
    )
    return Part(source="Figure 7", rows=rows, figures=(figure,), unspecified=unspecified)


def published_total(base: Guarantee, law: Repetitions) -> float:
    """Epsilon at delta = 1e-6 by Theorem 2 or 6 as printed, from the base's Renyi curve."""
    assert base.renyi_curve is not None
    orders = 1.0 + _EXCESS
    epsilons = base.renyi_curve(orders)
    if isinstance(law, Poisson):
        log_delta = log_delta_at_orders(orders, epsilons, np.log1p(1.0 / _EXCESS[:, None]))
        hat_delta = np.exp(np.minimum(np.min(log_delta, axis=1), 0.0))
        total = theorem_6(law=law, order=orders, epsilon=epsilons, hat_delta=hat_delta)
    else:
        assert isinstance(law, TruncatedNegativeBinomial)
        middle = np.append(
            (1.0 - 1.0 / orders) * epsilons + math.log(1.0 / law.gamma) / orders,
            math.log(1.0 / law.gamma),  # at order 1
        )
        at = int(np.argmin(middle))
        hat = (1.0, 0.0) if at == orders.size else (orders[at], epsilons[at])
        total = theorem_2(law=law, order=orders, epsilon=epsilons, hat_order=hat[0], hat_epsilon=hat[1])
    return _converted(orders, total)


def _converted(orders: Array, epsilons: Array) -> float:
    """Lemma 14, the order chosen on the grid."""
    found = epsilons + np.log1p(-1.0 / orders) - (math.log(DELTA) + np.log(orders)) / (orders - 1.0)
    return float(np.min(found))


def _priced(base: Guarantee) -> Iterator[Row]:
    """The totals for the paper's training: rate 256/60,000, 60 epochs, noise multiplier 1.1.

    The paper's column is a quadrature of the sampled Gaussian's divergence on 1,200 orders, apart from this library.
    """
    assert base.renyi_curve is not None
    orders = 1.0 + _EXCESS
    once = base.renyi_curve(orders)
    yield Row(
        name="MNIST training, one run: epsilon",
        paper=_COMPOSED[1],
        ours=_converted(orders, once),
        optimal=base.epsilon(delta=DELTA),
        tolerance=_PRECISION * _COMPOSED[1],
    )
    for mean, values in _TOTALS.items():
        for name, value in zip(("eta = 0", "eta = 0.5", "eta = 1", "Poisson"), values, strict=True):
            law = LAWS[name](mean)
            yield Row(
                name=f"MNIST training, {name}, E[K] = {mean}: epsilon",
                paper=value,
                ours=published_total(base, law),
                optimal=best_of(base, law, atoms=300).epsilon(delta=DELTA),
                tolerance=_PRECISION * value,
            )
        yield Row(
            name=f"MNIST training, composition of {mean} runs: epsilon",
            paper=_COMPOSED[mean],
            ours=_converted(orders, mean * once),
            optimal=compose(*[base] * mean).epsilon(delta=DELTA),
            tolerance=_PRECISION * _COMPOSED[mean],
        )


def _search(pool: Array, law: Repetitions, guess: float) -> tuple[float, float]:
    """Mean and standard deviation of the accuracy that a search finds; with K = 0 that of a guess."""
    reached = np.array([law.pgf(share) for share in np.arange(pool.size + 1) / pool.size])
    values, masses = np.append(guess, pool), np.append(law.zero_probability, np.diff(reached))
    mean = float(masses @ values)
    return mean, math.sqrt(float(masses @ (values - mean) ** 2))


def _compared(chosen: Trainer, pool: Array, means: tuple[float, ...], prices: Prices) -> Iterator[Row]:
    """Accuracies at equal total prices, and whether Poisson leads."""
    for runs in _BUDGETS:
        total = published_total(chosen.guarantee, Poisson(mean=runs))
        published, optimal = (
            {
                name: _search(pool, LAWS[name](mean), chosen.guess)[0]
                for name, mean in affordable.items()
                if mean is not None
            }
            for affordable in (
                {name: _paid_for(chosen.guarantee, name, total, means[-1]) for name in prices},
                {name: _affordable(found, means, total) for name, found in prices.items()},
            )
        )
        for name, accuracy in published.items():
            yield Row(
                name=f"accuracy at epsilon = {total:.2f}, {name}",
                ours=accuracy,
                optimal=optimal.get(name),
                note="the paper plots accuracies on MNIST",
            )
        yield Row(
            name=f"Poisson ahead, or less than one row behind, at epsilon = {total:.2f} (1: yes)",
            paper=1.0,
            ours=_leads(published),
            optimal=_leads(optimal),
            known="claim",
        )


def _paid_for(base: Guarantee, name: str, total: float, most: float) -> float | None:
    """The E[K] up to `most` whose published price is the total; None where the least number of runs costs more."""

    def excess(log_mean: float) -> float:
        return published_total(base, LAWS[name](math.exp(log_mean))) - total

    low, high = math.log(1.05), math.log(most)
    if excess(low) > 0.0:
        return None
    return most if excess(high) < 0.0 else math.exp(brentq(excess, low, high, xtol=1e-6))


def _affordable(prices: list[float], means: tuple[float, ...], total: float) -> float | None:
    """The largest E[K] within the total, as far as the means go."""
    return means[-1] if total > prices[-1] else mean_at(prices, means, total)


def _leads(accuracies: Mapping[str, float]) -> float:
    """1 if Poisson is ahead, or behind by less than one of the rows that measure accuracy."""
    return float(accuracies.get("Poisson", 0.0) >= max(accuracies.values(), default=0.0) - _ONE_ROW)
