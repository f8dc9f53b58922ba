"""Claims of a search decide which copy may release. They are in the per-user state folder, outside the search's store.

A store that is copied, or restored from a backup, looks at every stage as it did when the copy was made. So anyone who
resumes one claims it here first, and only the latest claim can be settled, once, with the hash of one release. These
are the rules of `Budget.claim` and `Budget.settle` too, which hold for several machines.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from dpselect.errors import ClaimError, StudyError, UnwitnessedSearchWarning
from dpselect.storage.heads import HeadFile, KeptHead
from dpselect.storage.keys import state_folder

__all__ = ["ClaimFile", "claim_refusal"]


Why = Literal["released", "closed", "superseded", "bound otherwise"]

_REFUSALS: Final[Mapping[Why, str]] = {
    "released": (
        "has released already, from another copy of its store: the one release is where that copy wrote it. To search "
        "again begin a new search, with its own charge"
    ),
    "closed": (
        "was closed for good before it could release: someone settled it by its identifier. Begin a new search, with "
        "its own charge"
    ),
    "superseded": (
        "was resumed from another copy of its store meanwhile, and that copy alone may release. Nothing was released "
        "here"
    ),
    "bound otherwise": (
        "is bound to other draws: this is a copy of its store from before they were made. Begin a new search, with its "
        "own charge"
    ),
}


def claim_refusal(name: str, why: Why) -> ClaimError:
    """The refusal of a search or its reservation by name.

    `why`: its one release was settled from another copy, it was settled by its identifier alone, another copy was
    resumed since, or this copy was made before the number of runs was drawn.
    """
    return ClaimError(f"{name} {_REFUSALS[why]}")


@dataclass(frozen=True)
class ClaimFile:
    """The claims of one search. Without a folder that can be written it warns, and knows nothing.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = ClaimFile("search", Path(folder))
    ...     file.claim("drawn", "first"), file.claim("drawn", "second"), file.settle("drawn", "second", "hash")
    ...     file.claim("drawn", "third")
    (None, None, None)
    'hash'
    """

    identifier: str
    folder: Path

    @classmethod
    def of(cls, identifier: str) -> ClaimFile:
        """The file of a search in the state folder."""
        return cls(identifier, state_folder() / "searches")

    @property
    def _path(self) -> Path:
        return self.folder / f"{self.identifier}.head"

    def check_unclaimed(self) -> None:
        """Raise `ClaimError` where the search of this identifier was claimed before: to be called before it draws."""
        if self._path.exists():
            raise claim_refusal(f"search {self.identifier}", "bound otherwise")

    def claim(self, binding: str, claim: str) -> str | None:
        """Take the search over: None, or the hash of the release that it is settled with. Durable on return.

        Raises `ClaimError` for another binding, and `StudyError` for a file that is there and cannot be used.
        """
        return self._update(binding, lambda settled, _: (claim, "") if settled is None else None)

    def settle(self, binding: str, claim: str, release: str) -> None:
        """Settle the search with the hash of its release. Durable on return, idempotent.

        Raises `ClaimError` unless `claim` is the latest one and no other release was settled.
        """

        def settled(found: str | None, holder: str | None) -> tuple[str, str] | None:
            if found is not None and found != release:
                raise claim_refusal(f"search {self.identifier}", "released")
            if found is None and holder not in (None, claim):
                raise claim_refusal(f"search {self.identifier}", "superseded")
            return (claim, release) if found is None else None

        self._update(binding, settled)

    def _update(self, binding: str, change: Callable[[str | None, str | None], tuple[str, str] | None]) -> str | None:
        """Change the claim and the release, given both from before. Returns the release from before."""
        released: list[str | None] = [None]

        def next_head(kept: KeptHead | None) -> KeptHead | None:
            holder: str | None = None
            if kept is not None:
                bound, holder, release = kept.head.split(" ")
                if bound != binding:
                    raise claim_refusal(f"search {self.identifier}", "bound otherwise")
                released[0] = release or None
            changed = change(released[0], holder)
            if changed is None:
                return None
            sequence = 1 if kept is None else kept.sequence + 1
            return KeptHead(self.identifier, sequence, " ".join((binding, *changed)), "")

        path = self._path
        try:
            HeadFile(path).change(next_head)
        except OSError as error:
            if path.exists():
                raise StudyError(f"the claims {path} cannot be used: {error.strerror}") from None
            warnings.warn(
                f"{self.folder} cannot be written ({error.strerror}): nothing outside of a search's store knows "
                "whether it has released, so a copy could again. Set XDG_STATE_HOME to a folder that can be written",
                UnwitnessedSearchWarning,
                stacklevel=2,
            )
        except ValueError:
            raise StudyError(f"the claims {path} are damaged: begin a new search, with its own charge") from None
        return released[0]
