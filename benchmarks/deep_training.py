"""A training step of `PrivateTraining` beside Opacus's own loop, for three sizes of a network.

    OMP_NUM_THREADS=1 python -m benchmarks.deep_training [--device cpu|cuda] [--steps 20] [--only NETWORK]
        [--json FILE]

Both train the same network on the same rows at the same rate, by turns, in one process. A row has the milliseconds of
a step (processor time on `cpu`, the clock on `cuda`, where a step ends when the device is done), the ratio to Opacus's,
and the largest memory that a step takes beside the network. `ghost` is ghost clipping on both sides. `in parts` cuts
batches into parts of 64 rows, and `4x parts` those of four times the size: memory must not grow with the batch.
The probe of `PrivateTraining`, once a training, has columns of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import torch

from dpselect.integrations.opacus import PrivateTraining
from dpselect.randomness import keyed_source

RATE: Final = 0.1
ROUNDS: Final = 3
PART: Final = 64
LOSS: Final = torch.nn.CrossEntropyLoss(reduction="none")


class Attention(torch.nn.Module):
    """A layer of a small transformer, of linear layers that Opacus knows."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.asked = torch.nn.Linear(width, 3 * width)
        self.given = torch.nn.Linear(width, width)
        self.wide = torch.nn.Sequential(
            torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)
        )

    def forward(self, rows: Any) -> Any:
        query, key, value = (
            part.unflatten(-1, (4, -1)).transpose(1, 2) for part in self.asked(self.first(rows)).chunk(3, dim=-1)
        )
        weights = (query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5).softmax(dim=-1)
        rows = rows + self.given((weights @ value).transpose(1, 2).flatten(2))
        return rows + self.wide(self.second(rows))


class Transformer(torch.nn.Module):
    """Two layers of attention over tokens, and the mean of what they give."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(1000, width)
        self.layers = torch.nn.Sequential(Attention(width), Attention(width))
        self.head = torch.nn.Linear(width, 10)

    def forward(self, tokens: Any) -> Any:
        return self.head(self.layers(self.words(tokens)).mean(dim=1))


def perceptron() -> Any:
    """50 columns, one hidden layer: 5,000 parameters."""
    return torch.nn.Sequential(torch.nn.Linear(50, 80), torch.nn.Tanh(), torch.nn.Linear(80, 10))


def convolution() -> Any:
    """Images of 28 by 28 pixels, two convolutions: 26,000 parameters."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 16, 8, 2, padding=3),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2, 1),
        torch.nn.Conv2d(16, 32, 4, 2),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2, 1),
        torch.nn.Flatten(),
        torch.nn.Linear(512, 32),
        torch.nn.ReLU(),
        torch.nn.Linear(32, 10),
    )


def shapes(device: str) -> Iterator[tuple[str, Callable[[], Any], Any]]:
    """Networks by name, with rows of their kind."""
    rows = 4000 if device == "cpu" else 10_000
    yield "perceptron", perceptron, torch.rand(rows, 50)
    yield "convolution", convolution, torch.rand(rows, 1, 28, 28)
    yield "transformer", Transformer, torch.randint(0, 1000, (rows // 4, 32))


def clock(device: str) -> float:
    if device != "cpu":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def rate_of(mode: str) -> float:
    return 4.0 * RATE if mode.startswith("4x") else RATE


def opacus_steps(make: Callable[[], Any], rows: Any, labels: Any, steps: int, mode: str) -> Callable[[], None]:
    """Opacus's loop, as its documentation has it."""
    from opacus import PrivacyEngine
    from opacus.utils.batch_memory_manager import BatchMemoryManager

    module = make().to(rows.device)
    data = torch.utils.data.TensorDataset(rows, labels)
    loss = torch.nn.CrossEntropyLoss()
    made = PrivacyEngine().make_private(
        module=module,
        optimizer=torch.optim.SGD(module.parameters(), lr=0.1),
        criterion=loss,
        data_loader=torch.utils.data.DataLoader(data, batch_size=int(rate_of(mode) * len(rows))),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        **({"grad_sample_mode": "ghost"} if mode == "ghost" else {}),
    )
    module, optimizer, *criterion, loader = made
    loss = criterion[0] if criterion else loss

    def run() -> None:
        done = 0
        module.train()
        while done < steps:
            if mode.endswith("parts"):
                with BatchMemoryManager(data_loader=loader, max_physical_batch_size=PART, optimizer=optimizer) as parts:
                    done += train(parts, skipping=True, left=steps - done)
            else:
                done += train(loader, skipping=False, left=steps - done)
        optimizer.zero_grad()

    def train(batches: Any, *, skipping: bool, left: int) -> int:
        done = 0
        for inputs, targets in batches:
            optimizer.zero_grad()
            loss(module(inputs), targets).backward()
            skipped = skipping and optimizer._step_skip_queue and optimizer._step_skip_queue[0]
            optimizer.step()
            done += not skipped
            if done == left:
                break
        return done

    return run


def our_steps(make: Callable[[], Any], rows: Any, labels: Any, steps: int, mode: str) -> Callable[[], None]:
    """The same by `PrivateTraining`, without its probe, which is once a training."""
    parts = {"max_physical_batch_size": PART}
    more: dict[str, Any] = {"ghost": {"grad_sample_mode": "ghost"}, "in parts": parts, "4x parts": parts}
    training = PrivateTraining(
        noise_multiplier=1.0,
        sampling_rate=rate_of(mode),
        steps=steps,
        max_grad_norm=1.0,
        expected_batch_size=rate_of(mode) * max(len(rows), 1),
        **more.get(mode, {}),
    )

    def run() -> None:
        training.fit(
            lambda: make().to(rows.device),
            lambda parameters: torch.optim.SGD(parameters, lr=0.1),
            LOSS,
            rows,
            labels,
            random=keyed_source(1),
        )

    return run


def probe_of(make: Callable[[], Any], rows: Any, labels: Any, mode: str) -> Callable[[], None]:
    """A training of no rows: the probe, and noise."""
    return our_steps(make, rows[:0], labels[:0], 1, mode)


def peak(run: Callable[[], None], device: str) -> float:
    """MiB that a run holds on a device beyond what was there. Torch tells none for the processor."""
    if device == "cpu":
        return float("nan")
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    run()
    return (torch.cuda.max_memory_allocated() - before) / 2**20


def measured(device: str, steps: int, only: str = "") -> Iterator[dict[str, Any]]:
    for name, make, rows in shapes(device):
        if not name.startswith(only):
            continue
        rows, labels = rows.to(device), torch.randint(0, 10, (len(rows),)).to(device)
        for mode in ("hooks", "ghost", "in parts", "4x parts"):
            runs = {
                "Opacus": opacus_steps(make, rows, labels, steps, mode),
                "ours": our_steps(make, rows, labels, steps, mode),
                "probe": probe_of(make, rows, labels, mode),
            }
            spent: dict[str, list[float]] = {each: [] for each in runs}
            for _ in range(ROUNDS):
                for each, run in runs.items():
                    began = clock(device)
                    run()
                    spent[each].append(clock(device) - began)
            best = {each: min(times) for each, times in spent.items()}
            theirs, ours = best["Opacus"] / steps, max(best["ours"] - best["probe"], 0.0) / steps
            yield {
                "network": name,
                "clipping": mode,
                "device": device,
                "opacus_ms": 1000 * theirs,
                "ours_ms": 1000 * ours,
                "ratio": ours / theirs,
                "probe_s": best["probe"],
                "opacus_mib": peak(runs["Opacus"], device),
                "ours_mib": peak(runs["ours"], device),
                "probe_mib": peak(runs["probe"], device),
            }


def main(arguments: list[str] | None = None) -> list[dict[str, Any]]:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.deep_training",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--only", default="", help="the networks whose names begin so")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args(arguments)
    if asked.device == "cuda" and not torch.cuda.is_available():
        print("no such device on this machine: --device cpu measures processor time", file=sys.stderr)
        return []
    warnings.simplefilter("ignore")
    torch.manual_seed(1)
    found = []
    print("network      clipping  Opacus, ms  ours, ms  ratio  probe, s  Opacus, MiB  ours, MiB  probe, MiB")
    for each in measured(asked.device, asked.steps, asked.only):
        found.append(each)
        print(
            f"{each['network']:<12} {each['clipping']:<8} {each['opacus_ms']:>11.2f} {each['ours_ms']:>9.2f} "
            f"{each['ratio']:>6.2f} {each['probe_s']:>9.2f} {each['opacus_mib']:>12.0f} {each['ours_mib']:>10.0f} "
            f"{each['probe_mib']:>11.0f}",
            flush=True,
        )
    if asked.json is not None:
        asked.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
