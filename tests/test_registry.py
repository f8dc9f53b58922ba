"""Declarations from outside of the package: one of each kind that a study, a command or a function finds by name."""

import json
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.accounting import best_of, plan, search_bound
from dpselect.accounting.best_of_k.search_bound import BOUNDS
from dpselect.cli.app import app
from dpselect.errors import ArgumentError, BoundUnavailableError
from dpselect.ordered import column_source, median, open_column, quantiles
from dpselect.ordered.order_statistics.methods.method import METHODS, DrawnCodes, MethodPlan, ProvedMethod
from dpselect.ordered.sources.adapters import read_values
from dpselect.ordered.sources.opening import COLUMN_SOURCES
from dpselect.ordered.sources.request import ColumnRequest
from dpselect.preprocessing.maps.row_map import MAPS, MapOfRows, within_unit_ball
from dpselect.privacy import Adjacency, base_mechanism, gaussian, laplace, pure_dp
from dpselect.privacy.bases import BASES
from dpselect.randomness import keyed_source
from dpselect.registry import Registry
from dpselect.repetitions import Tabulated, repetition_law
from dpselect.repetitions.by_name import from_description
from dpselect.repetitions.distribution import LAWS, Family, FloatArray
from dpselect.repetitions.finite import FiniteLaw
from dpselect.study import load_model, parse_study, run_study
from dpselect.study.columns.scale import SCALES, Scale
from dpselect.tables.kinds.declared import KINDS, ColumnKind
from dpselect.testing.learner_contract import unpriced
from tests.registered import only_in_this_file


@repetition_law("test-either")
@dataclass(frozen=True, kw_only=True)
class Either(FiniteLaw):
    """One run or `many`, with equal chances; with a closed form of its pure price that is dear, to be recognised."""

    many: int

    @property
    def limit(self):
        return int(self.many)

    @property
    def minimum(self):
        return 1

    def _log_weights(self) -> FloatArray:
        weights = np.full(self.limit + 1, -np.inf)
        weights[[1, self.limit]] = 0.0
        return weights

    def _exact_pmf(self):
        weight = 1 << 319
        return 320, (weight * (k in (1, self.limit)) for k in range(self.limit + 1))

    def pure_shift(self, epsilon: float) -> float:
        return 100.0 * epsilon

    @classmethod
    def families(cls):
        return (Family("one or many", lambda limit: cls(many=max(int(limit), 2)), whole=True),)


@base_mechanism("test-staircase", noise="width")
def staircase(*, width: float, adjacency: Adjacency | str = Adjacency.ADD_OR_REMOVE_ONE):
    """Noise of this width: 2 / width, say."""
    return pure_dp(epsilon=2.0 / width, adjacency=adjacency)


@search_bound("test-thousand")
def thousand(base, law):
    """Dear, to be recognised; nothing without a pure epsilon."""
    if base.pure_epsilon == float("inf"):
        return None
    return pure_dp(epsilon=1000.0 * base.pure_epsilon * law.mean, adjacency=base.adjacency)


@column_source(".lines")
@contextmanager
def lines(path: str, request: ColumnRequest):
    """A file with a number a line."""
    yield read_values(np.loadtxt(path) if request.column == "all" else np.empty(0))


@METHODS.register("test-uniform")
class UniformCodes(ProvedMethod):
    """Codes that do not look at the rows: evenly spread, for nothing."""

    def plan(self):
        return MethodPlan((), pure_dp(epsilon=0.0, adjacency=self.asked.adjacency))

    def rank_errors(self, size, failure):
        return [float(size)] * len(self.asked.qs)

    def draw(self, column, random):
        return DrawnCodes([int(q * column.domain.size) for q in self.asked.qs])


SCALES.register("test-sign")(Scale(lambda values, low, high, size: np.sign(values)[:, None]))
KINDS.register("test-percentage")(
    ColumnKind(lambda cells, declared: np.array([float(str(cell).rstrip("%")) / 100 for cell in cells]))
)


@MAPS.register("test-reversed")
class Reversed(MapOfRows):
    """The signs of the columns in the opposite order."""

    def _width(self, columns):
        return columns

    def _mapped(self, cells):
        return within_unit_ball(np.sign(np.nan_to_num(cells[:, ::-1])))


registered = only_in_this_file(
    (SCALES, "test-sign"),
    (KINDS, "test-percentage"),
    (MAPS, "test-reversed"),
    (LAWS, "test-either"),
    (BASES, "test-staircase"),
    (BOUNDS, "test-thousand"),
    (COLUMN_SOURCES, ".lines"),
    (METHODS, "test-uniform"),
)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_law_is_priced_like_the_same_table():
    base, same = pure_dp(epsilon=0.5), Tabulated(probabilities=(0.0, 0.5, 0.0, 0.5))
    assert best_of(base, Either(many=3), bound="renyi").epsilon(delta=1e-6) == pytest.approx(
        best_of(base, same, bound="renyi").epsilon(delta=1e-6), rel=1e-9
    )
    assert Either(many=3).sample() in (1, 3)
    assert Either(many=3).at_most(2).sample() == 1
    assert from_description(Either(many=3).describe()) == Either(many=3)


def test_its_closed_form_is_asked():
    assert best_of(pure_dp(epsilon=0.5), Either(many=3), bound="pure").epsilon(delta=0) == pytest.approx(50.5)


def test_its_families_are_planned_with():
    found = plan(base=pure_dp(epsilon=0.5), delta=0.0, expected_quantile=0.6, families=Either.families())
    assert found.best.law == Either(many=3)
    assert "one or many" in {family.name for family in Either.families()}


def test_the_command_line_knows_it():
    asked = ("--base", "pure:epsilon=0.5", "--repetitions", "test-either:many=3", "--delta", "0", "--json")
    found = json.loads(run("account", *asked))
    assert found["repetitions"] == {"law": "test-either", "many": 3}
    noise = ("--base", "laplace", "--repetitions", "test-either:many=3", "--epsilon", "2", "--delta", "0", "--json")
    assert json.loads(run("plan", *noise))["epsilon"] <= 2


def test_a_base_is_priced_planned_and_helped_with():
    asked = ("--base", "test-staircase:width=4", "--repetitions", "fixed:count=3", "--delta", "0", "--json")
    assert json.loads(run("account", *asked))["single_run_epsilon"] == 0.5
    noise = ("--base", "test-staircase", "--repetitions", "fixed:count=3", "--epsilon", "2", "--delta", "0", "--json")
    assert json.loads(run("plan", *noise))["width"] == pytest.approx(3.0, rel=1e-3)
    wrong = CliRunner().invoke(app, ["account", "--base", "test-staircase", *asked[2:]])
    assert "takes 'width=', got none" in str(wrong.exception)


def test_a_base_of_the_same_numbers_is_the_same_object():
    assert staircase(width=4.0) is staircase(width=4.0)
    assert staircase(width=4.0) is not staircase(width=5.0)
    assert staircase(width=4.0) is not staircase(width=4.0, adjacency="replace_one")
    with pytest.raises(TypeError, match="unsupported operand"):
        staircase(width=[4.0])
    with pytest.raises(TypeError, match="staircase"):
        staircase(4.0)


def test_a_number_that_changes_is_read_anew():
    """What is hashed by its identity, a tensor for example, must not have the price of what it was."""

    class Dial:
        value = 10.0

        def __float__(self):
            return self.value

    dial = Dial()
    assert laplace(scale=dial).epsilon(delta=0.0) == 0.1
    dial.value = 0.1
    assert laplace(scale=dial).epsilon(delta=0.0) == laplace(scale=0.1).epsilon(delta=0.0) == 10.0
    with pytest.raises(TypeError, match="scale must be a number"):
        laplace(scale=Decimal("sNaN"))  # it has no hash


def test_a_bound_is_asked_by_its_name():
    law = Either(many=3)
    assert best_of(pure_dp(epsilon=0.5), law, bound="test-thousand").epsilon(delta=0) == 1000.0
    assert best_of(pure_dp(epsilon=0.5), law).epsilon(delta=0) < 1000.0
    with pytest.raises(BoundUnavailableError, match="does not exist for this base"):
        best_of(gaussian(noise_multiplier=4.0), law, bound="test-thousand")
    asked = ("--base", "pure:epsilon=0.5", "--repetitions", "test-either:many=3", "--delta", "0", "--json")
    assert json.loads(run("account", *asked, "--bound", "test-thousand"))["epsilon"] == 1000.0


def test_a_bound_can_be_among_the_default_ones(monkeypatch):
    """The smallest of all: one that is too small is seen."""
    monkeypatch.setattr(BOUNDS, "_things", dict(BOUNDS._things))
    monkeypatch.setattr(BOUNDS, "_facts", dict(BOUNDS._facts))
    search_bound("test-nothing", by_default=True)(lambda base, law: pure_dp(epsilon=0.0))
    assert best_of(laplace(scale=1.0), Either(many=3)).epsilon(delta=0) == 0.0


def test_a_source_of_columns_is_found_by_the_end_of_its_path(tmp_path):
    path = tmp_path / "some.lines"
    path.write_text("\n".join(str(row / 10) for row in range(2000)))
    with open_column(str(path), "all") as source:
        middle = median(source, lower=0, upper=200, granularity=1, epsilon=8.0).value
    assert abs(middle - 100) < 5
    asked = ("--column", "all", "--lower", "0", "--upper", "200", "--q", "0.5", "--epsilon", "8", "--json")
    assert json.loads(run("quantile", str(path), *asked))["quantiles"][0]["value"] == pytest.approx(100, abs=5)
    with pytest.raises(ArgumentError, match="only for an SQL URL"):
        open_column(str(path), "all", table="rows")


def test_a_method_draws_several_quantiles(tmp_path):
    found = quantiles([5.0] * 9, qs=[0.5, 0.25], lower=0, upper=99, granularity=1, epsilon=1.0, method="test-uniform")
    assert (found.value, found.rank_errors()) == ([50.0, 25.0], [100.0, 100.0])
    assert found.guarantee.epsilon(delta=0) == 0.0
    assert found.guarantee.terms["method"] == "test-uniform"
    path = tmp_path / "rows.csv"
    path.write_text("x\n1\n2\n")
    asked = ("--column", "x", "--lower", "0", "--upper", "9", "--granularity", "1", "--q", "0.5", "--q", "0.2")
    paid = json.loads(run("quantile", str(path), *asked, "--epsilon", "1", "--method", "test-uniform", "--json"))
    assert [row["value"] for row in paid["quantiles"]] == [5, 2]


@pytest.mark.parametrize("named", [{"scale": "test-sign"}, {"map": "test-reversed"}], ids=["scale", "map"])
def test_a_scale_a_kind_and_a_map_are_named_by_a_study(named, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rows = [f"{'-' if i % 2 else ''}{i % 7}%,{i},{i % 2}" for i in range(60)]
    (tmp_path / "rows.csv").write_text("\n".join(["share,id,label", *rows]))
    learner = {"name": "ridge", **{key: name for key, name in named.items() if key == "map"}}
    share = {"kind": "test-percentage", "bounds": [-0.06, 0.06], **{k: n for k, n in named.items() if k == "scale"}}
    document = {
        "data": {
            "source": "rows.csv",
            "label": "label",
            "classes": [0, 1],
            "row_key": "id",
            "columns": {"share": share},
        },
        "privacy": {"epsilon": 50.0, "delta": 1e-5, "nominal_rows": 60},
        "learner": learner,
        "runs": {"executor": "inline"},
        "output": {"folder": "out"},
    }
    with unpriced():
        run_study(parse_study(document), base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(1))
    model = load_model(tmp_path / "out" / "model.npz")
    assert model.predict([["-6%"], ["6%"]]).tolist() == [1, 0]


def test_a_name_is_given_once():
    kinds = Registry[type]("kind", room="dpselect.errors")
    kinds.register("one")(int)
    kinds.register("one")(int)
    with pytest.raises(ArgumentError, match="exists already"):
        kinds.register("one")(float)
    with pytest.raises(ArgumentError, match="one of one"):
        kinds["two"]


def test_a_file_of_the_name_is_enough():
    """`dpselect account` would otherwise import all base mechanisms for one."""
    code = """
import sys
from dpselect.privacy.bases import BASES
assert "gaussian" in BASES and "dpselect.privacy.mechanisms.laplace" not in sys.modules
assert "nonesuch" not in BASES and "dpselect.privacy.mechanisms.laplace" in sys.modules
assert {"gaussian", "laplace", "dp-sgd"} <= set(BASES)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
