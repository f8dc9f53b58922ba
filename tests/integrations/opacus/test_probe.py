"""Models and losses in which a row reaches other rows are refused, on synthetic rows; sound ones never are."""
# ruff: noqa: E402

import copy
import random
import warnings
from functools import partial

import numpy as np
import pytest

opacus = pytest.importorskip("opacus")

from opacus.grad_sample import GradSampleModule
from opacus.optimizers import DPOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus import engine_guarantee
from dpselect.integrations.opacus.probe import refuse_mixed_rows
from dpselect.integrations.opacus.synthetic_rows import facts_of
from dpselect.integrations.sklearn import PrivateSearchCV
from dpselect.ledger import Ledger
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from tests.integrations.opacus import row_mixing_zoo as zoo
from tests.integrations.opacus.probe_cases import TRAINING, fit, torch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
FEW_MISTAKES = ("Transposed", "centred", "in_batch_negatives", "LastInputsKept", "masked_across")
FEW_SOUND = ("with_dropout", "Words", "CallsCounted")


def tiered(names, few):
    return [pytest.param(name, marks=() if name in few else pytest.mark.full) for name in names]


@pytest.mark.parametrize("name", tiered(zoo.MISTAKES, FEW_MISTAKES))
def test_a_mistake_is_refused(name):
    with pytest.raises(ArgumentError, match=r"make_module|loss"):
        fit(zoo.MISTAKES[name]())


@pytest.mark.parametrize("name", tiered(zoo.SOUND, FEW_SOUND))
def test_a_sound_model_is_trained(name):
    assert not fit(zoo.SOUND[name]()).training


# engines


def engine(make, inputs, targets, **options):
    module = make()
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(inputs, targets), batch_size=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module, optimizer, loader = opacus.PrivacyEngine(accountant="rdp").make_private(
            module=module,
            optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
            data_loader=loader,
            noise_multiplier=1.0,
            max_grad_norm=1.0,
            **options,
        )
    return module, optimizer, loader


def guaranteed(engine, **options):
    module, optimizer, loader = engine
    return engine_guarantee(optimizer, loader, steps=3, size_is_public=True, module=module, **options)


MEAN = torch.nn.CrossEntropyLoss()
TOTAL = torch.nn.CrossEntropyLoss(reduction="sum")


@pytest.mark.parametrize(("loss", "reduction"), [(MEAN, "mean"), (TOTAL, "sum"), (None, "mean")])
def test_an_engine_with_a_sound_module(loss, reduction):
    made = engine(zoo.Body, *zoo.vectors(), loss_reduction=reduction)
    before = {name: value.clone() for name, value in made[0].state_dict().items()}
    unprobed = engine_guarantee(*made[1:], steps=3, size_is_public=True)
    assert guaranteed(made, loss=loss).epsilon(1e-5) == unprobed.epsilon(1e-5)
    assert all(torch.equal(value, before[name]) for name, value in made[0].state_dict().items())
    for inputs, targets in made[2]:  # its hooks still work
        made[1].zero_grad()
        (loss or MEAN)(made[0](inputs), targets).backward()
        made[1].step()
    assert guaranteed(made, loss=loss).epsilon(1e-5) == unprobed.epsilon(1e-5)  # after training too


@pytest.mark.parametrize(
    ("loss", "reduction"), [(MEAN, "sum"), (TOTAL, "mean"), (lambda o, t: TOTAL(o, t) / 10, "mean")]
)
def test_an_engine_whose_loss_is_reduced_otherwise(loss, reduction):
    made = engine(zoo.Body, *zoo.vectors(), loss_reduction=reduction)
    with pytest.raises(ArgumentError, match="loss"):
        guaranteed(made, loss=loss)


def test_an_engine_with_a_module_that_mixes_rows():
    made = engine(zoo.Transposed, *zoo.sequences(50, 4))
    for loss in (None, MEAN):
        with pytest.raises(ArgumentError, match="first axis"):
            guaranteed(made, loss=loss)


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in zoo.MISTAKES if name not in zoo.OTHERWISE_IN_ENGINES])
def test_an_engine_with_a_mistake(name):
    make, loss, inputs, targets = zoo.MISTAKES[name]()
    made = engine(make, inputs, targets)
    with pytest.raises(ArgumentError, match=r"make_module|loss"):
        guaranteed(made, loss=lambda outputs, aims: loss(outputs, aims).mean())


@pytest.mark.full
@pytest.mark.parametrize("name", list(zoo.SOUND))
def test_an_engine_with_a_sound_model(name):
    make, loss, inputs, targets = zoo.SOUND[name]()
    made = engine(make, inputs, targets)
    assert guaranteed(made, loss=lambda outputs, aims: loss(outputs, aims).mean()).epsilon(1e-5) > 0.0
    assert guaranteed(made).epsilon(1e-5) > 0.0


# what the probe leaves, and what it is told


class Drawing(zoo.Body):
    """Draws from every global state."""

    def mix(self, hidden):
        return hidden + 0.0 * (random.random() + np.random.uniform()) + 0.0 * torch.rand(1)  # noqa: NPY002


def test_the_probe_leaves_everything_as_it_was():
    module = torch.nn.Sequential(Drawing(), torch.nn.Dropout(0.2)).eval()
    loss = torch.nn.CrossEntropyLoss(reduction="none")
    before = copy.deepcopy(module)
    facts = tuple(facts_of(each) for each in zoo.vectors())
    states = random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state()  # noqa: NPY002
    assert refuse_mixed_rows(module, loss, facts)[0] == frozenset()
    assert states[0] == random.getstate()
    assert states[1] == np.random.get_state()[1].tolist()  # noqa: NPY002
    assert torch.equal(states[2], torch.get_rng_state())
    assert torch.get_default_dtype() is torch.float32
    assert not module.training
    for one, other in zip(module.parameters(), before.parameters(), strict=True):
        assert torch.equal(one, other)
        assert one.dtype is torch.float32
        assert one.grad is None
    assert all(not part._forward_hooks for part in module.modules())


class Watched(zoo.Body):
    private = False

    def forward(self, inputs):
        if not torch.is_grad_enabled() or (Watched.private and bool((inputs >= 1000.0).any())):
            raise AssertionError("a row of the data")
        return super().forward(inputs)


def test_the_probe_sees_no_row_of_the_data(monkeypatch):
    """The data are all above 1000, and not one of the probe's rows is."""
    monkeypatch.setattr(Watched, "private", True)
    inputs, targets = torch.full((20, 4), 1e5), torch.arange(20) % 3
    refuse_mixed_rows(Watched(), zoo.EACH, (facts_of(inputs), facts_of(targets)))


def test_an_empty_batch_does_not_fail():
    """Layers that fail on no rows told by an exception that a batch was empty."""
    for name in ("instance_norm", "transposed_convolution", "Attention"):
        make, loss, inputs, targets = zoo.SOUND[name]()
        fit((make, loss, inputs[:0], targets[:0]))


@pytest.mark.full
def test_how_far_a_row_moves_the_example_of_a_transposed_model():
    """With clipping norm C = 1 the sum of clipped gradients moves by 100, for which no noise was priced."""

    def total(inputs):
        module = GradSampleModule(zoo.Transposed(), loss_reduction="sum")
        for parameter in module.parameters():
            torch.nn.init.zeros_(parameter)
        optimizer = DPOptimizer(
            torch.optim.SGD(module.parameters(), lr=1.0),
            noise_multiplier=0.0,
            max_grad_norm=1.0,
            expected_batch_size=1,
            loss_reduction="sum",
        )
        zoo.EACH(module(inputs), torch.zeros(len(inputs), dtype=torch.long)).sum().backward()
        optimizer.pre_step()
        return torch.cat([p.grad.flatten() for p in module.parameters()])

    one, other = torch.zeros(2, 50, 4), torch.zeros(2, 50, 4)
    one[1], other[1] = 1e4, -1e4
    moved = float((total(one) - total(other)).norm())
    assert moved > 2.0  # what replacing one row may move
    assert moved == pytest.approx(100.0, rel=0.01)


# in a search, whose runs are charged before any of them fits


class Network(ClassifierMixin, BaseEstimator):
    """Someone's estimator, trained by `PrivateTraining`; `mixed`: each row less the mean of its batch."""

    def __init__(self, mixed=False, random=None):
        self.mixed, self.random = mixed, random

    def guarantee(self):
        return TRAINING.guarantee

    def fit(self, X, y):
        self.classes_ = np.array([0, 1])
        make = (lambda: Centred(3, 2)) if self.mixed else (lambda: torch.nn.Linear(3, 2))
        rows, labels = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
        cross_entropy = partial(torch.nn.functional.cross_entropy, reduction="none")
        sgd = lambda parameters: torch.optim.SGD(parameters, lr=0.1)  # noqa: E731
        self.weights_ = TRAINING.fit(make, sgd, cross_entropy, rows, labels, random=self.random).weight.detach().numpy()
        return self

    def predict(self, X):
        return np.argmax(np.asarray(X, dtype=np.float64) @ self.weights_.T, axis=1)


class Centred(torch.nn.Linear):
    def forward(self, rows):
        return super().forward(rows - rows.mean(dim=0))


@pytest.mark.full
def test_a_search_finds_a_model_that_mixes_rows_before_it_is_charged(tmp_path):
    """By default: the estimator is fitted to synthetic rows, so that its own probe runs."""
    X = keyed_source("rows").uniform((40, 3))
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        budget = ledger.create_budget("b", epsilon=99, delta=1e-5)
        search = PrivateSearchCV(
            Network(), {}, repetitions=Fixed(count=1), delta=1e-6, score_epsilon=1.0, classes=[0, 1], ledger=budget
        )
        with pytest.raises(ArgumentError, match="make_module") as caught:
            search.set_params(estimator__mixed=True).fit(X, (X[:, 0] > 0.5).astype(int))
        assert any("nothing was drawn or charged" in note for note in caught.value.__notes__)
        assert budget.spent().epsilon == 0
        assert search.set_params(estimator__mixed=False).fit(X, (X[:, 0] > 0.5).astype(int)).best_estimator_ is not None
        assert budget.spent().epsilon > 0
