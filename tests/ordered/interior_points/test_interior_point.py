"""Interior points: the public function, its calculator, exact audits on tiny domains, success at calculated sizes."""

from __future__ import annotations

import math
import random
import re
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest

from dpselect.errors import AdjacencyError, ArgumentError, ContentError
from dpselect.ordered.interior_points.draws import SecretDraws
from dpselect.ordered.interior_points.interior_point import CumulativeInteriorPoint, InteriorPoint, interior_point
from dpselect.ordered.interior_points.rows import METHODS
from dpselect.ordered.interior_points.tree_log_tuning import tuned_cumulative
from dpselect.privacy import Adjacency
from dpselect.randomness import keyed_source
from tests.ordered.interior_points.small_trees import array, shapes
from tests.root import ROOT

UNIT, RATIO = math.log(2.0), Fraction(1, 2)
ADD, SWAP = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE


def test_exact_failure_of_the_exponential_mechanism():
    """Straddling data: (N - 2)/(N - 2 + 2 exp(epsilon n/2)); the calculator's rate at its own size is met exactly."""
    for count, fails in ((98, 0.00481243696), (90, 0.208873739), (80, 0.975114567)):
        assert (2**64 - 2) / (2**64 - 2 + 2 * math.exp(count / 2)) == pytest.approx(fails, rel=1e-8)
    run = 2 * sum(math.exp(k) for k in range(1, 50))
    assert (2**64 - 98) / (2**64 - 98 + run) == pytest.approx(0.00304743551, rel=1e-8)
    for size, epsilon, failure in ((2**64, 1.0, 0.01), (1000, 0.3, 0.2), (2, 1.0, 0.01)):
        rows = InteriorPoint(method="exponential", domain_size=size, epsilon=epsilon, failure_probability=failure).rows

        def worst(count, size=size, epsilon=epsilon):
            return (size - 1) / (size - 1 + math.exp(epsilon * math.ceil(count / 2)))

        assert worst(rows) <= failure * (1 + 1e-9)
        assert rows <= 1 or worst(rows - 1) > failure


def test_other_budgets_beside_known_numbers():
    """A smaller delta (918, 193, 98 and 317 with continuous noise, the last one under replace-one) and epsilon."""
    for epsilon, delta, known in (
        (1.0, 1e-9, {"tree_log": 918, "dyadic": 193, "exponential": 98, "binary_search": 317}),
        (0.1, 1e-6, {"tree_log": 7313, "dyadic": 1714, "exponential": 980, "binary_search": 2094}),
    ):
        for method, rows in known.items():
            adjacency = SWAP if method == "binary_search" else ADD
            found = InteriorPoint(
                method=method, domain_size=2**64, epsilon=epsilon, delta=delta, adjacency=adjacency
            ).rows
            assert 0.85 * rows < found <= rows


def test_auto_is_one_public_choice():
    """What the call promises is what the calculator says in advance, with the same public numbers, or it refuses."""
    asked = {"domain_size": 2**256, "epsilon": 1, "delta": 1e-6}
    for count, adjacency, expected in (
        (50, ADD, None),
        (5000, ADD, None),
        (50, ADD, 5000),
        (50, SWAP, None),
        (5000, SWAP, None),
        (5000, SWAP, 40),
    ):
        given = {"expected_rows": expected} if expected is not None else {}
        release = interior_point([3] * count, **asked, **given, adjacency=adjacency, random=keyed_source(1))
        public = given if given or adjacency is ADD else {"expected_rows": count}
        before = InteriorPoint(**asked, **public, adjacency=adjacency).guarantee
        assert release.guarantee.terms == before.terms
        assert release.guarantee.epsilon(1e-6) == before.epsilon(1e-6)
        assert before.terms["method"] == InteriorPoint(**asked, **public, adjacency=adjacency).plan.method
    # under add-or-remove-one nothing but the declared numbers decides
    found = {interior_point([3] * n, **asked, random=keyed_source(1)).guarantee.terms["method"] for n in (0, 9, 9000)}
    assert found == {"dyadic"}
    for ask in ("guarantee", "plan", "rows"):
        with pytest.raises(ArgumentError, match="expected_rows"):
            getattr(InteriorPoint(**asked, adjacency=SWAP), ask)
    assert InteriorPoint(**asked, expected_rows=0, adjacency=SWAP).plan.method == "dyadic"


def test_the_choice_is_from_public_numbers():
    assert InteriorPoint(domain_size=2**64, epsilon=1, delta=1e-6).plan.method == "exponential"
    assert InteriorPoint(domain_size=2**256, epsilon=1, delta=1e-6).plan.method == "dyadic"
    assert InteriorPoint(domain_size=2**256, epsilon=1).plan.method == "exponential"
    assert InteriorPoint(domain_size=2**256, epsilon=1, delta=1e-6, expected_rows=1000).plan.method == "exponential"
    assert InteriorPoint(domain_size=2**256, epsilon=1, delta=1e-6, expected_rows=100).plan.method == "dyadic"
    assert InteriorPoint(domain_size=2**100, epsilon=1, delta=1e-6).plan.method == "exponential"
    assert InteriorPoint(domain_size=2**120, epsilon=1, delta=1e-6).plan.method == "dyadic"


@pytest.mark.cases(6)
@pytest.mark.parametrize("adjacency", [ADD, SWAP])
@pytest.mark.parametrize("method", METHODS)
def test_guarantees_stay_within_the_budget(method, adjacency):
    for size, epsilon, delta in ((2**10, 1.0, 1e-6), (2**64, 0.1, 1e-9), (2**256, 3.0, 1e-6)):
        if method == "cumulative" and adjacency is ADD:
            with pytest.raises(ArgumentError):
                InteriorPoint(domain_size=size, epsilon=1, delta=1e-6, method=method, adjacency=adjacency).guarantee
            return
        asked = {"domain_size": size, "epsilon": epsilon, "delta": delta, "method": method}
        g = InteriorPoint(**asked, adjacency=adjacency).guarantee
        assert g.adjacency is adjacency
        assert 0.85 * epsilon < g.epsilon(delta) <= epsilon
        if method == "exponential":
            assert g.epsilon(0) <= epsilon


# ---------------------------------------------------------------- the function


@pytest.mark.cases(3)
@pytest.mark.parametrize("adjacency", [ADD, SWAP])
@pytest.mark.parametrize("method", METHODS[:5])
def test_success_at_the_calculated_size(method, adjacency):
    """Eight shapes at the calculated size, ten times: more than 6 failures of 80 at a rate of 1 %: 2e-6."""
    rows = InteriorPoint(method=method, domain_size=2**64, epsilon=1, delta=1e-6, adjacency=adjacency).rows
    if rows is None:
        assert (method, adjacency) == ("cumulative", ADD)
        return
    failed = 0
    for trial in range(10):
        for name, points in shapes(rows + rows % 2, 64, random.Random(trial)).items():
            release = interior_point(
                points,
                domain_size=2**64,
                epsilon=1,
                delta=1e-6,
                method=method,
                adjacency=adjacency,
                random=keyed_source(f"{method} {trial} {name}"),
            )
            failed += release.value is None or not min(points) <= release.value <= max(points)
    assert failed <= 6


@pytest.mark.cases(5)
@pytest.mark.parametrize("method", METHODS)
def test_huge_domains(method):
    """2**256 values, eight shapes at the calculated size; each fails with probability 0.01 at most."""
    asked = {"domain_size": 2**256, "epsilon": 2, "delta": 1e-6, "method": method, "adjacency": SWAP}
    if method == "tree_log_printed":
        asked |= {"epsilon": 18, "delta": 1e-3}
    rows = InteriorPoint(**asked).rows
    failed = 0
    for name, points in shapes(rows + rows % 2, 256, random.Random(7)).items():
        release = interior_point(points, **asked, random=keyed_source(name))
        failed += release.value is None or not min(points) <= release.value <= max(points)
        assert release.replayable
    assert failed <= 1


@pytest.mark.cases(8)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bits", [256, 2048])
def test_the_domain_is_never_touched(method, bits):
    """Memory and the number of looks at the data hardly grow with the domain: nothing is kept for its values.

    For 2**256 values one bit each would be more than all memory there is; what is measured is that 300 rows take less
    than 40 kilobytes and a few numbers a bit.
    """
    points = [(1 << (bits - 1)) + k for k in range(300)]
    asked = {"domain_size": 1 << bits, "epsilon": 4, "delta": 1e-6, "method": method, "adjacency": SWAP}
    interior_point(points, **asked, random=keyed_source(1))  # plans are kept
    tracemalloc.start()
    interior_point(points, **asked, random=keyed_source(1))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 300 * (400 + bits) + 400 * bits


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("count", [0, 1, 2, 9])
def test_few_rows_never_fail_loudly(method, count):
    """Nothing is refused for lack of rows: an answer of the domain, or None by a private decision."""
    for trial in range(4):
        release = interior_point(
            [7] * count,
            lower=-5,
            upper=994,
            epsilon=1,
            delta=1e-6,
            method=method,
            adjacency=SWAP,
            random=keyed_source(f"{trial}"),
        )
        assert release.value is None or -5 <= release.value <= 994


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("size", [1, 2, 3, 5, 17])
def test_tiny_domains(method, size):
    asked = {"domain_size": size, "epsilon": 1, "delta": 1e-6, "method": method, "adjacency": SWAP}
    rows = InteriorPoint(method=method, **{k: v for k, v in asked.items() if k != "method"}).rows
    release = interior_point([size - 1] * max(rows, 1), **asked, random=keyed_source(5))
    assert release.value == size - 1
    assert interior_point([], **asked, random=keyed_source(6)).value in (None, *range(size))


def test_domains_of_all_kinds():
    source = keyed_source("domains")

    def at(values, **more):
        return interior_point(values, epsilon=20, random=source, **more).value

    rng = np.random.default_rng(1)
    floats = rng.normal(1000.0, 1.0, 400)
    assert floats.min() <= at(floats, lower=-1e300, upper=1e300) <= floats.max()
    tiny = rng.normal(0.0, 1e-200, 400)
    assert tiny.min() <= at(tiny, lower=-1.0, upper=1.0) <= tiny.max()
    assert at(np.full(400, np.nan), lower=-2.0, upper=5.0) == -2.0
    assert at(np.full(400, np.inf), lower=-2.0, upper=5.0) == 5.0
    assert at(np.full(400, -0.0), lower=-2.0, upper=5.0) == 0.0
    assert at(np.full(400, 2**63, dtype=np.uint64), lower=-(2**63), upper=2**64) == 2**63
    assert at(np.full(400, -7, dtype=np.int8), lower=-1000, upper=1000) == -7
    assert at([2**200 + 5] * 400, lower=0, upper=2**201) == 2**200 + 5
    assert at([5.0] * 400, lower=0, upper=10.0) == 5.0
    assert at([3] * 400, domain_size=3) == 2  # outside values count as the nearest end
    assert at([0], domain_size=1) == 0


def test_the_order_of_rows_does_not_matter():
    rng = random.Random(9)
    points = [rng.getrandbits(20) for _ in range(300)]
    mixed = rng.sample(points, len(points))
    for method in METHODS:
        asked = {"domain_size": 2**20, "epsilon": 1, "delta": 1e-6, "method": method, "adjacency": SWAP}
        first, second = (interior_point(p, **asked, random=keyed_source(3)).value for p in (points, mixed))
        assert first == second


def test_a_count_is_paid_for():
    asked = {"domain_size": 2**64, "epsilon": 1, "count_epsilon": 0.5}
    few = interior_point([1] * 20, **asked, random=keyed_source(1))
    many = interior_point([1] * 400, **asked, random=keyed_source(1))
    assert (few.value, many.value) == (None, 1)
    assert few.guarantee.epsilon(0) == pytest.approx(1.5)


def test_a_known_number_of_rows_is_used_under_replace_one_only():
    points = list(range(900))
    asked = {"domain_size": 2**256, "epsilon": 1, "delta": 1e-6}
    methods = [
        interior_point(points, **asked, adjacency=a, random=keyed_source(1)).guarantee.terms["method"]
        for a in (ADD, SWAP)
    ]
    assert methods == ["dyadic", "exponential"]


def test_containers_of_all_kinds():
    asked = {"domain_size": 100, "epsilon": 20, "random": keyed_source(4)}
    for rows in (range(40, 60), tuple(range(40, 60)), np.arange(40, 60, dtype=object), iter(range(40, 60))):
        assert 40 <= interior_point(rows, **asked).value < 60
    series = pytest.importorskip("pandas").Series(range(40, 60))
    assert 40 <= interior_point(series, **asked).value < 60
    for wrong in ([1.5], [None], [math.inf], [math.nan], "12", {1: 2}, [[1], [2, 3]], 7 * [b"x"]):
        with pytest.raises(ContentError):
            interior_point(wrong, **asked)
    with pytest.raises(ContentError):
        interior_point([[1.0], [2.0, 3.0]], lower=0.0, upper=1.0, epsilon=1)


def test_the_cumulative_release():
    p = tuned_cumulative(20, 1.0, 1e-6, 0.01, 2)
    codes = array([500 + i % 9 for i in range(6000)])
    release = CumulativeInteriorPoint(bits=20, parameters=p, distance=2)(codes, random=keyed_source(1))
    assert 500 <= release.value <= 508
    assert release.guarantee.epsilon(1e-6) <= 1 + 1e-9
    assert release.guarantee.adjacency is SWAP


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({}, ArgumentError),
        ({"lower": 1}, ArgumentError),
        ({"lower": 2, "upper": 1}, ArgumentError),
        ({"domain_size": 4, "lower": 1, "upper": 2}, ArgumentError),
        ({"domain_size": 4, "method": "median"}, ArgumentError),
        ({"domain_size": 4, "method": "dyadic"}, ArgumentError),
        ({"domain_size": 4, "epsilon": 0}, ArgumentError),
        ({"domain_size": 4, "delta": 0.7}, ArgumentError),
        ({"domain_size": 4, "failure_probability": 0}, ArgumentError),
        ({"domain_size": 4, "adjacency": "both"}, AdjacencyError),
        ({"lower": 0.0, "upper": math.nan}, ArgumentError),
    ],
)
def test_wrong_arguments(wrong, error):
    with pytest.raises(error):
        interior_point([1, 2, 3], **{"epsilon": 1, **wrong})


def test_wrong_values_are_named_without_being_shown():
    for values, bounds in ((["secret"], {"domain_size": 9}), (["secret"], {"lower": 0.0, "upper": 1.0})):
        with pytest.raises(ContentError) as caught:
            interior_point(values, epsilon=1, **bounds)
        assert "secret" not in str(caught.value)
    with pytest.raises(ContentError):
        interior_point(np.array([1.5, 2.0]), epsilon=1, domain_size=4)
    with pytest.raises(ContentError):
        interior_point(np.array([[1], [2]]), epsilon=1, domain_size=4)
    assert repr(SecretDraws()) == "<SecretDraws>"


# ---------------------------------------------------------------- statistical audit


@pytest.mark.full
@pytest.mark.parametrize("method", ["dyadic", "tree_log", "binary_search", "exponential"])
def test_statistics_of_neighbours(method):
    """The claimed (epsilon, delta) on the events {z <= t}, by 300 runs on each of two neighbours of calculated size.

    Flags a sound mechanism with probability below 1e-5 (six standard errors, a handful of events); a loss of three
    times the claimed epsilon on an event of probability a quarter would be seen almost surely.
    """
    runs, epsilon = 300, 0.5
    half = InteriorPoint(method=method, domain_size=2**20, epsilon=epsilon, delta=1e-6).rows // 2
    points = [0] * half + [2**20 - 1] * half
    pair = ([*points, 2**20 - 1, 2**20 - 1], points)  # two rows apart, so at twice the budget
    found = []
    for side, data in enumerate(pair):
        source = keyed_source(f"{method} {side}")
        drawn = [
            interior_point(data, domain_size=2**20, epsilon=epsilon, delta=1e-6, method=method, random=source).value
            for _ in range(runs)
        ]
        found.append(np.array([-1 if z is None else z for z in drawn]))
    for limit in (-1, 0, 2**10, 2**19 - 1, 2**19, 2**20 - 2):
        a, b = (float(np.mean(side <= limit)) for side in found)
        slack = 6 * math.sqrt(1 / runs)
        factor = math.exp(2 * epsilon)
        assert a <= factor * (b + slack) + slack
        assert b <= factor * (a + slack) + slack


def test_the_page_on_interior_points_runs():
    page = (ROOT / "docs" / "how-to/interior-point.md").read_text()
    shown = re.findall(r"^print\(.*\)  # (.*)$", page, flags=re.M)
    printed = []
    for block in re.findall(r"^```python\n(.*?)^```", page, flags=re.M | re.S):
        exec(compile(block, "interior-point.md", "exec"), {"print": lambda *parts: printed.append(parts)})
    assert [" ".join(map(str, parts)) for parts in printed] == shown


def test_the_table_of_the_guide_is_the_calculators():
    page = (ROOT / "docs" / "how-to/interior-point.md").read_text()
    methods = ("exponential", "dyadic", "binary_search", "tree_log", "cumulative")
    lines = re.findall(r"^\| 2\^(\d+) \| ([\d,]+(?: \| [\d,]+){4}) \|$", page, flags=re.M)
    assert [int(bits) for bits, _ in lines] == [16, 64, 256]
    for bits, cells in lines:
        for method, cell in zip(methods, cells.split(" | "), strict=True):
            adjacency = SWAP if method == "cumulative" else ADD
            asked = {"domain_size": 1 << int(bits), "epsilon": 1.0, "delta": 1e-6, "adjacency": adjacency}
            assert InteriorPoint(method=method, **asked).rows == int(cell.replace(",", ""))


def test_the_table_of_measurements_is_the_calculators():
    page = (ROOT / "docs" / "evidence/measurements.md").read_text()
    lines = re.findall(r"^\| ([\d.]+) \| 2\^(\d+) \| (\w+) \| (\d+) \| (\d+) of (\d+) ", page, flags=re.M)
    assert len(lines) == 50
    for epsilon, bits, method, rows, hits, runs in lines:
        adjacency = SWAP if method == "cumulative" else ADD
        asked = {"domain_size": 1 << int(bits), "epsilon": float(epsilon), "delta": 1e-6, "adjacency": adjacency}
        assert InteriorPoint(method=method, **asked).rows == int(rows)
        assert int(hits) >= 0.97 * int(runs)
