"""The saved state of an Opacus accountant: read without running anything that is in the file, and priced again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from dpselect.decoding.arrays import check_archive
from dpselect.decoding.json_text import json_file
from dpselect.decoding.limits import ACCOUNTANT, DOCUMENT
from dpselect.errors import ArgumentError, ContentError, missing_extra, number
from dpselect.privacy import Guarantee, compose, dp_sgd

__all__ = ["CALLER_ENSURES", "history_guarantee", "read_history", "sampled_rate"]

CALLER_ENSURES: Final = (
    "batches were Poisson samples at the recorded rates, each with a step of its own (no gradients accumulated over "
    "several), without adaptive clipping, and the schedule was fixed in advance"
)
_SAMPLING: Final = 2.0**-23
"""Opacus compares single-precision uniforms, multiples of 2**-24, with the rate: so much likelier is a row at most."""

_START: Final = 1 << 12
"""Bytes that tell JSON from an archive."""

History = Sequence[tuple[float, float, int]]


def history_guarantee(history: History) -> Guarantee:
    """The guarantee of a training by an accountant's history: (noise multiplier, sampling rate, steps) for each phase.

    Under adding or removing one row. The caller must ensure `CALLER_ENSURES`. Opacus records k batches whose gradients
    were accumulated as one batch of k times the rate. But a row may be in several of them, which costs more. Adaptive
    clipping spends on batch sizes too. The values of Opacus's own accountants for the same history (Renyi, PRV, or the
    Gaussian approximation of its `gdp`, which is no upper bound) do not enter.

    Raises `ArgumentError` for an empty history, noise that is not above 0, a rate outside (0, 1].

    >>> print(round(history_guarantee([(1, 0.01, 1000)]).epsilon(1e-5), 2))
    1.83
    """
    if not history:
        raise ArgumentError("history is empty: no step was taken")
    return compose(
        *[
            dp_sgd(noise_multiplier=noise, sampling_rate=sampled_rate(rate), steps=steps)
            for noise, rate, steps in history
        ]
    )


def sampled_rate(rate: float) -> float:
    """The probability with which Opacus takes a row at most, where `rate` is meant."""
    return min(number("sampling_rate", rate, above=0.0, at_most=1.0) + _SAMPLING, 1.0)


def read_history(path: str | Path) -> list[tuple[float, float, int]]:
    """The history in a saved accountant state, or in a checkpoint by `PrivacyEngine.save_checkpoint`.

    `torch.save(engine.accountant.state_dict(), path)` and checkpoints are read with `torch.load(weights_only=True)`,
    which builds plain values and tensors only. A pickle could run any program and is refused. JSON, written by
    `json.dump({"history": engine.accountant.history}, file)`, needs neither torch nor Opacus.

    Raises `ContentError` for anything else, `MissingExtraError` when torch is needed and absent, `OSError`.
    """
    path = Path(path)
    with path.open("rb") as file:
        start = file.read(_START)
    if start.lstrip()[:1] == b"{":
        state = json_file(path, DOCUMENT)
    elif start[:2] == b"PK":
        check_archive(path, ACCOUNTANT, path.name)
        state = _load_weights(path)
    else:
        raise ContentError("this file is neither JSON nor an archive written by torch.save (a pickle is not opened)")
    state = state.get("privacy_accountant_state_dict", state) if isinstance(state, Mapping) else {}
    try:
        return [(noise, rate, steps) for noise, rate, steps in state["history"]]
    except (LookupError, TypeError, ValueError):
        raise ContentError("this file holds no accountant state: a 'history' of (noise, rate, steps)") from None


def _load_weights(path: str | Path) -> Any:
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "reading an accountant state written by torch.save") from None
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except OSError:
        raise
    except Exception:
        raise ContentError(
            "torch.load(weights_only=True) refuses this file: it holds more than plain values and tensors (states of "
            'older versions of Opacus hold a function); write JSON: json.dump({"history": accountant.history}, file)'
        ) from None
