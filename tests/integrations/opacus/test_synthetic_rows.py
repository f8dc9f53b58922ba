"""Synthetic rows for the probe: by shape, type and device alone; limits for indices; harsh rows; rows of a user."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus.synthetic_rows import InputFacts, SyntheticRows, benign, facts_of, harsh
from tests.integrations.opacus import row_mixing_zoo as zoo
from tests.integrations.opacus.probe_cases import fit

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
CPU = torch.device("cpu")


def facts(*shape, dtype=torch.float32):
    return InputFacts(shape, dtype, CPU)


def test_facts_of_a_tensor():
    assert facts_of(torch.zeros(7, 3, 2, dtype=torch.float64)) == facts(3, 2, dtype=torch.float64)
    kinds = (torch.float16, torch.complex64, torch.int64, torch.uint8, torch.bool)
    assert [facts(dtype=kind).floats for kind in kinds] == [True, True, False, False, False]


def test_numbers_are_in_the_unit_interval_and_labels_below_one_limit_after_another():
    drawn = list(benign(torch.nn.Linear(3, 2), facts(3), facts(dtype=torch.int64), 200, doubled=True))
    assert len(drawn) == 3
    for (inputs, targets), limit in zip(drawn, (3, 2, 1), strict=True):
        assert (inputs.shape, inputs.dtype, targets.shape, targets.dtype) == (
            (200, 3),
            torch.float64,
            (200,),
            torch.int64,
        )
        assert 0.0 <= inputs.min() < inputs.max() < 1.0
        assert set(targets.tolist()) == set(range(limit))
    ((inputs, targets),) = benign(torch.nn.Linear(3, 2), facts(3), facts(), 5, doubled=False)
    assert inputs.dtype is targets.dtype is torch.float32


def test_indices_are_below_the_smallest_embedding():
    words = torch.nn.Sequential(torch.nn.Embedding(40, 2), torch.nn.EmbeddingBag(11, 2))

    def largest(module, dtype):
        return [int(inputs.max()) for inputs, _ in benign(module, facts(50, dtype=dtype), facts(), 200, doubled=False)]

    assert largest(words, torch.int64) == [10, 1]
    assert largest(torch.nn.Linear(2, 2), torch.int64) == [4, 1]
    assert largest(torch.nn.Linear(2, 2), torch.uint8) == [255, 1]
    assert largest(words, torch.bool) == [1]


def test_harsh_rows_have_outliers_of_either_sign_and_padding():
    made = harsh(SyntheticRows(torch.rand(14, 50, dtype=torch.float64), torch.arange(14)))
    inputs, targets = made.inputs, made.targets
    assert targets.tolist() == list(range(14))
    sizes = inputs[::2].abs().mean(dim=1)
    expected = torch.tensor([0.01, 100.0, 10.0, 3.0, 1.0, 0.5, 1e-3], dtype=torch.float64) * 0.8
    assert ((sizes / expected).log().abs() < 0.5).all()
    assert (inputs[::2] < 0).any(dim=1).all()
    assert [int((row != 0).sum()) for row in inputs[1::2]] == [50 * k // 14 for k in range(1, 14, 2)]
    whole = harsh(SyntheticRows(torch.arange(6).reshape(3, 2) + 1, None))
    assert whole.inputs.tolist() == [[5, 6], [3, 0], [1, 2]]


class Unfit(zoo.Body):
    """Takes no fractions; a user must make up rows."""

    def forward(self, inputs):
        if not bool((inputs == inputs.round()).all()) or bool((inputs < 7).any()):
            raise ValueError("integers from 7")
        return super().forward(inputs / 100.0)


def test_a_user_makes_up_rows():
    entry = Unfit, zoo.EACH, torch.arange(80.0).reshape(20, 4) + 7.0, torch.arange(20) % 3
    with pytest.raises(ArgumentError, match="example="):
        fit(entry)
    fit(entry, example=lambda count: (torch.randint(7, 90, (count, 4)).float(), torch.arange(count) % 3))
    with pytest.raises(ArgumentError, match="as many rows"):
        fit(entry, example=lambda count: (torch.full((2, 4), 7.0), torch.zeros(2, dtype=torch.long)))
    with pytest.raises(ArgumentError, match="equal for all"):
        fit(entry, example=lambda count: (torch.full((count, 4), 9.0), torch.arange(count) % 3))
