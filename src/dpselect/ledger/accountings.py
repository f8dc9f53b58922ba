"""The ways of counting by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpselect.ledger.accounting import Accounting, OutputAccounting, SequenceAccounting
from dpselect.ledger.filters import RenyiAccounting

__all__ = ["ACCOUNTINGS"]

ACCOUNTINGS: Mapping[str, Accounting] = MappingProxyType(
    {"output": OutputAccounting(), "renyi": RenyiAccounting(), "pld": SequenceAccounting()}
)
