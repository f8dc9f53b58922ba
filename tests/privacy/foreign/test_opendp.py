"""Measurements of OpenDP: made-up objects with its fields, and the library itself where it is installed."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.privacy import Guarantee, approximate_dp, as_guarantee, gaussian, pure_dp, zcdp
from dpselect.privacy.promises import promise_or_function


def theirs(measure, loss, metric="SymmetricDistance"):
    """A measurement whose map gives `loss(d_in)`. It is callable, as measurements are."""
    fields = {
        "input_metric": SimpleNamespace(type=metric),
        "output_measure": SimpleNamespace(type=measure),
        "map": staticmethod(loss),
        "__call__": lambda self, data: 1 / 0,
        "__module__": "opendp.mod",
    }
    return type("Measurement", (), fields)()


class Curve:
    """A privacy profile of OpenDP: that of Gaussian noise."""

    def __init__(self, noise):
        self.guarantee = gaussian(noise_multiplier=noise)

    def epsilon(self, delta):
        return self.guarantee.epsilon(delta)


CASES = [
    (theirs("MaxDivergence", lambda d: 0.5 * d), pure_dp(epsilon=0.5), pure_dp(epsilon=1.0)),
    (theirs("ZeroConcentratedDivergence", lambda d: 0.1 * d * d), zcdp(rho=0.1), zcdp(rho=0.4)),
    (
        theirs("Approximate<MaxDivergence>", lambda d: (float(d), 1e-6)),
        approximate_dp(epsilon=1.0, delta=1e-6),
        approximate_dp(epsilon=2.0, delta=1e-6),
    ),
    (
        theirs("SmoothedMaxDivergence", lambda d: Curve(4 / d)),
        gaussian(noise_multiplier=4),
        gaussian(noise_multiplier=2),
    ),
    (theirs("RenyiDivergence", lambda d: lambda order: 0.1 * d * d * order), zcdp(rho=0.1), zcdp(rho=0.4)),
]


@pytest.mark.parametrize(("thing", "one", "replaced"), CASES)
def test_the_map_at_one_row_is_read(thing, one, replaced):
    for delta in (1e-8, 1e-6, 1e-3):
        for found, same in ((as_guarantee(thing), one), (as_guarantee(thing, adjacency="replace_one"), replaced)):
            assert same.epsilon(delta) <= found.epsilon(delta) <= same.epsilon(delta) * 1.002
    assert as_guarantee(thing, adjacency="replace_one").terms["d_in"] == 2
    assert "caller's word" in as_guarantee(thing).theorem


def test_a_metric_of_replaced_rows_has_its_adjacency():
    changed = theirs("MaxDivergence", lambda d: 0.5 * d, "ChangeOneDistance")
    assert as_guarantee(changed).adjacency == "replace_one"
    assert as_guarantee(changed).epsilon(0) == 0.5
    with pytest.raises(AdjacencyError, match="ChangeOneDistance"):
        as_guarantee(changed, adjacency="add_or_remove_one")


def test_a_measurement_is_not_called_as_a_function_of_the_noise():
    measurement = theirs("MaxDivergence", lambda d: 0.5 * d)
    found = promise_or_function("base", measurement, "from noise to one")
    assert isinstance(found, Guarantee)


@pytest.mark.parametrize(
    ("thing", "match"),
    [
        (theirs("MaxDivergence", lambda d: d, "AbsoluteDistance<i32>"), "does not count rows"),
        (theirs("Approximate<ZeroConcentratedDivergence>", lambda d: (0.1, 1e-6)), "is not read"),
        (theirs("MaxDivergence", lambda d: float("inf")), "epsilon"),
        (theirs("SmoothedMaxDivergence", lambda d: SimpleNamespace(epsilon=lambda delta: float("inf"))), "no finite"),
    ],
)
def test_others_are_refused(thing, match):
    with pytest.raises(ArgumentError, match=match):
        as_guarantee(thing)


@pytest.mark.full
def test_the_library_itself():
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib", "honest-but-curious")
    rows = dp.vector_domain(dp.atom_domain(bounds=(0, 10))), dp.symmetric_distance()
    total = rows >> dp.t.then_sum()
    noisy = total >> dp.m.then_gaussian(scale=20.0)
    smooth = dp.c.make_zCDP_to_approxDP(noisy)
    fixed = dp.c.make_fix_delta(smooth, 1e-6)
    assert as_guarantee(total >> dp.m.then_laplace(scale=20.0)).epsilon(0) == 0.5
    assert as_guarantee(noisy).renyi(2.0) == pytest.approx(0.25)
    assert smooth.map(1).epsilon(1e-5) <= as_guarantee(smooth).epsilon(1e-5) <= smooth.map(1).epsilon(1e-5) * 1.002
    assert as_guarantee(fixed).epsilon(1e-6) == fixed.map(1)[0]
    with pytest.raises(ArgumentError, match="does not count rows"):
        as_guarantee(dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0))
