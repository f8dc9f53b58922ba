"""An accountant in Opacus's engine: never below the truth, never above PRV, and what it refuses."""
# ruff: noqa: E402

import warnings

import pytest

opacus = pytest.importorskip("opacus")

from opacus.accountants import PRVAccountant, create_accountant, register_accountant
from opacus.accountants.utils import get_noise_multiplier
from opacus.utils.batch_memory_manager import BatchMemoryManager

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus import EngineAccountant
from dpselect.privacy import compose, dp_sgd
from tests.integrations.opacus.test_engine import ADAPTIVE
from tests.integrations.opacus.training_cases import descent, rows, torch

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")

HISTORIES = [
    [(1.0, 0.01, 1000)],
    [(4.0, 0.2, 60)],
    [(0.7, 0.05, 200)],
    [(8.0, 0.5, 500)],
    [(2.0, 0.1, 1)],
    [(1.0, 1.0, 3)],
    [(1.5, 0.02, 100), (1.2, 0.02, 100), (1.0, 0.04, 50)],
    [(1.0, 0.001, 20000)],
]


@pytest.fixture
def engine():
    register_accountant("dpselect", EngineAccountant, force=True)
    return opacus.PrivacyEngine(accountant="dpselect")


def counted(accountant, history):
    accountant.history = list(history)
    return accountant


@pytest.mark.cases(3)
@pytest.mark.parametrize("history", HISTORIES)
def test_between_the_truth_and_opacus_prv(history):
    """At the recorded rates the truth is at least the lower end of the exact bracket."""
    for delta in (1e-4, 1e-5):
        ours = counted(EngineAccountant(), history).get_epsilon(delta)
        parts = [dp_sgd(noise_multiplier=noise, sampling_rate=rate, steps=steps) for noise, rate, steps in history]
        assert compose(*parts).epsilon_bracket(delta)[0] <= ours
        assert ours <= counted(PRVAccountant(), history).get_epsilon(delta)


def test_steps_are_counted_and_merged():
    accountant = EngineAccountant()
    assert (len(accountant), accountant.get_epsilon(1e-5)) == (0, 0.0)
    for noise in (1, 1.0, 2.0, 1.0):
        accountant.step(noise_multiplier=noise, sample_rate=0.1)
    assert accountant.history == [(1.0, 0.1, 2), (2.0, 0.1, 1), (1.0, 0.1, 1)]
    assert len(accountant) == 4
    assert accountant.get_epsilon(1e-5, eps_error=0.1) == accountant.guarantee().epsilon(1e-5)


def test_a_saved_state_is_taken_up():
    accountant = counted(EngineAccountant(), [(1.0, 0.1, 7)])
    state = accountant.state_dict()
    assert state["mechanism"] == "dpselect"
    other = EngineAccountant()
    other.load_state_dict(state)
    assert other.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    other.step(noise_multiplier=1.0, sample_rate=0.1)
    assert (len(other), len(accountant)) == (8, 7)


@pytest.mark.parametrize(
    "history", [[(0.0, 0.1, 1)], [(1.0, 1.5, 1)], [(1.0, 0.1, 0)], [(1.0, 0.1, 2.5)], [(1.0, 0.1)], [("1", 0.1, 1)], 7]
)
def test_a_state_of_other_numbers_is_refused_and_changes_nothing(history):
    accountant = counted(EngineAccountant(), [(1.0, 0.1, 7)])
    with pytest.raises(ArgumentError, match="state_dict"):
        accountant.load_state_dict({"history": history, "mechanism": "dpselect"})
    assert accountant.history == [(1.0, 0.1, 7)]
    with pytest.raises(ValueError, match="prv"):
        accountant.load_state_dict({"history": [], "mechanism": "prv"})


@pytest.mark.parametrize("step", [{"noise_multiplier": 0.0}, {"sample_rate": 0.0}, {"sample_rate": 1.1}])
def test_a_step_out_of_range_is_refused(step):
    with pytest.raises(ArgumentError, match=next(iter(step))):
        EngineAccountant().step(**{"noise_multiplier": 1.0, "sample_rate": 0.1, **step})


def private(engine, **options):
    module = torch.nn.Linear(4, 3)
    data = torch.utils.data.TensorDataset(*rows(100))
    settings = {"noise_multiplier": 1.0, "max_grad_norm": 1.0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return engine.make_private(
            module=module,
            optimizer=descent(module.parameters()),
            data_loader=torch.utils.data.DataLoader(data, batch_size=20),
            **{**settings, **options},
        )


def backward(module, batch):
    inputs, labels = batch
    torch.nn.functional.cross_entropy(module(inputs), labels).backward()


def test_an_engine_counts_its_steps(engine):
    module, optimizer, loader = private(engine)
    for batch in loader:
        optimizer.zero_grad()
        backward(module, batch)
        optimizer.step()
    assert engine.accountant.history == [(1.0, 0.2, 5)]
    exact = dp_sgd(noise_multiplier=1.0, sampling_rate=0.2, steps=5).epsilon(1e-5)
    assert exact <= engine.get_epsilon(1e-5) <= 1.0001 * exact


def test_batches_that_are_cut_up_are_one_step(engine):
    module, optimizer, loader = private(engine)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=7, optimizer=optimizer) as cut:
        for batch in cut:
            optimizer.zero_grad()
            backward(module, batch)
            optimizer.step()
    assert engine.accountant.history == [(1.0, 0.2, 5)]


def test_accumulated_batches_are_refused(engine):
    """Opacus itself refuses them for Poisson samples."""
    module, optimizer, loader = private(engine, poisson_sampling=False)
    batches = iter(loader)
    before = module._module.weight.detach().clone()
    for _ in range(2):
        backward(module, next(batches))
    with pytest.raises(ArgumentError, match="several batches"):
        optimizer.step()
    assert torch.equal(module._module.weight, before)
    assert len(engine.accountant) == 0


def test_other_optimizers_are_refused(engine):
    module, optimizer, loader = private(engine, **ADAPTIVE)
    backward(module, next(iter(loader)))
    with pytest.raises(ArgumentError, match="AdaClip"):
        optimizer.step()
    hook = engine.accountant.get_optimizer_hook_fn(0.1)
    with pytest.raises(TypeError, match="make_private"):
        hook(torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1))


@pytest.mark.full
def test_opacus_finds_the_noise_with_it(engine):
    noise = get_noise_multiplier(
        target_epsilon=2.0, target_delta=1e-5, sample_rate=0.05, steps=200, accountant="dpselect"
    )
    assert dp_sgd(noise_multiplier=noise, sampling_rate=0.05, steps=200).epsilon(1e-5) <= 2.0
    by_prv = get_noise_multiplier(target_epsilon=2.0, target_delta=1e-5, sample_rate=0.05, steps=200, accountant="prv")
    assert noise <= by_prv
    assert isinstance(create_accountant("dpselect"), EngineAccountant)
