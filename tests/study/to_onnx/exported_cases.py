"""Models of every learner and map over columns of every kind, their ONNX files, and rows with odd cells."""

from dataclasses import dataclass

import numpy as np

from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from dpselect.study.columns.column import Column
from dpselect.study.learners.recipe import Recipe
from dpselect.study.model import ReleasedModel
from dpselect.study.model_file import model_bytes, read_model
from dpselect.study.target import Target
from dpselect.study.to_onnx.columns import NUMBERS, input_of
from dpselect.study.to_onnx.graph import Graph, Tensor
from dpselect.study.to_onnx.model import onnx_bytes

PLAIN = {
    "zebra": Column(bounds=(0.0, 3.0), missing=1.0),
    "mango": Column(categories=("x", "a", "m")),
    "apple": Column(bounds=(-7.5, 2.0), missing="indicator"),
    "bins": Column(bounds=(0.0, 10.0), scale="bins:7", missing="indicator"),
    "grade": Column(categories=(3, 1, 2.5), other=True, missing="indicator"),
    "strict": Column(bounds=(1, 2)),
    "count": Column(kind="integer", bounds=(0, 9), missing=0, missing_values=(-99, "NA")),
    "ill": Column(kind="boolean", true_values=("J",), false_values=("N",), missing="J"),
    "paid": Column(kind="boolean", true_values=(2,), false_values=(1,), missing="indicator"),
    "born": Column(kind="date", bounds=("1950-01-01", "2000-01-01"), missing="1970-01-01"),
    "tea": Column(categories=("café", "10", True), missing="indicator", missing_values=("NA",)),
    "yes": Column(categories=(True, False, ""), other=True),
    "last": Column(bounds=(0.0, 1.0), missing="indicator"),
}
LOGS = {
    "income": Column(bounds=(0.0, 1e6), scale="log", missing="indicator"),
    "size": Column(bounds=(0.01, 50.0), scale="log", missing=1.0),
}
ODD = {
    "zebra": (np.nan, np.inf, -np.inf, -0.0, 3.0, 1.5, 4.0),
    "mango": ("", "x", "q", "A"),
    "apple": (np.nan, -7.5, 2.0, -1e300),
    "bins": (np.nan, 0.0, 10.0, *(10.0 * k / 7 for k in range(8)), -1.0),
    "grade": (np.nan, 1.0, 2.5, 3.0, 4.0, np.inf),
    "strict": (1.0, 2.0, np.inf),
    "count": (np.nan, -99.0, 2.0, 2.5, np.inf, 40.0),
    "ill": (np.nan, 0.0, 1.0, 2.0),
    "paid": (np.nan, 0.0, 1.0, 2.0),
    "born": (np.nan, -1e10, 0.0, 5e8, 1e12),
    "tea": ("", "café", "cafe\u0301", "10", "10.0", "1", "true", "NA", "other"),
    "yes": (0.0, 1.0, np.nan, 2.0),
    "last": (0.0, 1.0, 0.5, np.nan, 2.0),
    "income": (np.nan, 0.0, 1e6, 1e-20, 7e8),
    "size": (np.nan, 0.01, 50.0, 1.0, -3.0),
}
RANGES = {name: ((0, 12) if name in ("count", "grade") else (-1, 4)) for name in ODD} | {
    "bins": (-1, 11),
    "strict": (0, 3),
    "born": (-1e9, 1.2e9),
    "income": (-1e4, 1.2e6),
    "size": (0, 60),
}
WHOLE = ("born", "count", "grade", "ill", "paid", "yes")


def table(columns, rows, seed=0):
    """Random rows, and in a tenth of the cells an odd value."""
    random = np.random.default_rng(seed)
    found = {}
    for name in columns:
        values = ODD.get(name, columns[name].categories or (np.nan, *columns[name].limits))
        odd = np.array(values, dtype=object if isinstance(values[0], str) else float)
        cells = random.choice(odd, rows)
        if odd.dtype != object:
            drawn = random.uniform(*RANGES.get(name, (-1, 1)), rows)
            cells = np.where(random.random(rows) < 0.1, cells, np.floor(drawn) if name in WHOLE else drawn)
        found[name] = cells
    return found


def dated(cells):
    """Seconds as the time stamps that a column of dates takes."""
    return np.array(np.round(np.clip(cells, -6e10, 2e11)).astype("datetime64[s]"))


def stored(columns, cells):
    """The cells as `predict` takes them: dates are time stamps."""
    return {name: dated(cells[name]) if column.kind == "date" else cells[name] for name, column in columns.items()}


def tensors(columns, cells):
    """The inputs of a graph."""
    found = {}
    for name, column in columns.items():
        found.setdefault(input_of(column), []).append(cells[name])
    return {key: np.column_stack(each).astype(np.float64 if key == NUMBERS else object) for key, each in found.items()}


def run(content, inputs):
    """What ONNX Runtime answers, by name."""
    from onnxruntime import InferenceSession

    session = InferenceSession(content, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def image(write, rows):
    """What a graph makes of rows: `write(graph, rows)` adds its operators."""
    graph = Graph(inputs=[Tensor("rows", "float64", ("count", rows.shape[1]))])
    found = write(graph, "rows")
    graph.outputs.append(Tensor(found, "float64", ("count", "width")))
    return run(graph.to_bytes("", {}), {"rows": rows})[found]


@dataclass
class Made:
    """A model and its file."""

    model: ReleasedModel
    content: bytes

    def tensors(self, cells):
        """The inputs of the graph."""
        return tensors(self.model.columns, cells)

    def expected(self, cells):
        """What `predict` answers."""
        return self.model.predict(stored(self.model.columns, cells))

    def probabilities(self, cells):
        """What `predict_proba` answers."""
        return self.model.predict_proba(stored(self.model.columns, cells))

    def run(self, cells):
        """What ONNX Runtime answers, by name."""
        return run(self.content, self.tensors(cells))


def made(kind, columns=PLAIN, *, target=None, noise=1.0, rows=800, seed=3, **settings):
    """A model that is trained on random rows, of a learner by its name in studies."""
    target = Target(("no", "yes", "maybe")) if target is None else target
    recipe = Recipe(kind, settings, target, float(rows), Adjacency.ADD_OR_REMOVE_ONE, columns)
    cells = table(columns, rows, seed)
    learner = recipe.estimator(noise, {}, keyed_source("onnx"))
    empty = ReleasedModel(columns, target.classes, learner, target.bounds)
    random = np.random.default_rng(seed)
    labels = random.uniform(*target.bounds, rows) if target.bounds else random.integers(0, len(target.classes), rows)
    learner.fit(empty.encode(stored(columns, cells)), labels)
    content = model_bytes(recipe, noise=noise, parameters={}, weights=learner.weights_)
    model = read_model(content, "the model")
    return Made(model, onnx_bytes(model))
