"""Papernot, Steinke, "Hyperparameter Tuning with Renyi Differential Privacy" (2022): Figures 1 to 8, Appendix D."""

from __future__ import annotations

from typing import Final

from papers.table import Paper
from papers.tuning_rdp_bounds import epsilon_against_mean, laws_compared, logarithmic_curves
from papers.tuning_rdp_examples import conditional, fixed_runs, selection
from papers.tuning_rdp_leakage import leakage
from papers.tuning_rdp_networks import check_mnist
from papers.tuning_rdp_search import searched_network
from papers.tuning_rdp_utility import expected_quantile, success_probability

__all__ = ["PAPER"]

PAPER: Final = Paper(
    name="tuning-rdp",
    citation=(
        "Papernot, Steinke (2022). Hyperparameter Tuning with Renyi Differential Privacy. ICLR 2022, arXiv:2110.03620."
    ),
    parts={
        "what a hyperparameter leaks": leakage,
        "Renyi curves of logarithmic repetition": logarithmic_curves,
        "distributions of K compared": laws_compared,
        "price against the expected number of runs": epsilon_against_mean,
        "expected quantile": expected_quantile,
        "success probability": success_probability,
        "a searched network": searched_network,
        "conditional sampling": conditional,
        "a fixed number of runs": fixed_runs,
        "selection by repetition": selection,
    },
    full_seconds=500.0,
    quick_seconds=40.0,
    takes={"mnist": check_mnist},
)
