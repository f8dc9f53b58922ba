"""Several processes that train together: the bytes of one process, and nothing if one of them ends."""
# ruff: noqa: E402

import json
import os
import signal
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus import checkpoints
from dpselect.integrations.opacus.processes import ALONE, Processes
from dpselect.integrations.opacus.row_batches import read_rows
from dpselect.randomness import keyed_source, system_source
from tests.integrations.opacus.train_together import STEPS, train
from tests.integrations.opacus.training_cases import plan, rows
from tests.root import ROOT

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")


def together(folder, count=2, **asked):
    """The exit statuses of so many processes."""
    folder.mkdir(exist_ok=True)
    (folder / "meeting").unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.integrations.opacus.train_together", str(folder)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    running = [
        subprocess.Popen([*command, str(rank), str(count), json.dumps(asked)], cwd=ROOT, env=environment)
        for rank in range(count)
    ]
    return [process.wait(timeout=120) for process in running]


def weights(folder, count=2):
    found = [torch.load(folder / f"weights-{rank}", weights_only=True) for rank in range(count)]
    assert all(torch.equal(found[0], other) for other in found)
    return found[0]


@pytest.mark.full
@pytest.mark.theorem("docs/theory/clipped-sums.md, Theorem 3", exact=True, sharp=True)
@pytest.mark.parametrize(
    ("count", "asked"),
    [
        (2, {}),
        (3, {"grad_sample_mode": "ghost", "clipping": "per_layer", "loader": True}),
        (2, {"sampling_rate": 0.02, "max_physical_batch_size": 1, "clipping": "automatic"}),
    ],
)
def test_the_bytes_are_those_of_one_process(tmp_path, count, asked):
    """With dropout, a schedule, batches of fewer parts than processes, and empty ones."""
    assert together(tmp_path, count, **asked) == [0] * count
    assert torch.equal(weights(tmp_path, count), train(**asked))


@pytest.mark.full
def test_without_a_source_they_share_a_new_key(tmp_path):
    assert together(tmp_path / "one", key=None) == together(tmp_path / "two", key=None) == [0, 0]
    assert not torch.equal(weights(tmp_path / "one"), weights(tmp_path / "two"))


@pytest.mark.full
@pytest.mark.skipif(os.name == "nt", reason="needs SIGKILL")
@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.slow), 1])
def test_a_process_that_dies_ends_the_training_which_continues_from_its_checkpoint(tmp_path, monkeypatch, rank):
    kept = tmp_path / "kept"
    kept.mkdir()
    statuses = together(tmp_path, kept=str(kept), **{str(rank): {"die": 4}})
    assert statuses[rank] == -signal.SIGKILL
    assert (tmp_path / f"raised-{1 - rank}").read_text().startswith("RuntimeError")
    assert list(tmp_path.glob("weights-*")) == []
    taken = []
    monkeypatch.setattr(checkpoints.Checkpoints, "save", lambda *given: taken.append(given))
    assert torch.equal(train(kept=kept), train())  # one process continues what two began
    assert 1 <= len(taken) <= STEPS - 2


@pytest.mark.full
@pytest.mark.parametrize(
    ("other", "what"),
    [
        ({"key": 2}, "random"),
        ({"first_rows": [1, 0]}, "rows"),
        pytest.param({"max_grad_norm": 1.0}, "settings", marks=pytest.mark.slow),
    ],
)
def test_processes_that_differ_are_refused_everywhere(tmp_path, other, what):
    together(tmp_path, **{"1": other})
    for rank in (0, 1):
        raised = (tmp_path / f"raised-{rank}").read_text()
        assert raised.startswith(f"ArgumentError: distributed: the processes differ in {what}")


def differ(monkeypatch, change, count=5):
    """The refusal of two processes, the second with what `change` makes of the first's."""

    def gather(found, mine):
        found[:] = [mine, change(list(mine))]

    monkeypatch.setattr(torch.distributed, "all_gather_object", gather)
    module = torch.nn.BatchNorm1d(4).to(torch.bfloat16)  # a buffer without axes, and numbers that NumPy lacks
    Processes(0, 2).agree(keyed_source(1), {"steps": 3}, module, read_rows(*rows(count)))


@pytest.mark.parametrize(
    ("place", "what"),
    list(enumerate([{"dpselect": "0"}, 1, {"steps": 4}, (5, "other rows"), "other weights"])),
)
def test_what_the_processes_differ_in_is_named(monkeypatch, place, what):
    said = ("code or versions", "random", "settings", "rows", "make_module")[place]
    with pytest.raises(ArgumentError, match=f"the processes differ in {said}"):
        differ(monkeypatch, lambda mine: [*mine[:place], what, *mine[place + 1 :]])


def test_equal_processes_agree_on_all_that_decides_the_bytes(monkeypatch):
    seen = []
    for count in (5, 6):
        differ(monkeypatch, lambda mine: seen.append(mine) or mine, count)
    build = seen[0][0]
    assert {"dpselect", "code of dpselect", "Python", "NumPy", "torch", "opacus"} == set(build)
    assert seen[0][:3] == seen[1][:3]
    assert seen[0][3] != seen[1][3]
    assert seen[0][4] == seen[1][4]


def test_what_is_refused():
    with pytest.raises(ArgumentError, match="max_physical_batch_size is missing"):
        plan(distributed=True)
    training = plan(distributed=True, max_physical_batch_size=4)
    with pytest.raises(ArgumentError, match="init_process_group"):
        training.fit(None, None, None, *rows(4))
    assert training.guarantee.epsilon(1e-5) == plan(max_physical_batch_size=4).guarantee.epsilon(1e-5)


def test_a_source_that_draws_from_the_system_is_refused(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    with pytest.raises(ArgumentError, match="one keyed source"):
        plan(distributed=True, max_physical_batch_size=4).fit(None, None, None, *rows(4), random=system_source())


def test_parts_are_shared_in_order():
    assert [list(Processes(rank, 3).parts(7)) for rank in range(3)] == [[0, 3, 6], [1, 4], [2, 5]]
    assert list(ALONE.parts(3)) == [0, 1, 2]
    assert ALONE.turn(0, 1, ["sums"]) == [["sums"]]
    assert ALONE.of_first("thing") == "thing"
    assert ALONE.source(keyed_source(1)).bytes(4) == keyed_source(1).bytes(4)


@pytest.mark.parametrize(("number", "expected"), [(0, 3), (1, 3), (2, 1)])
def test_a_turn_has_the_sums_of_the_parts_that_there_are(monkeypatch, number, expected):
    def gather(found, flat):
        for rank, each in enumerate(found):
            each.copy_(flat + rank)

    monkeypatch.setattr(torch.distributed, "all_gather", gather)
    sums = [torch.zeros(2, 3), torch.ones(4, dtype=torch.float64)]
    found = Processes(0, 3).turn(number, 7, sums)
    assert len(found) == expected
    for rank, (one, other) in enumerate(found):
        assert torch.equal(one, sums[0] + rank)
        assert torch.equal(other, sums[1] + rank)
        assert (one.dtype, other.dtype) == (torch.float32, torch.float64)
