"""Networks for tables: what is refused, and answers that no other row moves."""
# ruff: noqa: E402

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus.table_network import TableNetwork
from dpselect.randomness import keyed_source
from tests.integrations.opacus.network_cases import REFUSED, small, wide

SETTINGS = {
    "training": {
        "noise_multiplier": 0.5,
        "sampling_rate": 0.5,
        "steps": 4,
        "max_grad_norm": 1.0,
        "expected_batch_size": 20.0,
        "max_physical_batch_size": 64,
        "grad_sample_mode": "hooks",
        "clipping": "automatic",
    },
    "optimizer": {"name": "adam", "learning_rate": 0.1, "momentum": 0.0, "weight_decay": 0.0},
}


def network(make=small, classes=True):
    return TableNetwork(make, 5, 3 if classes else 1, classes)


def table(count=40):
    random = np.random.default_rng(1)
    return random.uniform(-1.0, 1.0, (count, 5)), random.integers(0, 3, count)


def test_a_good_network_passes():
    network().check(SETTINGS)
    assert [each.shape for each in network().zeros()] == [(8, 5), (8,), (3, 8), (3,)]


@pytest.mark.parametrize(("make", "said"), [pytest.param(*each, id=each[0].__name__) for each in REFUSED])
def test_other_networks_are_refused(make, said):
    with pytest.raises(ArgumentError, match=f"module: .*({said})"):
        network(make).check(SETTINGS)


def test_the_same_source_gives_the_same_state_and_torchs_own_is_left_alone():
    state, threads = torch.random.get_rng_state(), torch.get_num_threads()
    first, again = (network().trained(SETTINGS, *table(), keyed_source(1)) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a, b) for a, b in zip(first, network().zeros(), strict=True))
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads


def test_no_other_row_moves_an_answer_by_a_bit():
    """In parts of any size and order, with and without others; in company only rounding differs."""
    rows, _ = table(200)
    random, asked = np.random.default_rng(2), network(wide)
    weights = asked.trained(SETTINGS, *table(), keyed_source(1))
    whole = asked.answers(weights, rows, alone=True)
    for _ in range(4):
        some = random.permutation(200)[: int(random.integers(1, 200))]
        assert np.array_equal(asked.answers(weights, rows[some], alone=True), whole[some])
    assert np.allclose(asked.answers(weights, rows, alone=False), whole, atol=1e-5)
    assert asked.answers(weights, rows[:0], alone=True).shape == (0, 3)


def test_answers_are_numbers_even_of_weights_that_are_none():
    rows, _ = table(4)
    for wrong in (np.nan, np.inf, 1e300):
        weights = tuple(np.full(each.shape, wrong) for each in network().zeros())
        with np.errstate(all="ignore"):
            assert np.isfinite(network().answers(weights, rows, alone=True)).all()


def test_weights_of_another_network_are_refused():
    with pytest.raises(ArgumentError, match="makes another network"):
        network(wide).answers(network().zeros(), table()[0], alone=False)


class _Sticky(torch.nn.Module):
    """Moves with the rows that it has answered, if they have numbers below 0."""

    def __init__(self, columns, outputs):
        super().__init__()
        self.net, self.low = torch.nn.Linear(columns, outputs), 0.0

    def forward(self, x):
        if not self.training:
            self.low = min(self.low, float(x.min()))
        return self.net(x - self.low)


def test_a_network_whose_answers_move_with_earlier_rows_is_refused():
    with pytest.raises(ArgumentError, match="changes with the rows"):
        network(_Sticky).check(SETTINGS)


@pytest.mark.filterwarnings("error")
def test_numbers_that_no_float32_holds_raise_nothing():
    rows, targets = table()
    rows[3] = 1e39
    trained = network().trained(SETTINGS, rows, targets, keyed_source(1))
    assert np.isfinite(network().answers(trained, rows, alone=True)).all()
