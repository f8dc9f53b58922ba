"""A LightningModule is trained privately, by its own optimizer; what its loop would do otherwise is refused."""
# ruff: noqa: E402

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
pytest.importorskip("lightning")

from lightning.pytorch import LightningDataModule, LightningModule
from torch.utils.data import DataLoader, TensorDataset

from dpselect.errors import ArgumentError
from dpselect.integrations.lightning import fit_lightning
from dpselect.randomness import keyed_source
from tests.integrations.opacus.training_cases import linear, plan, rows, weights

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
LOSS = torch.nn.CrossEntropyLoss(reduction="none")


def module_with(configured=lambda optimizer: optimizer, **attributes):
    class Net(LightningModule):
        def __init__(self):
            super().__init__()
            self.layers = linear()

        def forward(self, inputs):
            return self.layers(inputs)

        def training_step(self, batch, _):
            raise AssertionError("Lightning's own step is not run")

        def configure_optimizers(self):
            return configured(torch.optim.SGD(self.parameters(), lr=1.0))

    def make():
        found = Net()
        for name, value in attributes.items():
            setattr(found, name, value)
        return found

    return make


class Rows(LightningDataModule):
    """Twenty rows, which are there after `setup` only."""

    def setup(self, stage):
        assert stage == "fit"
        self.rows = TensorDataset(*rows(20))

    def train_dataloader(self):
        return DataLoader(self.rows, batch_size=5, shuffle=True)


def trained(make, data=None, **changes):
    training = plan(**{"sampling_rate": 0.5, "steps": 3, **changes})
    return weights(fit_lightning(training, make, data or Rows(), LOSS, random=keyed_source(1)))


def test_it_is_the_training_of_the_plain_module():
    plain = plan(sampling_rate=0.5, steps=3).fit(
        linear, lambda p: torch.optim.SGD(p, lr=1.0), LOSS, *rows(20), random=keyed_source(1)
    )
    found = trained(module_with())
    assert torch.equal(found, weights(plain))
    assert torch.equal(found, trained(module_with(), TensorDataset(*rows(20))))


def test_schedules_of_steps_are_followed():
    def halving(optimizer):
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    def in_lists(optimizer):
        found = halving(optimizer)
        return [found["optimizer"]], [found["lr_scheduler"]]

    one, other = (trained(module_with(each)) for each in (halving, in_lists))
    assert torch.equal(one, other)
    assert not torch.equal(one, trained(module_with()))
    assert torch.equal(trained(module_with(lambda optimizer: [optimizer])), trained(module_with()))


def epochs(optimizer):
    return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, step_size=1)]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (module_with(epochs), "a schedule of epochs"),
        (module_with(lambda optimizer: [optimizer, optimizer]), "several optimizers"),
        (module_with(lambda optimizer: None), "must give a torch optimizer"),
        (module_with(automatic_optimization=False), "manual optimization"),
    ],
)
def test_what_the_loop_would_do_otherwise_is_refused(make, said):
    with pytest.raises(ArgumentError, match=said):
        trained(make)
    with pytest.raises(TypeError, match="must make a LightningModule"):
        trained(linear)
