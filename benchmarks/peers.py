"""What others would release of a table at the same total price, with the same public bounds, and what is not private.

    pip install --no-deps interpret-core diffprivlib      # and torch, opacus
    python -m venv FOLDER && FOLDER/bin/pip install dpmm  # pins old versions of NumPy and pandas, so it runs apart

Each peer is a function of a `Case` that returns the score on the rows held out. A peer that is not installed raises
`ImportError`.

All are run at (epsilon, 1e-5) as their authors define it, but diffprivlib at (epsilon, 0) under replacing a row. Their
settings are their own defaults, where they have some. Opacus has none: its rate was the best of four (.01, .03, .1, .3)
by the mean over seven of the real tables, which flatters it.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks.cases import DELTA, Case, score_of, with_scikit_learn
from benchmarks.learners import diffprivlib_regression
from benchmarks.model_tables import Array, ModelTable
from dpselect.accounting import calibrate
from dpselect.privacy import gaussian

if TYPE_CHECKING:
    import pandas as pd

PEERS = ("diffprivlib", "DP-EBM", "AdaSSP", "Opacus", "MST", "AIM", "not private")
"""The beginnings of their names, in the order of their rows."""
Floats = NDArray[np.float64]
STEPS, SHARE = 150, 0.1
"""Of Opacus: 15 epochs in batches of a tenth of the rows on average."""
HIDDEN = 32
RATES = {0: 0.03, HIDDEN: 0.01}
"""Of Adam, by the number of hidden units."""
BINS = 16
"""Of a column of numbers, for synthetic rows; a number that is predicted has twice as many."""
MODEL_MIB, ROUNDS = 4.0, 40
"""Of AIM: the largest model, and the rounds."""
SYNTHESIS = """
import json, sys
import numpy as np, pandas as pd
from dpmm.models.aim import AIMGM
from dpmm.models.mst import MSTGM
asked = json.load(sys.stdin)
kind = {"MST": MSTGM, "AIM": AIMGM}[asked["mechanism"]]
made = kind(random_state=np.random.RandomState(asked["seed"]), **asked["options"])
made.fit(pd.read_csv("real.csv"))
made.generate(n_records=asked["rows"]).to_csv("synthetic.csv", index=False)
"""


def known_of(table: ModelTable, column: str) -> Mapping[str, Any]:
    """What is public of a column."""
    known: Mapping[str, Any] = table.facts["columns"][column] if "columns" in table.facts else table.facts
    return known


def row_norm(table: ModelTable) -> float:
    """The largest norm of a row of `encoded`: each column has at most one number that is not 0, between -1 and 1."""
    return float(len(table.columns) ** 0.5)


def diffprivlib(case: Case) -> Any:
    """Its linear model with default settings, at (epsilon, 0) under replacing one row."""
    peer = diffprivlib_regression()
    if not case.table.regression:
        return peer(epsilon=case.epsilon, data_norm=row_norm(case.table), C=1.0, random_state=case.seed)
    from diffprivlib.models import LinearRegression as Peer

    return Peer(epsilon=case.epsilon, random_state=case.seed, bounds_X=(-1.0, 1.0), bounds_y=case.label_bounds)


def dp_ebm(case: Case) -> float:
    """Cyclic boosting of one column at a time (Nori et al., 2021), by interpret with its defaults."""
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    table = case.table
    rows, known = without_missing(table)
    options: dict[str, Any] = {
        "feature_names": list(known),
        "feature_types": ["nominal" if "categories" in each else "continuous" for each in known.values()],
        "privacy_bounds": {name: tuple(each["bounds"]) for name, each in known.items() if "bounds" in each},
        "epsilon": case.epsilon,
        "delta": DELTA,
        "random_state": case.seed,
        "n_jobs": 1,
    }
    if table.regression:
        low, high = case.label_bounds
        model = DPExplainableBoostingRegressor(privacy_target_min=low, privacy_target_max=high, **options)
    else:
        model = DPExplainableBoostingClassifier(**options)
    train, test = case.parts
    return score_of(case, model.fit(rows.iloc[train], table.answers[train]).predict(rows.iloc[test]))


def without_missing(table: ModelTable) -> tuple[pd.DataFrame, dict[str, Mapping[str, Any]]]:
    """Columns for peers that take no missing cell, and what is public of each.

    A missing number becomes the middle of its bounds, with a column of "yes" and "no" for whether it was missing. A
    missing word becomes a word of its own.
    """
    import pandas as pd  # an extra

    cells: dict[str, Array] = {}
    known: dict[str, Mapping[str, Any]] = {}
    for name, column in table.columns.items():
        known[name] = known_of(table, name)
        if "categories" in known[name]:
            cells[name] = np.where(column == "", "(missing)", column)
            continue
        cells[name] = np.where(np.isnan(column), sum(known[name]["bounds"]) / 2, column)
        if known[name].get("missing") == "indicator":
            cells[f"{name} is missing"] = np.where(np.isnan(column), "yes", "no")
            known[f"{name} is missing"] = {"categories": ["no", "yes"]}
    return pd.DataFrame(cells), known


def adassp(case: Case) -> float:
    """Adaptive sufficient statistics perturbation for linear regression (Wang, 2018, Algorithm 2).

    Three Gaussian releases (the least eigenvalue of X'X, X'X, X'y) share mu squared equally, where mu is what the
    total gives one Gaussian release. Wang's factor sqrt(log(6 / delta)) / (epsilon / 3) is this noise.
    """
    train, test = case.parts
    draw = np.random.default_rng([case.seed, 4])
    X = np.hstack([case.table.encoded, np.ones((len(case.table.answers), 1))])
    low, high = case.label_bounds
    middle, half = (low + high) / 2, (high - low) / 2
    y = (np.clip(case.table.answers[train], low, high) - middle) / half
    weights = adassp_weights(X[train], y, row_norm(case.table) ** 2 + 1, case.epsilon, draw)
    return score_of(case, middle + half * (X[test] @ weights))


def adassp_weights(X: Floats, y: Floats, squared_norm: float, epsilon: float, draw: np.random.Generator) -> Floats:
    """Weights for rows of at most this squared norm and answers in [-1, 1]."""
    columns, failure = X.shape[1], 0.05
    single = calibrate(lambda noise: gaussian(noise_multiplier=noise), epsilon=epsilon, delta=DELTA)
    noise = float(3**0.5 * single) * squared_norm
    gram = X.T @ X
    upper = np.triu(draw.normal(size=gram.shape))
    shift = noise * np.log(6 / DELTA) ** 0.5
    least = max(np.linalg.eigvalsh(gram)[0] + noise * draw.normal() - shift, 0.0)
    ridge = max(noise * (columns * np.log(2 * columns**2 / failure)) ** 0.5 - least, 0.0)
    noisy = gram + noise * (upper + np.triu(upper, 1).T) + ridge * np.eye(columns)
    moments = X.T @ y + noise / squared_norm**0.5 * draw.normal(size=columns)
    weights: Floats = np.linalg.lstsq(noisy, moments, rcond=None)[0]
    return weights


def opacus(hidden: int, case: Case) -> float:
    """DP-SGD by Opacus with Adam: logistic or linear regression, or a network of one layer of rectifiers."""
    import torch
    from opacus import GradSampleModule
    from opacus.accountants.utils import get_noise_multiplier
    from opacus.optimizers import DPOptimizer
    from torch import nn

    torch.manual_seed(case.seed)
    table, (train, test) = case.table, case.parts
    X = torch.tensor(table.encoded, dtype=torch.float32)
    outputs = 1 if table.regression else len(table.facts["classes"])
    low, high = case.label_bounds if table.regression else (0.0, 0.0)
    if table.regression:
        targets = torch.tensor(2 * (table.answers - low) / (high - low) - 1, dtype=torch.float32)[:, None].clamp(-1, 1)
    else:
        targets = torch.tensor(np.searchsorted(table.facts["classes"], table.answers))
    layers = [nn.Linear(X.shape[1], hidden), nn.ReLU()] if hidden else []
    model = GradSampleModule(nn.Sequential(*layers, nn.Linear(hidden or X.shape[1], outputs)))
    noise = get_noise_multiplier(
        target_epsilon=case.epsilon, target_delta=DELTA, sample_rate=SHARE, steps=STEPS, accountant="prv"
    )
    step = DPOptimizer(
        torch.optim.Adam(model.parameters(), lr=RATES[hidden]),
        noise_multiplier=noise,
        max_grad_norm=1.0,
        expected_batch_size=SHARE * case.rows,
    )
    loss = nn.MSELoss() if table.regression else nn.CrossEntropyLoss()
    for _ in range(STEPS):
        batch = torch.tensor(train)[torch.rand(len(train)) < SHARE]
        step.zero_grad()
        loss(model(X[batch]), targets[batch]).backward()
        step.step()
    with torch.no_grad():
        found = model(X[test]).numpy()
    if table.regression:
        return score_of(case, low + (high - low) * (found[:, 0].astype(float) + 1) / 2)
    return score_of(case, np.array(table.facts["classes"])[found.argmax(axis=1)])


def in_bins(table: ModelTable) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows as integers, and how many values each column may have: a bin, a category or, the last, neither.

    The answers are the column `answer`, with twice as many bins.
    """
    import pandas as pd  # an extra

    codes, sizes = {}, {}
    for name, cells in table.columns.items():
        known = known_of(table, name)
        if "categories" in known:
            words = np.array(known["categories"])
            matches = cells[:, None] == words
            codes[name] = np.where(matches.any(axis=1), matches.argmax(axis=1), len(words))
            sizes[name] = len(words) + 1
        else:
            codes[name], sizes[name] = binned(cells, *known["bounds"], BINS), BINS + 1
    if table.regression:
        codes["answer"] = binned(table.answers, *table.facts["label_bounds"], 2 * BINS)
        sizes["answer"] = 2 * BINS
    else:
        codes["answer"] = np.searchsorted(table.facts["classes"], table.answers)
        sizes["answer"] = len(table.facts["classes"])
    return pd.DataFrame(codes), sizes


def binned(cells: Array, low: float, high: float, bins: int) -> Array:
    """The number of the bin of each cell, or `bins` for a missing one."""
    places = np.floor((cells - low) / (high - low) * bins)
    codes: Array = np.where(np.isnan(places), bins, np.clip(places, 0, bins - 1)).astype(int)
    return codes


def boosted_on_synthetic_rows(mechanism: str, python: Path | None, case: Case) -> float:
    """Boosted trees on synthetic rows of public bins, by MST or AIM (McKenna et al., 2021 and 2022) of dpmm.

    `python` is an interpreter that has dpmm.
    """
    if python is None:
        raise ImportError("dpmm: name an interpreter that has it by --dpmm")
    train, test = case.parts
    codes, sizes = in_bins(case.table)
    options = {"epsilon": case.epsilon, "delta": DELTA, "domain": sizes, "n_jobs": 1, "n_iters": 1000}
    if mechanism == "AIM":
        options |= {"max_model_size": MODEL_MIB, "rounds": ROUNDS}
    asked = {"mechanism": mechanism, "options": options, "seed": case.seed, "rows": case.rows}
    with tempfile.TemporaryDirectory() as folder:
        codes.iloc[train].to_csv(Path(folder, "real.csv"), index=False)
        command = [str(python), "-I", "-W", "ignore", "-c", SYNTHESIS]  # -I: not this process's PYTHONPATH
        subprocess.run(command, input=json.dumps(asked), capture_output=True, check=True, cwd=folder, text=True)
        import pandas as pd  # an extra

        rows = pd.read_csv(Path(folder, "synthetic.csv"))
    inputs = list(case.table.columns)
    answers = rows["answer"].to_numpy()
    if len(np.unique(answers)) == 1:  # nothing to learn
        found = np.full(len(test), answers[0])
    else:
        found = boosted(case).fit(rows[inputs], answers).predict(codes[inputs].iloc[test])
    if case.table.regression:
        low, high = case.label_bounds
        return score_of(case, low + (high - low) * (found + 0.5) / (2 * BINS))
    return score_of(case, np.array(case.table.facts["classes"])[found])


def linear(case: Case) -> Any:
    return LinearRegression() if case.table.regression else LogisticRegression(C=10, max_iter=3000)


def boosted(case: Case) -> Any:
    kind = HistGradientBoostingRegressor if case.table.regression else HistGradientBoostingClassifier
    return kind(max_iter=60, random_state=case.seed)


def peers(table: ModelTable, dpmm: Path | None = None) -> Iterator[tuple[str, Callable[[Case], float]]]:
    """Those that can learn this kind of table, by the name of their row; `dpmm` is an interpreter that has dpmm."""
    yield "diffprivlib", partial(with_scikit_learn, diffprivlib)
    if table.regression or len(table.facts["classes"]) == 2:
        yield "DP-EBM", dp_ebm
    if table.regression:
        yield "AdaSSP", adassp
    yield "Opacus: linear", partial(opacus, 0)
    yield "Opacus: network", partial(opacus, HIDDEN)
    for mechanism in ("MST", "AIM"):
        yield f"{mechanism}, boosted trees", partial(boosted_on_synthetic_rows, mechanism, dpmm)
    yield "not private: linear", partial(with_scikit_learn, linear)
    yield "not private: boosted trees", partial(with_scikit_learn, boosted)
