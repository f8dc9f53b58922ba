"""Checkpoints: a training that stops anywhere goes on to the same bytes, and a file of another training is refused."""
# ruff: noqa: E402

import contextlib
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.opacus import checkpoints
from dpselect.randomness import keyed_source, system_source
from tests.integrations.opacus.training_cases import linear, plan, rows, weights

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
LOSS = torch.nn.CrossEntropyLoss(reduction="none")
STEPS = 6


@pytest.fixture(autouse=True)
def _after_each_step(monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)


class StoppedError(Exception):
    """Stands for a kill."""


def optimizer_of(stop, seen):
    """Momentum and a schedule, so that there is a state; stops in the step of this number."""

    class Stopping(torch.optim.Adam):
        def step(self, closure=None):
            seen.append([p.grad.clone() for group in self.param_groups for p in group["params"]])
            if len(seen) == stop:
                raise StoppedError
            return super().step(closure)

    def make(parameters):
        optimizer = Stopping(parameters, lr=0.1)
        return optimizer, torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)

    return make


def fit(folder, stop=None, key=1, **changes):
    seen = []
    training = plan(steps=STEPS, sampling_rate=0.4, **changes)
    model = training.fit(
        linear, optimizer_of(stop, seen), LOSS, *rows(20), random=keyed_source(key), checkpoints=folder
    )
    return weights(model), seen


@pytest.mark.parametrize("stop", range(1, STEPS + 1))
def test_a_stopped_training_goes_on_to_the_same_bytes(tmp_path, stop):
    whole, gradients = fit(None)
    with pytest.raises(StoppedError):
        fit(tmp_path, stop=stop)
    again, rest = fit(tmp_path)
    assert torch.equal(again, whole)
    assert len(rest) == STEPS - (stop - 1)
    for one, other in zip(rest, gradients[stop - 1 :], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    assert list(tmp_path.iterdir()) == []


def test_a_kill_while_the_file_is_erased_damages_nothing(tmp_path, monkeypatch):
    """A file is overwritten before it is unlinked."""
    whole, real = fit(None)[0], checkpoints.erase

    def killed(path):
        if path.exists() and path.stat().st_size > 100:
            path.write_bytes(b"noise")
            raise StoppedError
        real(path)

    monkeypatch.setattr(checkpoints, "erase", killed)
    with pytest.raises(StoppedError):
        fit(tmp_path)
    monkeypatch.setattr(checkpoints, "erase", real)
    assert torch.equal(fit(tmp_path)[0], whole)
    assert list(tmp_path.iterdir()) == []


def test_trainings_share_a_folder(tmp_path):
    for key in (1, 2):
        with pytest.raises(StoppedError):
            fit(tmp_path, stop=3, key=key)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    assert all(file.stat().st_mode & 0o777 == 0o600 for file in files)
    assert torch.equal(fit(tmp_path, key=2)[0], fit(None, key=2)[0])
    assert torch.equal(fit(tmp_path, key=1)[0], fit(None, key=1)[0])


@pytest.mark.full
def test_norms_by_layer_continue(tmp_path):
    settings = {"clipping": "per_layer", "max_grad_norm": [0.1, 0.2, 0.3, 0.4]}
    with pytest.raises(StoppedError):
        fit(tmp_path, stop=3, **settings)
    with pytest.raises(ArgumentError, match="other settings"):
        fit(tmp_path, clipping="per_layer", max_grad_norm=[0.1, 0.2, 0.3, 0.5])
    assert torch.equal(fit(tmp_path, **settings)[0], fit(None, **settings)[0])


def test_what_is_refused(tmp_path):
    with pytest.raises(ArgumentError, match="folder that exists"):
        fit(tmp_path / "none")
    with pytest.raises(ArgumentError, match="continues only with the key"):
        checkpoints.Checkpoints(tmp_path, system_source())
    with pytest.raises(StoppedError):
        fit(tmp_path, stop=3)
    with pytest.raises(ArgumentError, match="other settings"):
        fit(tmp_path, noise_multiplier=3.0)
    (file,) = tmp_path.iterdir()
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(ContentError, match="changed or is damaged"):
        fit(tmp_path)
    file.write_bytes(b"")
    with pytest.raises(ContentError, match="changed or is damaged"):
        fit(tmp_path)


def test_a_checkpoint_holds_no_key(tmp_path):
    """Neither the training's key nor those of its streams: the seal's is another one."""
    with pytest.raises(StoppedError):
        fit(tmp_path, stop=3)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    source = keyed_source(1)
    for each in (source, source.spawn("noise"), source.spawn("batches"), source.spawn("checkpoint seal")):
        assert each._key not in content


OTHER = """
import sys
from dpselect.integrations.opacus.checkpoints import Checkpoints
from dpselect.randomness import keyed_source
with Checkpoints(sys.argv[1], keyed_source(1)) as kept:
    print(kept.held, flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def held_elsewhere(folder):
    command = [sys.executable, "-c", OTHER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "True\n"
        yield process
        process.stdin.close()


@pytest.mark.full
def test_two_processes_with_one_key_leave_each_other_alone(tmp_path):
    """The second neither reads nor erases what the first has, and gives the same bytes."""
    whole = fit(None)[0]
    with pytest.raises(StoppedError):
        fit(tmp_path, stop=4)
    (file,) = tmp_path.iterdir()
    content = file.read_bytes()
    with held_elsewhere(tmp_path) as process:
        with pytest.warns(UserWarning, match="another training with this key"):
            again, steps = fit(tmp_path)
        assert torch.equal(again, whole)
        assert len(steps) == STEPS
        assert file.read_bytes() == content
        fit(tmp_path, key=2)  # of another key
        process.kill()
    assert len(fit(tmp_path)[1]) == STEPS - 3
    assert list(tmp_path.iterdir()) == []


def test_two_trainings_of_one_process_leave_each_other_alone(tmp_path):
    with checkpoints.Checkpoints(tmp_path, keyed_source(1)) as first:
        with pytest.warns(UserWarning, match="another training"):
            second = checkpoints.Checkpoints(tmp_path, keyed_source(1))
        with second as two:
            assert not two.held
            two.save({}, lambda: {"done": 2})
            assert two.load({}) is None
            two.erase()
        first.save({}, lambda: {"done": 1})
        assert first.load({})["done"] == 1
    with checkpoints.Checkpoints(tmp_path, keyed_source(1)) as later:
        assert later.held
        assert later.load({})["done"] == 1


def test_it_waits_between_two_checkpoints(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 3600.0)
    with pytest.raises(StoppedError):
        fit(tmp_path, stop=4)
    assert list(tmp_path.iterdir()) == []
