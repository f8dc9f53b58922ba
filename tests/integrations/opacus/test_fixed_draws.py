"""Torch's draws replaced by one quantile: each function that is listed gives it, and others draw as always."""
# ruff: noqa: E402

import math

import pytest

torch = pytest.importorskip("torch")

from dpselect.integrations.opacus.fixed_draws import FixedDraws

LEVEL = 0.3
NORMAL = math.log(0.3 / 0.7)
HALVES = torch.full((2, 3), 0.5)


@pytest.mark.parametrize(
    ("draw", "expected"),
    [
        (lambda: torch.rand(2, 3), LEVEL),
        (lambda: torch.rand_like(HALVES), LEVEL),
        (lambda: HALVES.clone().uniform_(2.0, 4.0), 2.0 + 2.0 * LEVEL),
        (lambda: HALVES.clone().uniform_(), LEVEL),
        (lambda: torch.randn(2, 3), NORMAL),
        (lambda: torch.randn_like(HALVES), NORMAL),
        (lambda: HALVES.clone().normal_(1.0, 2.0), 1.0 + 2.0 * NORMAL),
        (lambda: HALVES.clone().exponential_(2.0), -math.log(0.7) / 2.0),
        (lambda: torch.randint(3, 9, (2, 3)), 3),
        (lambda: torch.randint_like(HALVES, 9), 0),
        (lambda: torch.bernoulli(torch.full((2, 3), 0.31)), 1),
        (lambda: torch.bernoulli(torch.full((2, 3), 0.29)), 0),
        (lambda: HALVES.clone().bernoulli_(0.31), 1),
        (lambda: torch.nn.functional.dropout(HALVES, 0.2), 0.5 / 0.8),
        (lambda: torch.nn.functional.dropout(HALVES, 0.8), 0.0),
    ],
)
def test_every_element_is_the_quantile(draw, expected):
    with FixedDraws(LEVEL) as draws:
        found = draw()
    assert draws.drew
    torch.testing.assert_close(found, torch.full((2, 3), expected, dtype=found.dtype))


def test_indices_from_the_middle_on_are_the_last_and_a_permutation_is_the_reversed_order():
    with FixedDraws(0.5):
        assert torch.randint(3, 9, (4,)).tolist() == [8] * 4
        assert torch.randperm(4).tolist() == [3, 2, 1, 0]


def test_a_normal_quantile_far_out_is_bounded():
    for level, expected in ((1e-9, -3.0), (1 - 1e-9, 3.0)):
        with FixedDraws(level):
            assert torch.randn(2).tolist() == [expected] * 2


def test_what_draws_nothing_is_left_alone_and_what_is_not_listed_is_drawn():
    with FixedDraws(LEVEL) as draws:
        assert (HALVES + 1.0).tolist() == [[1.5] * 3] * 2
        assert not draws.drew
        assert len(set(torch.empty(20).cauchy_().tolist())) > 10
    assert draws.drew


@pytest.mark.parametrize(
    "draw",
    [
        lambda: torch.rand(3, 2),
        lambda: torch.empty(3, 2).uniform_(),
        lambda: torch.dropout(torch.ones(3, 2), 0.5, True),
        lambda: torch.bernoulli(torch.full((3, 2), 0.5)),
        lambda: torch.randn(3, 2),
        lambda: torch.randint(0, 9, (3, 2)),
    ],
)
def test_the_first_row_may_draw_otherwise_than_the_rest(draw):
    with FixedDraws(0.1, 0.9):
        first, *rest = draw().tolist()
        single = torch.rand(()).item()
        order = torch.randperm(3).tolist()
    with FixedDraws(0.1):
        same = draw().tolist()
    assert first == same[0]
    assert all(each != first for each in rest)
    assert single == pytest.approx(0.1)
    assert order == [2, 1, 0]
