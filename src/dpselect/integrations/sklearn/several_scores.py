"""Several scores in one search: one decides which run wins, and the others are figures of the winner."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import check_scoring

from dpselect.errors import ArgumentError, flag
from dpselect.integrations.sklearn.scoring import PublicScores, RowScore, Scoring, scoring_of
from dpselect.randomness import RandomSource
from dpselect.study.metrics import ScoreNoise

__all__ = ["SeveralScores", "named_scores", "scorers_of", "scorings_of"]


def named_scores(scoring: Any, refit: Any) -> dict[str, Any] | None:
    """The scores by name, the one that decides first, or None if `scoring` is one score.

    Raises `ArgumentError` if `refit` names no score, or is True with several.
    """
    if not isinstance(scoring, (Mapping, list, tuple, set, frozenset)):
        if isinstance(refit, str) and refit == scoring:
            return None
        flag("refit", refit)
        return None
    scores = dict(scoring) if isinstance(scoring, Mapping) else {name: name for name in scoring}
    names = ", ".join(map(repr, scores))
    if not scores or not all(isinstance(name, str) for name in scores) or isinstance(scoring, (set, frozenset)):
        raise ArgumentError(
            "scoring must be one score, a list of names of scores, or a dictionary from names to scores"
        )
    if refit is not False and not (isinstance(refit, str) and refit in scores):
        raise ArgumentError(
            f"refit must be the name of the score that decides ({names}), or False, got {refit!r}. With a name a "
            "further model is trained on all rows. With False none is, and the first score decides"
        )
    decides = refit or next(iter(scores))
    return {decides: scores[decides], **scores}


def scorers_of(estimator: Any, scoring: Any) -> Any:
    """The function of a model and rows (X, y) for a score, or a dictionary of them for several by name."""
    if isinstance(scoring, Mapping):
        return {name: scorers_of(estimator, each) for name, each in scoring.items()}
    return scoring if isinstance(scoring, RowScore) else check_scoring(estimator, scoring=scoring)


@dataclass(frozen=True, repr=False)
class SeveralScores:
    """Scores of one model on the same private rows, by name. The first decides.

    Claim: `noisy` costs a row what the noise of one score alone would cost. Each score's sums have the noise of a part
    of epsilon: half of it for the score that decides, and the rest in equal parts for the others. Proof: the sums are
    independent given the rows, so the guarantees of the parts compose to epsilon. All else is a function of the noisy
    sums. QED
    """

    scores: Mapping[str, Scoring]

    @property
    def rules(self) -> list[RowScore]:
        """The rules of the caller's own among them."""
        return [rule for each in self.scores.values() for rule in each.rules]

    @property
    def room(self) -> int:
        """Bytes that the sums take at most."""
        return sum(each.room for each in self.scores.values())

    def total(self, model: Any, X: Any, y: Any) -> NDArray[Any]:
        """The sums of each score over private rows, shape (scores,). See `Scoring.total`."""
        return _listed([each.total(model, X, y) for each in self.scores.values()])

    def strict_total(self, model: Any, X: Any, y: Any) -> NDArray[Any]:
        """The same. Raises what a model or a rule raises."""
        return _listed([each.strict_total(model, X, y) for each in self.scores.values()])

    def noisy(self, total: NDArray[Any], random: RandomSource) -> NDArray[Any]:
        """The sums, each with its own part of the noise."""
        parts = zip(self.scores.values(), total, strict=True)
        return _listed([each.noisy(sums, random) for each, sums in parts])

    def score(self, sums: NDArray[Any]) -> float:
        """The score that decides, larger being better."""
        return next(iter(self.scores.values())).score(sums[0])

    def shown(self, sums: NDArray[Any], *, runs: float, proved: bool) -> dict[str, Any]:
        """The attributes of a search that these sums tell. Each interval holds by itself."""
        parts = list(zip(self.scores.items(), sums, strict=True))
        found: dict[str, Any] = {"best_scores_": {name: each.score(noisy) for (name, each), noisy in parts}}
        if proved:
            intervals = {name: each.interval(noisy, runs=runs) for (name, each), noisy in parts}
            found |= {
                "best_score_intervals_": intervals,
                "best_score_interval_": next(iter(intervals.values())),
            }
        return found


def _listed(parts: list[NDArray[np.int64]]) -> NDArray[Any]:
    """Arrays of unlike shapes as an array of them, which add up one by one."""
    found = np.empty(len(parts), dtype=object)
    for place, part in enumerate(parts):
        found[place] = part
    return found


def scorings_of(
    estimator: Any,
    scoring: Any,
    *,
    public: tuple[Any, Any] | None,
    noise: ScoreNoise | None,
    **facts: Any,
) -> Scoring | SeveralScores | PublicScores:
    """The scoring that one score names, or several by name, of the `public` rows (X, y) if there are any.

    Raises as `scoring_of` does.
    """
    if public:
        named = scoring if isinstance(scoring, Mapping) else {"score": scoring}
        return PublicScores(scorers_of(estimator, named), *public)
    if not isinstance(scoring, Mapping):
        return scoring_of(estimator, scoring, noise=noise, **facts)
    assert noise is not None
    others = len(scoring) - 1
    shares = [Fraction(1, 2), *[Fraction(1, 2 * others)] * others] if others else [Fraction(1)]
    parts = zip(scoring.items(), noise.split(shares), strict=True)
    return SeveralScores({name: scoring_of(estimator, each, noise=own, **facts) for (name, each), own in parts})
