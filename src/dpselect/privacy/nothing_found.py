"""The warning that goes with a release that holds nothing. That it holds nothing is released, so saying it is free."""

from __future__ import annotations

import warnings

from dpselect.errors import NothingFoundWarning, levels_to_the_caller

__all__ = ["nothing_found", "warn_if_nothing_found"]


def warn_if_nothing_found(released: object, *, no_runs: float = 0.0) -> None:
    """Warn if `released` is None. The text depends on public numbers only.

    `released` must itself be part of the release. `no_runs` is the probability that the law of the number of runs
    gives to zero.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warn_if_nothing_found(None, no_runs=0.25)
    >>> caught[0].category.__name__
    'NothingFoundWarning'
    """
    if released is not None:
        return
    warnings.warn(nothing_found(no_runs), NothingFoundWarning, stacklevel=levels_to_the_caller())


def nothing_found(no_runs: float) -> str:
    """Return the message for an empty release."""
    law = f", or there was no run, which this distribution has with probability {no_runs:.3g}" if no_runs else ""
    return (
        "nothing was found, and the release is paid for anyway. Either no run met what was asked, or every run "
        f"failed (one that raises does so silently: rehearse= tries it on synthetic rows){law}. Which it "
        "was is secret"
    )
