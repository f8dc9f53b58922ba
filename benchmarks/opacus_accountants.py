"""One DP-SGD training priced by Opacus's accountants and by dpselect: epsilon, and processor time in milliseconds.

    python benchmarks/opacus_accountants.py

Opacus's `gdp` is a Gaussian approximation by the central limit theorem: no upper bound, shown for that reason. Its PRV
accountant is asked with its own default error (0.01 in epsilon) and with 0.001.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant

from dpselect.integrations.opacus.state import history_guarantee

DELTA = 1e-5
TRAININGS = [(1.0, 0.01, 1000), (4.0, 0.2, 60), (0.7, 0.05, 200), (1.0, 0.001, 100_000), (8.0, 0.5, 500)]


def measured(price: Callable[[], float]) -> str:
    """The price, and the time it took."""
    begin = time.process_time()
    try:
        epsilon = f"{price():.4f}"
    except Exception as error:
        epsilon = type(error).__name__
    return f"{epsilon} ({(time.process_time() - begin) * 1000:.0f})"


def main() -> None:
    """Print the table in Markdown."""
    warnings.simplefilter("ignore")
    print(f"| noise, rate, steps (delta {DELTA:g}) | dpselect | PRV 0.001 | PRV | RDP | gdp |")
    print("|---|---|---|---|---|---|")
    for training in TRAININGS:
        accountants = {
            name: kind() for name, kind in (("p", PRVAccountant), ("r", RDPAccountant), ("g", GaussianAccountant))
        }
        for accountant in accountants.values():
            accountant.history = [training]
        cells = [
            measured(lambda training=training: history_guarantee([training]).epsilon(DELTA)),
            measured(lambda prv=accountants["p"]: prv.get_epsilon(DELTA, eps_error=0.001)),
            measured(lambda prv=accountants["p"]: prv.get_epsilon(DELTA)),
            measured(lambda renyi=accountants["r"]: renyi.get_epsilon(DELTA)),
            measured(lambda central=accountants["g"]: central.get_epsilon(DELTA)),
        ]
        print(f"| {', '.join(f'{value:g}' for value in training)} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
