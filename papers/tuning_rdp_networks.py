"""The runs that Figure 7's searches draw from: of the paper's network through Opacus, or of this library's DP-SGD."""

from __future__ import annotations

import json
import os
import warnings
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dpselect import __version__
from dpselect.accounting import calibrate
from dpselect.decoding.json_text import json_file
from dpselect.decoding.limits import DOCUMENT
from dpselect.errors import missing_extra
from dpselect.learners import DPSGDClassifier
from dpselect.numerics.search import Array
from dpselect.privacy import Guarantee, dp_sgd
from dpselect.randomness import RandomSource
from papers.mnist_files import read_mnist
from papers.table import Context

__all__ = ["Trainer", "check_mnist", "trained_pool", "trainer"]

Rows = tuple[NDArray[Any], NDArray[Any]]  # images of shape (rows, height, width), labels

_POOL: Final = "tuning-rdp-pool.json"
_ONE_RUN: Final = 2.696861  # epsilon at delta = 1e-6 of the paper's training, which the digits are trained at
_DIGITS: Final[Mapping[str, Any]] = {"sampling_rate": 0.15, "steps": 100}
_RATES: Final = tuple(float(rate) for rate in np.geomspace(0.025, 1.0, 9))  # the paper's range
_MNIST_STEPS: Final = {True: 234, False: 14_063}  # quick: one epoch of 60
_MNIST_RATE: Final = 256 / 60_000


@dataclass(frozen=True, kw_only=True)
class Trainer:
    """A training whose learning rate is searched: what one run costs, and the accuracy that it reaches.

    `data` tells given data from other data, None for data that comes with the project.
    """

    what: str
    rates: tuple[float, ...]
    runs: int
    guarantee: Guarantee
    accuracy: Callable[[float, RandomSource], float]
    guess: float = 0.1
    data: int | None = None


def trainer(context: Context) -> Trainer:
    """MNIST where its file is given, else the digits: the paper's network in full mode, where torch is installed."""
    if "mnist" in context.files:
        return _mnist(context.files["mnist"], quick=context.quick)
    if not context.quick and find_spec("torch") and find_spec("opacus"):
        return _digits_network()
    return _digits_classifier(quick=context.quick)


def trained_pool(chosen: Trainer, context: Context) -> NDArray[np.float64]:
    """The accuracies of all runs, ascending; a search draws a learning rate and one of its runs.

    Every run draws from a source of its own. So an interrupted pool goes on where it was, with the accuracies that it
    would have had, if the trainer names its data and the context has a folder to keep them in.
    """
    kept = None if chosen.data is None or context.folder is None else context.folder / _POOL
    settings = {
        "made by": f"dpselect {__version__}",
        "model": chosen.what,
        "data": chosen.data,
        "guarantee": chosen.guarantee.terms,
        "draws": context.random.spawn("pool").bits(64),
    }
    found = _read(kept, settings)
    names = {f"{rate:.6g} {run}": rate for rate in chosen.rates for run in range(chosen.runs)}
    for at, (name, rate) in enumerate(names.items()):
        if name not in found:
            context.progress(f"Figure 7, training {at + 1} of {len(names)}")
            found[name] = chosen.accuracy(rate, context.random.spawn(name))
            if kept is not None:
                new = kept.with_suffix(".new")
                new.write_text(json.dumps({"settings": settings, "accuracies": found}) + "\n", encoding="utf-8")
                os.replace(new, kept)
    return np.sort([found[name] for name in names])


def _read(path: Path | None, settings: dict[str, Any]) -> dict[str, float]:
    """What was kept with the same settings; nothing otherwise."""
    if path is None or not path.is_file():
        return {}
    try:
        content = json_file(path, DOCUMENT)
        if content["settings"] == json.loads(json.dumps(settings)):  # decodes: what was just written
            return {str(name): float(value) for name, value in content["accuracies"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        pass  # not ours, or cut short
    return {}


def _digits() -> tuple[Array, NDArray[np.intp], NDArray[np.bool_]]:
    """Images of shape (rows, 8, 8) in [0, 1], labels, and which rows are held out."""
    from sklearn.datasets import load_digits  # takes a second to import

    digits = load_digits()
    return digits.images / 16.0, digits.target, np.arange(len(digits.target)) % 5 == 0


def _digits_settings() -> dict[str, Any]:
    """Those at which a training on the digits costs what the paper's costs."""

    def price(noise_multiplier: float) -> Guarantee:
        return dp_sgd(noise_multiplier=noise_multiplier, **_DIGITS)

    return {"noise_multiplier": calibrate(price, epsilon=_ONE_RUN, delta=1e-6, relative=1e-3), **_DIGITS}


def _digits_classifier(*, quick: bool) -> Trainer:
    """Softmax regression by this library's DP-SGD; learning rates from 0.1 to 4, the paper's range times 4."""
    images, labels, held_out = _digits()
    rows, settings = images.reshape(len(images), -1), _digits_settings()

    def accuracy(learning_rate: float, random: RandomSource) -> float:
        model = DPSGDClassifier(
            **settings,
            learning_rate=4.0 * learning_rate,
            row_norm=4.0,
            classes=range(10),
            nominal_rows=1440,
            random=random,
        )
        model.fit(rows[~held_out], labels[~held_out])
        return float(np.mean(model.predict(rows[held_out]) == labels[held_out]))

    return Trainer(
        what="softmax regression on scikit-learn's digits",
        rates=_RATES,
        runs=10 if quick else 20,
        guarantee=dp_sgd(**settings),
        accuracy=accuracy,
    )


def _digits_network() -> Trainer:
    """The paper's feature maps on 8 x 8 images; few steps, so learning rates are the paper's range times 8."""
    images, labels, held_out = _digits()
    training_rows, held_out_rows = ((images[chosen], labels[chosen]) for chosen in (~held_out, held_out))
    settings = _digits_settings()
    return Trainer(
        what="the paper's network on scikit-learn's digits",
        rates=tuple(8.0 * rate for rate in _RATES),
        runs=2,
        guarantee=dp_sgd(**settings),
        accuracy=_network_accuracy(training_rows, held_out_rows, settings, nominal_rows=1440),
    )


def check_mnist(path: str) -> None:
    """Before any work: what would keep the network from being trained on these files."""
    if not (find_spec("torch") and find_spec("opacus")):
        raise missing_extra("torch", "training the network of Figure 7 on MNIST")
    read_mnist(path)


def _mnist(path: str, *, quick: bool) -> Trainer:
    """The paper's own training from the user's files; quick: one epoch."""
    rows = read_mnist(path)
    training_rows, held_out_rows = ((pixels.astype(np.float32) / np.float32(255.0), labels) for pixels, labels in rows)
    settings: dict[str, Any] = {"noise_multiplier": 1.1, "sampling_rate": _MNIST_RATE, "steps": _MNIST_STEPS[quick]}
    return Trainer(
        what=f"the paper's network on MNIST{', one epoch' if quick else ''}",
        rates=_RATES,
        runs=1 if quick else 5,
        guarantee=dp_sgd(**settings),
        accuracy=_network_accuracy(training_rows, held_out_rows, settings, nominal_rows=60_000),
        data=zlib.crc32(b"".join(np.ascontiguousarray(array).tobytes() for pair in rows for array in pair)),
    )


def _network_accuracy(
    training_rows: Rows, held_out_rows: Rows, settings: Mapping[str, Any], *, nominal_rows: float
) -> Callable[[float, RandomSource], float]:
    """A function that trains an all-convolutional network with Opacus and measures its accuracy."""
    import torch

    from dpselect.integrations.opacus import PrivateTraining

    device = "cuda" if torch.cuda.is_available() else "cpu"

    def tensors(images: NDArray[Any], labels: NDArray[Any]) -> tuple[Any, Any]:
        return (
            torch.tensor(images, dtype=torch.float32, device=device)[:, None],
            torch.tensor(np.asarray(labels, dtype=np.int64), device=device),
        )

    (inputs, targets), (unseen, truth) = tensors(*training_rows), tensors(*held_out_rows)
    batch = settings["sampling_rate"] * nominal_rows
    training = PrivateTraining(**settings, max_grad_norm=1.0, expected_batch_size=batch)

    def network() -> Any:
        layers: list[Any] = []
        channels = (1, 32, 32, 64, 64, 64)
        for depth, (into, out) in enumerate(pairwise(channels)):
            # every second layer halves the image
            layers += [torch.nn.Conv2d(into, out, 3, stride=1 + depth % 2, padding=1), torch.nn.Tanh()]
        return torch.nn.Sequential(
            *layers, torch.nn.AdaptiveAvgPool2d(2), torch.nn.Flatten(), torch.nn.Linear(4 * channels[-1], 10)
        ).to(device)

    def accuracy(learning_rate: float, random: RandomSource) -> float:
        with warnings.catch_warnings():
            # the first layer's inputs need no gradient, which PyTorch remarks on at each step
            warnings.filterwarnings("ignore", message="Full backward hook is firing")
            model = training.fit(
                network,
                lambda parameters: torch.optim.SGD(parameters, lr=learning_rate),
                torch.nn.CrossEntropyLoss(reduction="none"),
                inputs,
                targets,
                random=random,
            )
        with torch.no_grad():
            right = [
                (model(unseen[start : start + 1000]).argmax(dim=1) == truth[start : start + 1000]).float().sum()
                for start in range(0, len(truth), 1000)
            ]
        return float(sum(right)) / len(truth)

    return accuracy
