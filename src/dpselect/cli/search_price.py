"""The price of a search as the command line describes one: its law, proposals that learn, a subset of the rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dpselect.accounting import best_of
from dpselect.cli.described import law_of, parse_settings
from dpselect.errors import ArgumentError
from dpselect.privacy import Guarantee, compose
from dpselect.repetitions import Repetitions
from dpselect.repetitions.by_name import GRID

__all__ = ["RATIO_HELP", "SUBSET_HELP", "parse_final_rows", "parse_ratio", "priced", "searched", "two_numbers"]

RATIO_HELP = (
    "LOWER:UPPER, if later trials learn from earlier ones: bounds on the ratio of a proposal's density to that of the "
    "search space."
)
SUBSET_HELP = "Search on a random subset, then one final run on the 'rest' of the rows or on 'all'."


def two_numbers(name: str, form: str, text: str | None) -> tuple[float, float] | None:
    """The two numbers that an option gives as `form`. Raises `ArgumentError`.

    >>> two_numbers("proposal_ratio", "LOWER:UPPER", "0.8:1.25")
    (0.8, 1.25)
    """
    if text is None:
        return None
    one, _, other = text.partition(":")
    try:
        return float(one), float(other)
    except ValueError:
        raise ArgumentError(f"{name} must be {form}, two numbers, got {text!r}") from None


def parse_ratio(text: str | None) -> tuple[float, float] | None:
    """The option --proposal-ratio."""
    return two_numbers("proposal_ratio", "LOWER:UPPER", text)


def parse_final_rows(text: str) -> Any:
    """'rest' or 'all', or `ArgumentError`."""
    if text not in ("rest", "all"):
        raise ArgumentError(f"subset must be 'rest' or 'all', got {text!r}")
    return text


def searched(
    base: Guarantee, law: Repetitions, *, ratio: tuple[float, float] | None = None, bound: str | None = None
) -> Guarantee:
    """The guarantee of the best of K runs, with proposals that learn where a ratio is given."""
    if ratio is None:
        return best_of(base, law, bound=bound)
    from dpselect.accounting import adaptive_best_of  # here and below, or each price would wait for its import

    return adaptive_best_of(base, law, lower_ratio=ratio[0], upper_ratio=ratio[1], bound=bound)


def priced(
    base: Guarantee,
    repetitions: str,
    *,
    bound: str | None = None,
    ratio: tuple[float, float] | None = None,
    subset: str | None = None,
    sampling_rate: float | None = None,
) -> tuple[Guarantee, str, dict[str, Any]]:
    """The guarantee of the search, the name of the bound, and a description of the law.

    With `subset` the final run after a search on a subset is counted in.
    """
    if (subset is None) != (sampling_rate is None):
        raise ArgumentError("subset and sampling_rate go together")
    name, settings = parse_settings(repetitions)
    described: dict[str, Any]
    if name == GRID:
        count = settings.get("count")
        if set(settings) != {"count"} or not isinstance(count, int) or count < 1:
            raise ArgumentError("repetitions 'grid': count must be an integer of at least 1. Write grid:count=10")
        if ratio is not None:
            raise ArgumentError("a grid runs every candidate once: proposal_ratio does not go with it")
        if bound not in (None, "composition"):
            raise ArgumentError(f"bound {bound!r} does not price a grid: its candidates differ; use composition")
        # exact for releasing all candidates, an upper bound for releasing the best: no lower value is known
        total = replace(compose(*[base] * count), lower_profile=None)
        bound, described = "composition", {"law": GRID, "count": count}
    else:
        law = law_of(repetitions)
        total, described = searched(base, law, ratio=ratio, bound=bound), law.describe()
    if subset is not None and sampling_rate is not None:
        from dpselect.accounting import tune_on_subset

        rows = parse_final_rows(subset)
        total = tune_on_subset(search=total, final=base, sampling_rate=sampling_rate, final_rows=rows)
    return total, bound or "smallest", described
