"""An accountant for Opacus: an engine that counts steps with it reports dpselect's epsilon."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dpselect.errors import ArgumentError, missing_extra, number
from dpselect.integrations.opacus.state import history_guarantee
from dpselect.privacy import Guarantee

try:
    from opacus.accountants import IAccountant
except ImportError:
    raise missing_extra("torch", "training with Opacus") from None

from dpselect.integrations.opacus.engine import refuse_optimizer

__all__ = ["EngineAccountant"]

_NAME: Final = "dpselect"


class EngineAccountant(IAccountant):  # type: ignore[misc]
    """An accountant of Opacus that prices Poisson-sampled Gaussian steps by their privacy-loss distribution.

    Its epsilon is rounded up, and 2^-23 is added to each sampling rate, as Opacus draws batches with single-precision
    uniforms. It is below that of Opacus's PRV accountant, whose error term is 0.01 by default.

    You must ensure that batches are Poisson samples (`poisson_sampling=True`) and that the schedule of noise and rates
    was fixed in advance. A step with gradients accumulated over several batches is refused, and so is an optimizer for
    adaptive clipping or distributed training. Ghost clipping does not show how many batches it accumulated. There you
    must ensure that each batch has a step of its own.

    Register it once, and name it:

    >>> from opacus import PrivacyEngine
    >>> from opacus.accountants import register_accountant
    >>> register_accountant("dpselect", EngineAccountant, force=True)
    >>> engine = PrivacyEngine(accountant="dpselect")
    >>> for _ in range(1000):
    ...     engine.accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> round(engine.get_epsilon(1e-5), 2)
    1.83
    """

    def __init__(self) -> None:
        super().__init__()
        self.history: list[tuple[float, float, int]] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Count one step.

        Args:
            noise_multiplier: noise standard deviation / clipping norm, above 0.
            sample_rate: the probability that a row is in the batch, in (0, 1].

        Raises:
            ArgumentError: if a number is out of range.
        """
        noise = number("noise_multiplier", noise_multiplier, above=0.0, rounding="down")
        rate = number("sample_rate", sample_rate, above=0.0, at_most=1.0, rounding="up")
        if self.history and tuple(self.history[-1][:2]) == (noise, rate):
            self.history[-1] = (noise, rate, self.history[-1][2] + 1)
        else:
            self.history.append((noise, rate, 1))

    def guarantee(self) -> Guarantee:
        """Return the guarantee of the steps so far, for `best_of`, `compose` or a ledger.

        Raises:
            ArgumentError: before the first step.
        """
        return history_guarantee(self.history)

    def get_epsilon(self, delta: float, *_: Any, **__: Any) -> float:
        """Return the epsilon of the steps so far, rounded up, and 0 before the first.

        Args:
            delta: the target delta.

        Other arguments, such as the error terms of Opacus's PRV accountant, have no effect.
        """
        delta = number("delta", delta, at_least=0.0, at_most=1.0, rounding="down")
        return self.guarantee().epsilon(delta) if self.history else 0.0

    def __len__(self) -> int:
        """The number of steps so far."""
        return sum(steps for _, _, steps in self.history)

    @classmethod
    def mechanism(cls) -> str:
        """The name under which the accountant is registered."""
        return _NAME

    def get_optimizer_hook_fn(self, sample_rate: float) -> Any:
        """Return what the optimizer calls at each step. It refuses a step that no Poisson sample was drawn for."""
        count = super().get_optimizer_hook_fn(sample_rate)

        def counted(optimizer: Any) -> None:
            refuse_optimizer(optimizer)
            if optimizer.accumulated_iterations > 1:
                raise ArgumentError(
                    "this step has gradients accumulated over several batches, which one noise does not pay for: "
                    "call step() after each batch, or cut batches with a BatchMemoryManager"
                )
            count(optimizer)

        return counted

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Take the steps of a saved accountant.

        Raises:
            ArgumentError: if a step of the history has a number that is out of range.
            ValueError: if `state_dict` is empty, or of another accountant.
        """
        before = self.history
        super().load_state_dict(state_dict)
        try:
            self.history = [(noise, rate, steps) for noise, rate, steps in self.history]
            if self.history:
                self.guarantee()
        except (TypeError, ValueError) as error:
            self.history = before
            raise ArgumentError(f"state_dict: the history is not one of (noise, rate, steps): {error}") from None
