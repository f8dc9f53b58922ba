"""Models and losses in which a row reaches other rows are refused, on made-up rows; sound ones never are."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus import PrivateTraining
from dpselect.randomness import keyed_source
from tests import row_mixing_zoo as zoo

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
TRAINING = PrivateTraining(noise_multiplier=1, sampling_rate=0.5, steps=3, max_grad_norm=1, expected_batch_size=10)
FEW_MISTAKES = ("Transposed", "centred", "in_batch_negatives", "LastInputsKept", "masked_across")
FEW_SOUND = ("with_dropout", "Words", "CallsCounted")


def tiered(names, few):
    return [pytest.param(name, marks=() if name in few else pytest.mark.full) for name in names]


def fit(entry, **options):
    make, loss, inputs, targets = entry
    return TRAINING.fit(
        make, lambda p: torch.optim.SGD(p, lr=0.1), loss, inputs, targets, random=keyed_source(1), **options
    )


@pytest.mark.parametrize("name", tiered(zoo.MISTAKES, FEW_MISTAKES))
def test_a_mistake_is_refused(name):
    with pytest.raises(ArgumentError, match=r"make_module|loss"):
        fit(zoo.MISTAKES[name]())


@pytest.mark.parametrize("name", tiered(zoo.SOUND, FEW_SOUND))
def test_a_sound_model_is_trained(name):
    assert not fit(zoo.SOUND[name]()).training
