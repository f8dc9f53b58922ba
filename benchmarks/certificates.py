"""What ways to reuse a holdout certify, beside how far the worst attacks get, in one table.

    python -m benchmarks.certificates [--rows 10000] [--questions 1000] [--answers 10] [--runs 200] [--page FILE]

Labels are coin flips, so that everything scores one half on new rows; the error of a way is how far from it anything
is that it shows. `certified` is the bound on the largest error of all answers that holds but for a probability of 0.05,
whatever is asked; `measured` the 95 % quantile of the largest error in the runs of the worst of the attacks,
`missed` the share of its runs in which an interval (or the bound) missed one half, with its 99 % upper
confidence bound.

- fixed models, Bonferroni: all scores, Hoeffding's inequality for models that were fixed before; for `adaptive models`
  it is the same bound, which does not cover them.
- the Ladder (Blum and Hardt 2015): the best score so far, in steps; the step has the smallest bound, by Theorem 7 of
  docs/theory/generalisation.md with the histories that the Ladder has: steps only upwards.
- Thresholdout (Dwork et al. 2015): the claim, unless the score is far from it, and then the score, with Laplace noise.
  Noise and threshold are those with the smallest measured error; so tuned it certifies nothing.
- counting, gaussian: `dpselect holdout`, claims and few scores; all scores with noise.

Attacks: `votes`, each question random answers, in the end their majority with the weights that the replies have;
`rare`, the same with claims of one half, so that scores are told where they are far from it; `climbing`, an
answer in twenty turned round and kept where that is told to be better; `boasts`, random answers that are claimed to be
better than they are, by more and more.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from benchmarks.gate import upper
from dpselect.holdout import HoldoutRequest
from dpselect.holdout.counting import CountingPlan
from dpselect.holdout.draws import Draws
from dpselect.holdout.scores import METRICS, Scored

Array = NDArray[np.float64]
FAILURE = 0.05


@dataclass(frozen=True)
class Setting:
    """How many rows, questions, and answers with a score."""

    rows: int
    questions: int
    answers: int


class Way:
    """One holdout in use: replies to guesses, each the amount by which it is better than it seems to be, or None."""

    certified: float | None = None

    def __init__(self, setting: Setting, random: np.random.Generator) -> None:
        self.setting, self.random = setting, random
        self.labels = random.random(setting.rows) < 0.5
        self.worst, self.missed = 0.0, False

    def score(self, guess: NDArray[np.bool_]) -> float:
        return float(np.mean(guess == self.labels))

    def tell(self, shown: float, low: float, high: float) -> None:
        self.worst = max(self.worst, abs(shown - 0.5))
        self.missed |= not low <= 0.5 <= high

    def ask(self, guess: NDArray[np.bool_], claim: float | None) -> float:
        """The reply less one half; 0 for a claim that is confirmed."""
        raise NotImplementedError


class Fixed(Way):
    """Exact scores, and the bound for models that were fixed before."""

    def __init__(self, setting: Setting, random: np.random.Generator) -> None:
        super().__init__(setting, random)
        self.certified = math.sqrt(math.log(2.0 * setting.questions / FAILURE) / (2.0 * setting.rows))

    def ask(self, guess: NDArray[np.bool_], claim: float | None) -> float:  # noqa: ARG002
        score = self.score(guess)
        self.tell(score, score - (self.certified or 0.0), score + (self.certified or 0.0))
        return score - 0.5


def ladder_bound(setting: Setting, step: float) -> float:
    """Theorem 7 for the Ladder: which questions were better, and the levels, in increasing order."""
    levels = math.ceil(1.0 / step) + 1
    b = np.arange(min(levels, setting.questions), dtype=np.float64)
    chosen = gammaln(setting.questions + 1.0) - gammaln(b + 2.0) - gammaln(setting.questions - b)
    heights = gammaln(levels + 1.0) - gammaln(b + 1.0) - gammaln(levels - b + 1.0)
    functions = float(logsumexp(chosen + heights))
    return math.sqrt((functions + math.log(2.0 / FAILURE)) / (2.0 * setting.rows)) + step


class Ladder(Way):
    """The best score so far, only where it is better by a step, rounded to the step. Says of the others: not better."""

    def __init__(self, setting: Setting, random: np.random.Generator) -> None:
        super().__init__(setting, random)
        self.step = min((2.0**-k for k in range(1, 12)), key=lambda step: ladder_bound(setting, step))
        self.certified, self.best = ladder_bound(setting, self.step), 0.0

    def ask(self, guess: NDArray[np.bool_], claim: float | None) -> float:  # noqa: ARG002
        score = self.score(guess)
        if score <= self.best + self.step:
            return 0.0
        self.best = shown = round(score / self.step) * self.step
        self.tell(shown, shown - (self.certified or 0.0), shown + (self.certified or 0.0))
        return shown - 0.5


class Thresholdout(Way):
    """The claim, unless the score with noise is far from it; so many scores."""

    noise, threshold = 0.5, 4.0
    """In standard deviations of a score."""

    def __init__(self, setting: Setting, random: np.random.Generator) -> None:
        super().__init__(setting, random)
        self.unit = 0.5 / math.sqrt(setting.rows)
        self.left, self.line = setting.answers, 0.0
        self.refresh()

    def refresh(self) -> None:
        self.line = self.unit * (self.threshold + self.random.laplace(scale=2.0 * self.noise))

    def ask(self, guess: NDArray[np.bool_], claim: float | None) -> float:
        score, claim = self.score(guess), 0.5 if claim is None else claim
        if not self.left:
            return 0.0
        if abs(score - claim) <= self.line + self.unit * self.random.laplace(scale=4.0 * self.noise):
            # what is off is the claim that was confirmed, by as much as the claim is from one half
            self.tell(claim, 0.0, 1.0)
            return 0.0
        self.left -= 1
        shown = score + self.unit * self.random.laplace(scale=self.noise)
        self.refresh()
        self.tell(shown, 0.0, 1.0)
        return shown - 0.5


class Certified(Way):
    """`dpselect holdout` with one of its mechanisms."""

    mechanism = "counting"

    def __init__(self, setting: Setting, random: np.random.Generator) -> None:
        super().__init__(setting, random)
        answers = setting.answers if self.mechanism == "counting" else setting.questions
        request = HoldoutRequest(
            metric="accuracy",
            questions=setting.questions,
            answers=answers,
            failure_probability=FAILURE,
            mechanism=self.mechanism,
        )
        self.plan = request.plan(rows=setting.rows).plan
        self.certified, self.left, self.asked = self.plan.error, answers, 0
        self.key = random.bytes(32)

    def ask(self, guess: NDArray[np.bool_], claim: float | None) -> float:
        if not self.left:
            return 0.0
        self.asked += 1
        scored = Scored(METRICS["accuracy"], self.labels, guess, 1.0)
        agrees, shown = self.plan.answer(scored, claim, Draws(self.key, str(self.asked), str(self.asked), 0))
        if not (agrees and isinstance(self.plan, CountingPlan)):
            self.left -= 1
        low, high = self.plan.interval(shown, agrees) or (0.0, 1.0)
        self.tell(shown, low, high)
        return 0.0 if agrees and isinstance(self.plan, CountingPlan) else shown - 0.5


class Noisy(Certified):
    """All scores, with noise."""

    mechanism = "gaussian"


def fixed(way: Way) -> None:
    """Models that were fixed before: no attack."""
    for _ in range(way.setting.questions):
        way.ask(way.random.random(way.setting.rows) < 0.5, 0.5)


def votes(way: Way, claim: float | None = None) -> None:
    """The majority of what was asked, each with the weight of the reply to it; asked in the end."""
    rows, tally = way.setting.rows, np.zeros(way.setting.rows)
    scored = way.setting.answers if claim is not None or isinstance(way, (Certified, Thresholdout)) else 1 << 62
    if isinstance(way, Noisy):
        scored = 1 << 62
    for _ in range(way.setting.questions - 1):
        if scored <= 1:
            break
        guess = way.random.random(rows) < 0.5
        reply = way.ask(guess, claim)
        tally += reply * (2.0 * guess - 1.0)
        scored -= reply != 0.0
    way.ask(tally + 1e-9 * way.random.random(rows) > 0.0, None if claim is None else 0.5)


def rare(way: Way) -> None:
    """Claims of one half: what is told are scores far from it."""
    votes(way, 0.5)


def climbing(way: Way) -> None:
    """An answer in twenty turned round, kept where the reply is better."""
    rows = way.setting.rows
    best = way.random.random(rows) < 0.5
    height = way.ask(best, None)
    for _ in range(way.setting.questions - 1):
        guess = best ^ (way.random.random(rows) < 0.05)
        reply = way.ask(guess, 0.5 + height)
        if reply > height:
            best, height = guess, reply


def boasts(way: Way) -> None:
    """Claims that are too large, by an eighth of a standard deviation more each time."""
    for number in range(min(way.setting.questions, 200)):
        guess = way.random.random(way.setting.rows) < 0.5
        way.ask(guess, 0.5 + number * 0.0625 / math.sqrt(way.setting.rows))


ATTACKS: dict[str, Callable[[Way], None]] = {"votes": votes, "rare": rare, "climbing": climbing, "boasts": boasts}


@dataclass(frozen=True)
class Row:
    """One way under one attack."""

    way: str
    certified: float | None
    attack: str
    measured: float
    missed: int
    runs: int

    def cells(self) -> list[str]:
        certified = "none" if self.certified is None else f"{self.certified:.3f}"
        share = "" if self.certified is None or not self.measured else f"{self.certified / self.measured:.1f}"
        chance = (
            "" if self.certified is None else f"{self.missed / self.runs:.3f} ({upper(self.missed, self.runs):.3f})"
        )
        return [self.way, certified, self.attack, f"{self.measured:.3f}", share, chance]


def run(name: str, make: type[Way], attack: str, act: Callable[[Way], None], setting: Setting, runs: int) -> Row:
    """One row of the table."""
    worst, missed, certified = [], 0, None
    for number in range(runs):
        way = make(setting, np.random.default_rng([5, number]))
        act(way)
        worst.append(way.worst)
        missed += way.missed
        certified = way.certified
    return Row(name, certified, attack, float(np.quantile(worst, 0.95)), missed, runs)


def tuned(setting: Setting, runs: int) -> type[Way]:
    """Thresholdout with the noise and threshold whose worst measured error is smallest, on seeds of their own."""
    best: tuple[float, float, float] = (math.inf, 0.0, 0.0)
    for noise in (0.1, 0.25, 0.5, 1.0, 2.0):
        for threshold in (2.0, 4.0, 8.0):
            made = type("Tried", (Thresholdout,), {"noise": noise, "threshold": threshold})
            worst = max(run("", made, name, act, setting, runs).measured for name, act in ATTACKS.items())
            best = min(best, (worst, noise, threshold))
    return type("Tuned", (Thresholdout,), {"noise": best[1], "threshold": best[2]})


def table(setting: Setting, runs: int) -> list[Row]:
    """The worst attack on each way."""
    rows = [run("Bonferroni, fixed models", Fixed, "none", fixed, setting, runs)]
    for name, make in {
        "Bonferroni, adaptive models": Fixed,
        "the Ladder": Ladder,
        "Thresholdout, tuned": tuned(setting, max(runs // 10, 3)),
        "holdout, counting": Certified,
        "holdout, gaussian": Noisy,
    }.items():
        found = [run(name, make, attack, act, setting, runs) for attack, act in ATTACKS.items()]
        rows.append(max(found, key=lambda row: row.measured))
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.certificates", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--answers", type=int, default=10)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args(arguments)
    setting = Setting(given.rows, given.questions, given.answers)
    head = ["way", "certified", "worst attack", "measured", "certified/measured", "missed"]
    cells = [head, ["---"] * len(head), *(row.cells() for row in table(setting, given.runs))]
    text = "\n".join(f"| {' | '.join(row)} |" for row in cells)
    print(f"{setting.rows} rows, {setting.questions} questions, {setting.answers} scores; {given.runs} runs\n\n{text}")
    if given.page is not None:
        given.page.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
