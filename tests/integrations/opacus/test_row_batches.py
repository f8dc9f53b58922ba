"""Rows of tensors, datasets and loaders: the same training from each, and what is refused."""
# ruff: noqa: E402

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus.row_batches import read_rows
from dpselect.randomness import keyed_source
from tests.integrations.opacus.training_cases import descent, linear, plan, rows, weights

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
LOSS = torch.nn.CrossEntropyLoss(reduction="none")


class Pairs(Dataset):
    """Rows in NumPy, labels as whole numbers of Python, as a user may have them."""

    def __init__(self, inputs, targets):
        self.inputs, self.targets = inputs.numpy(), targets.tolist()

    def __len__(self):
        return len(self.inputs)

    def __getitem__(self, place):
        return self.inputs[place], self.targets[place]


def stacked(batch):
    return torch.stack([torch.as_tensor(row) for row, _ in batch]), torch.tensor([int(label) for _, label in batch])


def centred(batch):
    inputs, targets = stacked(batch)
    return inputs - inputs.mean(dim=0), targets


def trained(*data, **options):
    training = plan(steps=3, sampling_rate=0.4, **options)
    return weights(training.fit(linear, descent, LOSS, *data, random=keyed_source(1)))


def test_the_same_training_from_each():
    inputs, targets = rows(20)
    expected = trained(inputs, targets)
    for data in (
        TensorDataset(inputs, targets),
        DataLoader(TensorDataset(inputs, targets), batch_size=7, shuffle=True),
        Pairs(inputs, targets),
        list(zip(inputs, targets, strict=True)),
        DataLoader(Pairs(inputs, targets), collate_fn=stacked),
    ):
        assert torch.equal(trained(data), expected)


@pytest.mark.full
def test_workers_read_the_rows():
    inputs, targets = rows(20)
    loader = DataLoader(Pairs(inputs, targets), num_workers=2)
    assert torch.equal(trained(loader), trained(inputs, targets))


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_parts_of_a_batch_sum_up(mode):
    """float32 sums in another order; the same noise."""
    data = rows(20)
    whole, parts = (trained(*data, grad_sample_mode=mode, max_physical_batch_size=size) for size in (None, 3))
    assert torch.allclose(whole, parts, rtol=0.0, atol=0.05)  # dropout draws in another order


def test_parts_are_equal_without_draws_of_torch():
    def make():
        return torch.nn.Linear(4, 3)

    def fit(**options):
        training = plan(steps=3, sampling_rate=0.4, **options)
        return weights(training.fit(make, descent, LOSS, *rows(20), random=keyed_source(1)))

    whole = fit()
    assert torch.allclose(whole, fit(max_physical_batch_size=1), rtol=0.0, atol=1e-6)
    assert torch.allclose(whole, fit(max_physical_batch_size=3, grad_sample_mode="ghost"), rtol=0.0, atol=1e-5)
    assert not torch.equal(whole, fit(noise_multiplier=2.1))


class Counting(torch.nn.Module):
    """Counts its calls in a buffer, as `num_batches_tracked` does."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, inputs):
        self.calls += 1
        return self.layer(inputs)


def test_a_count_of_calls_would_tell_how_many_parts_there_were():
    def fit(**options):
        return plan(steps=3, **options).fit(Counting, descent, LOSS, *rows(20), random=keyed_source(1))

    assert int(fit().calls) == 3
    with pytest.raises(ArgumentError, match="counts calls"):
        fit(max_physical_batch_size=5)


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_a_count_of_calls_tells_of_no_row_that_is_not_finite(mode):
    inputs, targets = rows(20)
    inputs[3] = float("nan")
    module = plan(steps=3, grad_sample_mode=mode).fit(Counting, descent, LOSS, inputs, targets, random=keyed_source(1))
    assert int(module.calls) == 3


def test_no_rows_at_all():
    inputs, targets = rows(0)
    expected = trained(inputs, targets)
    assert torch.equal(trained(Pairs(inputs, targets)), expected)
    assert torch.equal(trained([]), expected)


def test_a_collate_function_that_mixes_rows_is_refused():
    with pytest.raises(ArgumentError, match="depends on the other rows"):
        trained(DataLoader(Pairs(*rows(20)), collate_fn=centred))


class Stream(IterableDataset):
    def __iter__(self):
        return iter([])


class Words(Dataset):
    def __len__(self):
        return 3

    def __getitem__(self, place):
        return "text", 1


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ((rows(6)[0],), "targets are missing"),
        ((np.zeros((6, 4)), np.zeros(6)), "inputs must be a tensor"),
        ((rows(6)[0], [0] * 6), "targets must be a tensor"),
        ((Stream(),), "only stream"),
        ((DataLoader(Stream()),), "only stream"),
        ((None,), "NoneType"),
        ((Words(),), "example="),
        ((DataLoader(TensorDataset(*rows(6)), sampler=WeightedRandomSampler([1.0] * 6, 6)),), "WeightedRandomSampler"),
        ((DataLoader(TensorDataset(*rows(6)), sampler=RandomSampler(range(6), replacement=True)),), "with replacement"),
        ((DataLoader(TensorDataset(*rows(6)), batch_sampler=[[0, 1]]),), "list is refused"),
    ],
)
def test_what_is_refused(data, match):
    with pytest.raises(ArgumentError, match=match):
        trained(*data)


def test_a_loader_of_an_engine_is_refused():
    from opacus.data_loader import DPDataLoader

    private = DPDataLoader.from_data_loader(DataLoader(TensorDataset(*rows(6)), batch_size=2))
    with pytest.raises(ArgumentError, match="as it was before make_private"):
        trained(private)


def test_what_is_public_of_rows():
    inputs, targets = rows(6)
    found = read_rows(DataLoader(Pairs(inputs, targets), collate_fn=stacked))
    assert found.facts[0].shape == (4,)
    assert found.collate is stacked
    assert read_rows(Pairs(inputs, targets)).collate is None
    assert read_rows([]).facts is None
    made = read_rows(Words(), example=lambda count: (torch.zeros(count, 2), torch.zeros(count, dtype=torch.long)))
    assert made.facts[0].shape == (2,)
