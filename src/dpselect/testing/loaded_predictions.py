"""Predictions of models in a process that did not train them: `python -m ...loaded_predictions FOLDER ...`.

A folder holds `rows.json` (the table: names to cells), `expected.npz` (what the trained estimator predicts: `labels`
and, of a classifier, `probabilities`), and the model: `model.npz` of a study, or `estimator.pickle` and
`estimator.joblib`. The loaded model must predict the same, to the bit, from every container and under permutations of
the columns. An estimator may refuse an order that is not that of training. One line of JSON for each folder goes to
standard output: how many predictions were right, how many refused, and what was wrong.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import json
import math
import pickle
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import joblib
import numpy as np

import dpselect

__all__ = ["FEW", "check_folder"]

Cells = Mapping[str, list[Any]]
FEW = 4
"""Tables of up to so many columns are tried in every order, wider ones in `SHUFFLES` and the alphabetical one."""
SHUFFLES = 5


def orders(names: list[str]) -> Iterator[list[str]]:
    """The order itself first, then others."""
    if len(names) <= FEW:
        yield from map(list, itertools.permutations(names))
        return
    yield names
    yield sorted(names)
    yield names[::-1]
    random = np.random.default_rng(1)
    for _ in range(SHUFFLES):
        yield [names[i] for i in random.permutation(len(names))]


def containers() -> dict[str, Callable[[Cells], Any]]:
    """Makers of tables with names: those whose packages are installed."""
    found: dict[str, Callable[[Cells], Any]] = {
        "dictionary of lists": dict,
        "dictionary of arrays": lambda cells: {name: np.asarray(column) for name, column in cells.items()},
    }
    if importlib.util.find_spec("pandas"):
        pandas = importlib.import_module("pandas")
        found["pandas"] = pandas.DataFrame
        found["pandas, nullable"] = lambda cells: pandas.DataFrame(cells).convert_dtypes()
        found["pandas, categories"] = lambda cells: pandas.DataFrame(cells).astype(
            {name: "category" for name, column in cells.items() if isinstance(column[0], str)}
        )
    if importlib.util.find_spec("polars"):
        polars = importlib.import_module("polars")
        found["polars"] = lambda cells: polars.DataFrame(dict(cells))
    if importlib.util.find_spec("pyarrow"):
        arrow = importlib.import_module("pyarrow")
        found["arrow"] = lambda cells: arrow.table(dict(cells))
        found["arrow batch"] = lambda cells: arrow.RecordBatch.from_pydict(dict(cells))
    return found


def arrays(cells: Cells, names: list[str]) -> Iterator[tuple[str, Any]]:
    """Tables without names, in the order of `names`."""
    rows = [list(row) for row in zip(*(cells[name] for name in names), strict=True)]
    yield "list of rows", rows
    yield "array of objects", np.array(rows, dtype=object)


_ASKED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "labels": lambda model, X: model.predict(X),
    "probabilities": lambda model, X: model.predict_proba(X),
}


class Tally:
    """Right, refused and wrong predictions."""

    def __init__(self, expected: Mapping[str, Any]) -> None:
        self.expected = expected
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []

    def check(self, what: str, model: Any, X: Any, *, may: bool) -> None:
        """Predict what is expected. With `may`, a refusal (`ValueError`) is as good as a correct prediction."""
        try:
            with warnings.catch_warnings(action="ignore"):  # a warning refuses nothing
                found = {name: _ASKED[name](model, X) for name in self.expected}
        except ValueError as error:
            self.counts["refused"] += 1
            if not may:
                self.wrong.append(f"{what}: refused: {error}")
            return
        same = all(np.array_equal(found[name], self.expected[name]) for name in found)
        self.counts["right" if same else "wrong"] += 1
        if not same:
            self.wrong.append(what)


def check_folder(folder: Path) -> dict[str, Any]:
    """How many predictions were right and refused, and what was wrong."""
    rows = (folder / "rows.json").read_text(encoding="utf-8")
    cells: dict[str, list[Any]] = json.loads(rows)  # decodes: what the test has written
    with np.load(folder / "expected.npz", allow_pickle=False) as archive:  # decodes: what the test has written
        tally = Tally(dict(archive))
    if (folder / "model.npz").exists():
        _check_study(dpselect.load_model(folder / "model.npz"), cells, tally)
    else:
        with (folder / "estimator.pickle").open("rb") as file:
            _check_estimator(pickle.load(file), cells, tally)
        _check_estimator(joblib.load(folder / "estimator.joblib"), cells, tally)
    return {**tally.counts, "wrong": tally.wrong[:5]}


def _check_study(model: Any, cells: Cells, tally: Tally) -> None:
    names = list(model.columns)
    beside = {"_unasked": [math.pi] * len(cells[names[0]])}
    for place, order in enumerate(orders(names)):
        table = {name: cells[name] for name in order}
        # other columns lie before and after
        table = {**beside, **table} if place % 2 else {**table, **beside}
        for kind, make in containers().items():
            tally.check(f"{kind}, {order}", model, make(table), may=False)
    for kind, X in arrays(cells, names):
        tally.check(kind, model, X, may=False)


def _check_estimator(model: Any, cells: Cells, tally: Tally) -> None:
    """An estimator that was trained on a frame whose columns have these names, or the numbers of their places."""
    names = list(cells)
    for order in orders(names):
        for kind, make in containers().items():
            if kind.startswith("dictionary"):
                continue
            for numbered in (False, True) if kind == "pandas" else (False,):
                X = make({name: cells[name] for name in order})
                if numbered:
                    X.columns = [names.index(name) for name in order]
                tally.check(f"{kind}, {order}", model, X, may=True)


if __name__ == "__main__":
    for place in sys.argv[1:]:
        print(json.dumps(check_folder(Path(place))))
