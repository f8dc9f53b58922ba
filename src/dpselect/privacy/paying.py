"""Paying for what is private: reserved before the data are looked at, settled when the output is there.

This is the only place of the library that reserves and settles, beside the ledger itself.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, runtime_checkable

from dpselect.errors import BudgetError, expect, public_text
from dpselect.privacy.guarantee import Guarantee
from dpselect.privacy.output.guarantee import OutputGuarantee
from dpselect.privacy.promises import promise_or_output
from dpselect.privacy.release import ClaimSpender, Receipt, Release, Spender
from dpselect.randomness.process_start import refuse_while_starting
from dpselect.randomness.session import Session, answers
from dpselect.records.claims import ClaimFile, claim_refusal

if TYPE_CHECKING:  # a type checker has it, whether it is installed or not
    from typing_extensions import TypeVar

    _Release = TypeVar("_Release", default=Release)

__all__ = ["IN_FULL", "BoundPayment", "PaidSession", "Payment", "asked_at", "paid"]

IN_FULL: Final[Any] = object()
"""In the place of an output: what came out is not known."""


@runtime_checkable
class _Charge(Protocol):
    """A receipt that can be settled with an output, as a ledger's can: prices by a function are not in its record."""

    def settle(self, output: Any) -> Receipt: ...


@dataclass(frozen=True)
class Payment:
    """A reservation. One that is never closed stays charged in full. Without a spender nothing is charged.

    For anything that is not over when its function returns: a session, a search that may be resumed. Anything that is
    uses `paid`. `receipt` is that of the reservation.
    """

    spender: Spender | None
    guarantee: Guarantee | OutputGuarantee
    identifier: str
    receipt: Receipt | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "guarantee", promise_or_output("guarantee", self.guarantee))
        if self.spender is not None:
            expect("spender", self.spender, Spender)

    @classmethod
    def open(
        cls,
        guarantee: Guarantee | OutputGuarantee,
        *,
        spender: Spender | None,
        label: str,
        identifier: str | None = None,
    ) -> Payment:
        """Reserve the worst case of a guarantee, durably.

        `identifier`: of a run that is repeated after a crash, and then charged once. The default is a new one, because
        one that the record already holds is not charged again.

        Raises `BudgetError` when the spender refuses, `StartingProcessError` in a child process that is being started.
        """
        label = public_text("label", label)
        if spender is None:
            return cls(None, guarantee, identifier or "")
        payment = cls(spender, guarantee, secrets.token_hex(16) if identifier is None else identifier)
        refuse_while_starting("a paid run")
        return replace(payment, receipt=spender.reserve(payment.guarantee, label=label, identifier=payment.identifier))

    def close(self, output: Any = IN_FULL) -> Receipt | None:
        """Settle at the realised price of the output. Without an output, or with a plain guarantee, settle in full.

        Closing again with the same output gives the same receipt (but for prices that are a function).
        """
        if self.spender is None:
            return None
        if output is IN_FULL or not isinstance(self.guarantee, OutputGuarantee):
            return self.spender.settle(self.identifier)
        by_function = self.guarantee.table is None or self.guarantee.used is not None
        if by_function and isinstance(self.receipt, _Charge):
            return self.receipt.settle(output)
        return self.spender.settle(self.identifier, cell=self.guarantee.cell(output))


@runtime_checkable
class _AskedAt(Protocol):
    def asked_at(self, *, delta: Any) -> Spender: ...


def asked_at(spender: Spender | None, delta: Any) -> Spender | None:
    """The spender that prices at the delta that a caller asked for, if it is one that would else choose a delta."""
    # at delta 0 the guarantee itself says what it costs
    return spender.asked_at(delta=delta) if isinstance(spender, _AskedAt) and delta else spender


@dataclass(frozen=True)
class BoundPayment:
    """The reservation of a search whose store may be copied, killed and resumed: it pays for one release.

    `binding` is the search's commitment to its draws. `outside` keeps the claims of a store on disk apart from it. A
    spender that can be claimed keeps them too, for all who share it. Their order does not matter. Nothing is drawn from
    the data before both have a claim, and nothing is released before both are settled.
    """

    spender: Spender | None
    identifier: str
    binding: str
    outside: ClaimFile | None

    def reserve(self, guarantee: Guarantee, *, label: str, claim: str) -> Receipt | None:
        """Reserve and claim, durably. Again after a crash it charges nothing more.

        Raises `ClaimError` for a search that has released, and `BudgetError` when the spender refuses.
        """
        label = public_text("label", label)
        if self.outside is not None and self.outside.claim(self.binding, claim) is not None:
            raise claim_refusal(f"search {self.identifier}", "released")
        if not isinstance(self.spender, ClaimSpender):
            opened = Payment.open(guarantee, spender=self.spender, label=label, identifier=self.identifier)
            return opened.receipt
        refuse_while_starting("a paid run")
        return self.spender.reserve(
            guarantee, label=label, identifier=self.identifier, binding=self.binding, claim=claim
        )

    def claim(self, claim: str, *, release: str | None) -> None:
        """Take the reservation over, durably, before a search that has reserved continues.

        Raises `ClaimError` where it is not there, is bound otherwise, or is settled with another release than
        `release`, this search's own once it is known.
        """
        settled = [None if self.outside is None else self.outside.claim(self.binding, claim)]
        if isinstance(self.spender, ClaimSpender):
            settled.append(self.spender.claim(self.identifier, binding=self.binding, claim=claim))
        if "" in settled:
            raise claim_refusal(f"search {self.identifier}", "closed")
        if any(found not in (None, release) for found in settled):
            raise claim_refusal(f"search {self.identifier}", "released")

    def settle(self, claim: str, release: str) -> Receipt | None:
        """Settle with the hash of the coming release. Only then may it be released. Again it gives the same receipt.

        Raises `ClaimError` when another claim came later, or another release was settled.
        """
        receipt = None
        if isinstance(self.spender, ClaimSpender):
            receipt = self.spender.settle(self.identifier, claim=claim, release=release)
        if self.outside is not None:
            self.outside.settle(self.binding, claim, release)
        if self.spender is None or isinstance(self.spender, ClaimSpender):
            return receipt
        return self.spender.settle(self.identifier)


def paid(
    run: Callable[[], Any],
    guarantee: Guarantee | OutputGuarantee,
    *,
    spender: Spender | None,
    label: str,
    replayable: bool = False,
    form: Callable[..., _Release] = Release,  # type: ignore[assignment]
) -> _Release:
    """Reserve the worst case of `guarantee`, call `run`, settle at the realised price, and release the output.

    The reservation is durable when the run begins. If the run raises, the exception passes through and the whole
    reservation stays charged: an exception may tell of the data, and the run's earlier effects are not undone.

    Args:
        run: the private run, called without arguments. All that depends on the data happens in it, and its arguments
            are checked before (you must ensure both).
        guarantee: the promise of the run, public.
        spender: the budget that pays. With None nothing is paid, and the release has no receipt.
        label: public text for the record, 1 to 200 printable characters.
        replayable: whether the run draws from your own source, and so promises nothing to anyone who knows its key.
            False unless given.
        form: makes the release from the keywords of `Release`, which is the default.

    Returns:
        The release. Its guarantee is the promise, the largest price of an output guarantee. Its `realised` price is
        that of the output, if `guarantee` is an output guarantee.

    Raises:
        BudgetError: if the spender refuses.
        StartingProcessError: if a spender is given in a child process that is being started.
        ArgumentError: if `label` does not fit, `guarantee` is not a guarantee (`PromiseError`), or the output is in a
            cell without a price. The charge stays in the last case.
        TypeError: if `label` is not text or `spender` is not a `Spender`.

    >>> from dpselect.privacy import pure_dp
    >>> from dpselect.randomness import keyed_source
    >>> paid(lambda: keyed_source(1).below(6), pure_dp(epsilon=1.0), spender=None, label="a die").value
    2
    """
    payment = Payment.open(guarantee, spender=spender, label=label)
    output = run()
    receipt = payment.close(output)
    if not isinstance(guarantee, OutputGuarantee):
        return form(value=output, guarantee=guarantee, receipt=receipt, replayable=replayable)
    promised, realised = guarantee.worst(), guarantee.observed(output)
    return form(value=output, guarantee=promised, receipt=receipt, replayable=replayable, realised=realised)


class PaidSession(Session, ABC):
    """A session with one price for all of its answers.

    It is reserved when the session is made, not at its first answer. So a budget refuses before there is a secret to
    ask about, and a ledger keeps other mechanisms out of an interactive one from the start. `close` settles it at the
    realised price. As a context it is closed at the end. After an exception it is not, and the whole reservation stays
    charged. Sessions whose answers have a price each reserve each of them.
    """

    _payment: Payment | None = None
    _settled: Receipt | None = None
    _closed = False

    @property
    def receipt(self) -> Receipt | None:
        """The receipt of the settlement, or of the reservation while the session is open. None without a spender."""
        return self._settled or (None if self._payment is None else self._payment.receipt)

    @answers
    def close(self) -> Receipt | None:
        """End the session, and settle at the realised price. Nothing is answered after that."""
        self._closed = True
        if self._payment is not None and self._settled is None:
            self._settled = self._payment.close(self._outcome())
        return self._settled

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()

    def _pay(self, payment: Payment | None) -> None:
        self._payment = payment

    @abstractmethod
    def _outcome(self) -> Any:
        """The output so far, as far as its price depends on it, or `IN_FULL`."""

    def _refuse_when_closed(self) -> None:
        if self._closed:
            raise BudgetError("this session is closed and settled; open and charge a new one")
