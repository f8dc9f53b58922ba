"""MNIST from the user's files, the network of Figure 7 that is trained on it, and the pool of its runs."""

import gzip
import math
import sys

import numpy as np
import pytest
from papers.__main__ import main
from papers.mnist_files import read_mnist
from papers.table import Context
from papers.tuning_rdp import PAPER
from papers.tuning_rdp_networks import Trainer, trained_pool

from dpselect.errors import ArgumentError
from dpselect.privacy import dp_sgd
from dpselect.randomness import keyed_source
from papers import tuning_rdp_networks
from tests.cli import hostile_documents as hostile

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def idx(values):
    """The format as its authors describe it: 0, 0, 8 for bytes, the number of sizes, the sizes, the bytes by rows."""
    sizes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return bytes([0, 0, 8, values.ndim]) + sizes + values.astype(np.uint8).tobytes()


def two_kinds(rows, size=12):
    """Bright images are ones, dark ones zeros."""
    draw = np.random.default_rng(rows)
    labels = draw.integers(0, 2, rows)
    pixels = np.where(labels == 1, 200, 20)[:, None, None] + draw.integers(0, 20, (rows, size, size))
    return pixels.astype(np.uint8), labels


def arrays():
    return (*two_kinds(40), *two_kinds(10))


def written(folder, values, names=NAMES, pack=lambda content: content):
    folder.mkdir()
    for name, value in zip(names, values, strict=True):
        (folder / name).write_bytes(pack(idx(value)))
    return folder


def test_the_four_files_and_the_npz_file_are_the_same_rows(tmp_path):
    values = arrays()
    plain = written(tmp_path / "plain", values)
    packed = written(tmp_path / "packed", values, [f"{name}.gz" for name in NAMES], gzip.compress)
    dotted = written(tmp_path / "dotted", values, [name.replace("-idx", ".idx") for name in NAMES])
    np.savez(tmp_path / "m.npz", **dict(zip(("x_train", "y_train", "x_test", "y_test"), values, strict=True)))
    for path in (plain, packed, dotted, tmp_path / "m.npz"):
        (x_train, y_train), (x_test, y_test) = read_mnist(str(path))
        for found, value in zip((x_train, y_train, x_test, y_test), values, strict=True):
            assert np.array_equal(found, value)


def test_a_file_that_is_not_idx_is_refused(tmp_path):
    good = idx(arrays()[0])
    cases = [
        b"",
        good[:-1],
        good + b"0",
        good[:6],
        b"\0\0\x0d\x03" + good[4:],  # floats
        idx(arrays()[1]),  # labels
        b"\0\0\x08\x03" + b"\xff" * 12,
    ]
    folder = written(tmp_path / "m", arrays())
    for content in cases:
        (folder / NAMES[0]).write_bytes(content)
        with pytest.raises(ArgumentError, match="IDX file"):
            read_mnist(str(folder))
    (folder / NAMES[0]).unlink()
    with pytest.raises(ArgumentError, match="no file train-images"):
        read_mnist(str(folder))
    for content in (b"", good, gzip.compress(good)[:-9]):
        (folder / f"{NAMES[0]}.gz").write_bytes(content)
        with pytest.raises(ArgumentError, match=r"cannot be read|IDX file"):
            read_mnist(str(folder))


def test_a_file_that_is_not_npz_is_refused(tmp_path):
    wrong = tmp_path / "mnist.npz"
    for content in (b"", b"not a zip file", b"PK\x03\x04 but no more"):
        wrong.write_bytes(content)
        with pytest.raises(ArgumentError, match="npz"):
            read_mnist(str(wrong))
    np.savez(wrong, x_train=np.zeros((2, 4, 4)))
    with pytest.raises(ArgumentError, match="x_test"):
        read_mnist(str(wrong))


@pytest.mark.cases(8)
@pytest.mark.parametrize("kind", [*hostile.ARRAYS, *hostile.ANY])
def test_a_malformed_file_is_an_error_of_one_line(kind, tmp_path, monkeypatch, capsys):
    wrong = tmp_path / "mnist.npz"
    wrong.write_bytes((hostile.ARRAYS | hostile.ANY)[kind]())
    monkeypatch.setattr(sys, "argv", ["papers", "tuning-rdp", "--data", f"mnist={wrong}", "--output", str(tmp_path)])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr().err
    assert left.value.code in (1, 2)
    assert said.startswith("papers: ")
    assert said.count("\n") == 1
    assert said.strip("\n").isprintable()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"y_train": [0]}, "label"),
        ({"x_train": np.zeros((2, 16))}, "label"),
        ({"x_test": np.zeros((0, 4, 4)), "y_test": []}, "label"),
        ({"x_test": np.zeros((2, 5, 5))}, "another size"),
        ({"y_test": [0, 10]}, "from 0 to 9"),
        ({"y_test": [0, 0.5]}, "from 0 to 9"),
        ({"y_test": ["0", "1"]}, "from 0 to 9"),
        ({"x_train": np.full((2, 4, 4), np.nan)}, "from 0 to 255"),
        ({"x_train": np.full((2, 4, 4), -1)}, "from 0 to 255"),
    ],
)
def test_rows_that_are_not_like_mnist_are_refused(tmp_path, change, said):
    good = {"x_train": np.zeros((2, 4, 4)), "y_train": [0, 1], "x_test": np.zeros((2, 4, 4)), "y_test": [0, 9]}
    np.savez(tmp_path / "m.npz", **good)
    read_mnist(str(tmp_path / "m.npz"))
    np.savez(tmp_path / "m.npz", **(good | change))
    with pytest.raises(ArgumentError, match=said):
        read_mnist(str(tmp_path / "m.npz"))


def test_mnist_needs_the_torch_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(tuning_rdp_networks, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="torch"):
        PAPER.takes["mnist"](str(tmp_path))


def trains(*, data=7, stop_after=math.inf, rates=(0.5, 1.0)):
    """Two runs a rate, and a list of the rates that were trained."""
    trained = []

    def accuracy(rate, random):
        if len(trained) == stop_after:
            raise KeyboardInterrupt
        trained.append(rate)
        return rate * float(random.uniform(1)[0])

    base = dp_sgd(noise_multiplier=1.0, sampling_rate=0.1, steps=10)
    return Trainer(what="a model", rates=rates, runs=2, guarantee=base, accuracy=accuracy, data=data), trained


def test_an_interrupted_pool_goes_on_with_the_accuracies_that_it_would_have_had(tmp_path):
    context = Context(False, keyed_source(1), folder=tmp_path)
    whole, trained = trains()
    expected = trained_pool(whole, Context(False, keyed_source(1)))
    assert trained == [0.5, 0.5, 1.0, 1.0]
    assert sorted(expected) == list(expected)
    assert len(set(expected)) == 4
    stopped, _ = trains(stop_after=3)
    with pytest.raises(KeyboardInterrupt):
        trained_pool(stopped, context)
    resumed, trained = trains()
    assert np.array_equal(trained_pool(resumed, context), expected)
    assert trained == [1.0]


@pytest.mark.parametrize("change", ["data", "seed", "own data", "damaged"])
def test_a_pool_of_other_settings_is_not_used(tmp_path, change):
    trained_pool(trains()[0], Context(False, keyed_source(1), folder=tmp_path))
    (path,) = tmp_path.iterdir()
    if change == "damaged":
        path.write_text(path.read_text()[:-20])
    other, trained = trains(data={"data": 8, "own data": None}.get(change, 7))
    trained_pool(other, Context(False, keyed_source(2 if change == "seed" else 1), folder=tmp_path))
    assert len(trained) == 4


@pytest.mark.slow
def test_the_papers_network_learns_images_of_any_size(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    pytest.importorskip("opacus")
    folder = written(tmp_path / "m", (*two_kinds(400), *two_kinds(50)))
    monkeypatch.setattr(tuning_rdp_networks, "_MNIST_STEPS", {True: 40, False: 40})
    monkeypatch.setattr(tuning_rdp_networks, "_MNIST_RATE", 0.2)
    found = tuning_rdp_networks.trainer(Context(True, keyed_source(1), {"mnist": str(folder)}))
    # two classes that one pixel tells apart; a guess has 0.5. MNIST's nominal rows are 150 times as many as there are
    assert found.accuracy(150.0, keyed_source(1)) > 0.9
