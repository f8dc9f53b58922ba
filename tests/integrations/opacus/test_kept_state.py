"""What a module or a loss keeps of rows: found in buffers, attributes and lists; counts of calls are not."""
# ruff: noqa: E402

from contextlib import nullcontext

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus.kept_state import refuse_kept_rows
from dpselect.integrations.opacus.synthetic_rows import SyntheticRows
from dpselect.randomness import keyed_source
from tests.integrations.opacus.training_cases import descent, linear, plan, rows

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
LOSS = torch.nn.CrossEntropyLoss(reduction="none")


class Calls(torch.nn.Linear):
    """A layer that does something at each call."""

    def __init__(self, then):
        super().__init__(4, 3)
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.register_buffer("pair", torch.zeros(2, dtype=torch.long))
        self.seen, self.then = [], then

    def forward(self, inputs):
        self.then(self, inputs)
        return super().forward(inputs)


def kept(then, loss=None):
    return refuse_kept_rows(torch.nn.Sequential(Calls(then)), loss, SyntheticRows(*rows(8)), nullcontext())


def counts_in_a_buffer(module, inputs):
    module.count += 1


def counts_in_an_attribute(module, inputs):
    module.calls = getattr(module, "calls", 0) + 1


def test_counts_of_calls_are_named_and_taken():
    assert kept(lambda module, inputs: None) == frozenset()
    assert kept(counts_in_a_buffer) == {"0.count"}
    assert kept(lambda module, inputs: None, loss=LOSS) == frozenset()
    found = refuse_kept_rows(
        torch.nn.Sequential(Calls(counts_in_a_buffer)).eval(), LOSS, SyntheticRows(*rows(8)), nullcontext()
    )
    assert found == {"0.count"}


@pytest.mark.parametrize(
    ("then", "said"),
    [
        (lambda module, inputs: module.count.add_(len(inputs)), "0.count changes with the rows"),
        (lambda module, inputs: module.seen.append(inputs.sum().item()), "0.seen changes with the rows"),
        (lambda module, inputs: setattr(module, "last", {"a": [inputs.numpy()]}), "0.last changes with the rows"),
        (lambda module, inputs: module.seen.append(1), "calls change 0.seen"),
        (lambda module, inputs: module.pair.add_(1), "calls change 0.pair"),
        (lambda module, inputs: module.weight.data.add_(1.0), "calls change 0.weight"),
    ],
    ids=["rows counted", "list", "nested array", "same for all rows", "several numbers", "parameter"],
)
def test_anything_else_that_changes_is_refused(then, said):
    with pytest.raises(ArgumentError, match=said):
        kept(then)


class Loss:
    """Someone's loss, with an attribute of what it saw."""

    def __call__(self, outputs, targets):
        self.last = outputs.detach().sum().item()
        return LOSS(outputs, targets)


def test_a_loss_that_keeps_something_is_refused():
    with pytest.raises(ArgumentError, match=r"loss\.last changes with the rows"):
        kept(lambda module, inputs: None, loss=Loss())


class LastMean(torch.nn.Module):
    """Keeps a mean of its inputs, raw; without a parameter of its own, so that Opacus lets it pass."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))

    def forward(self, inputs):
        if len(inputs):
            self.mean = inputs.mean(dim=0)
        return inputs


def test_a_module_that_keeps_raw_inputs_in_a_buffer_does_not_leave():
    with pytest.raises(ArgumentError, match="buffer"):
        plan().fit(lambda: torch.nn.Sequential(LastMean(), linear()), descent, LOSS, *rows(20), random=keyed_source(1))
