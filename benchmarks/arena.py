"""Attacks on whatever tells how candidates do on held-out tasks, beside an honest searcher, in one table.

    python -m benchmarks.arena [--arenas 300] [--tasks 500] [--asks 200] [--only votes ...] [--page FILE]

What is told is an exact score, a rounded one, the Ladder (Blum and Hardt 2015), Thresholdout (Dwork et al. 2015; noise
of half a standard deviation of a score, a threshold of four times that), the holdout's certified claims (the claim is
the searcher's own estimate; 10 scores; a candidate leads when its interval is above that of the one before), and the
gate (even stakes, failure probability 0.05). Scores and Thresholdout have no rule of acceptance of their own: who
shows the highest score leads.

Attacks: answers of coin flips, so that nothing is better than one half on fresh tasks. `votes`: the majority of what
did well and of the opposite of what did badly. `bisection`: answers turned round block by block, kept where the reply
is better. `climbing`: a random twentieth turned round, kept where it is better. `replay`: votes, each submitted five
times to average noise away. `collusion`: votes of as many
accounts as there are asks, which tell each other everything. The `honest` searcher
has experiments of which a tenth are better by 0.1 and the others not at all, and builds on what leads.

`false` is the share of arenas in which something led that was not better than what it replaced, with its 99 %
upper confidence bound; `over-fitting` the leader's score on the tasks less its worth on fresh ones; `improvement` the
leader's worth less the first one's. Every number is drawn from a fixed seed.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.gate import DISCORDANT, FAILURE, log_tails, upper
from dpselect.holdout import HoldoutRequest

Outcomes = NDArray[np.bool_]


class Board:
    """What tells a searcher something, and who leads on it. `bits`: a reply says better or not, and nothing else."""

    bits = False

    def __init__(self, tasks: int, asks: int, random: np.random.Generator) -> None:
        self.tasks, self.asks, self.random = tasks, asks, random
        self.leader = np.zeros(tasks, dtype=bool)
        self.worth, self.false = 0.0, False

    def start(self, outcomes: Outcomes, worth: float) -> None:
        """The first leader, which everybody knows."""
        self.leader, self.worth = outcomes, worth

    def lead(self, outcomes: Outcomes, worth: float) -> None:
        self.false |= worth <= self.worth
        self.leader, self.worth = outcomes, worth

    def estimate(self, worth: float) -> float:
        """What the searcher's own tasks say."""
        return float(self.random.binomial(self.tasks, worth) / self.tasks)

    def submit(self, outcomes: Outcomes, worth: float, account: int = 0) -> float:
        """The reply as a number around 0, 0 when there is none."""
        raise NotImplementedError


class Scores(Board):
    """The score, or the score rounded to a step."""

    step = 0.0

    def start(self, outcomes: Outcomes, worth: float) -> None:
        super().start(outcomes, worth)
        self.best = self.shown(outcomes)

    def shown(self, outcomes: Outcomes) -> float:
        score = float(outcomes.mean())
        return round(score / self.step) * self.step if self.step else score

    def submit(self, outcomes: Outcomes, worth: float, account: int = 0) -> float:  # noqa: ARG002
        shown = self.shown(outcomes)
        if shown > self.best:
            self.best = shown
            self.lead(outcomes, worth)
        return shown - 0.5


class RoundedScores(Scores):
    """Two digits."""

    step = 0.01


class Ladder(Scores):
    """A new score only where it is better by a step than the best of the account so far, and rounded to the step."""

    bits = True

    def start(self, outcomes: Outcomes, worth: float) -> None:
        self.step = 1.0 / math.sqrt(self.tasks)
        self.mine: dict[int, float] = {}
        super().start(outcomes, worth)

    def submit(self, outcomes: Outcomes, worth: float, account: int = 0) -> float:
        score = float(outcomes.mean())
        if score <= self.mine.get(account, -math.inf) + self.step:
            return -0.5 * self.step
        self.mine[account] = shown = self.shown(outcomes)
        if shown > self.best:
            self.best = shown
            self.lead(outcomes, worth)
        return shown - 0.5


class Thresholdout(Scores):
    """The searcher's own estimate, unless the held-out score is far from it."""

    def start(self, outcomes: Outcomes, worth: float) -> None:
        self.noise = 0.25 / math.sqrt(self.tasks)
        super().start(outcomes, worth)
        self.refresh()

    def refresh(self) -> None:
        self.threshold = 4.0 * self.noise + self.random.laplace(scale=2.0 * self.noise)

    def submit(self, outcomes: Outcomes, worth: float, account: int = 0) -> float:  # noqa: ARG002
        score, shown = float(outcomes.mean()), self.estimate(worth)
        if abs(score - shown) > self.threshold + self.random.laplace(scale=4.0 * self.noise):
            shown = score + self.random.laplace(scale=self.noise)
            self.refresh()
        if shown > self.best:
            self.best = shown
            self.lead(outcomes, worth)
        return shown - 0.5


class Claims(Board):
    """`dpselect holdout` with the searcher's estimate as the claim."""

    def start(self, outcomes: Outcomes, worth: float) -> None:
        super().start(outcomes, worth)
        request = HoldoutRequest(metric="accuracy", questions=self.asks, answers=10, failure_probability=FAILURE)
        self.plan: Any = request.plan(rows=self.tasks).plan
        self.high, self.left = worth, self.plan.answers

    def submit(self, outcomes: Outcomes, worth: float, account: int = 0) -> float:  # noqa: ARG002
        if not self.left:
            return 0.0
        score, claim = float(outcomes.mean()), self.estimate(worth)
        agrees = abs(score - claim) <= self.plan.tolerance
        value = claim if agrees else self.plan.rounded(score)
        self.left -= not agrees
        low, high = self.plan.interval(value, agrees)
        if low > self.high:
            self.high = high
            self.lead(outcomes, worth)
        return 0.0 if agrees else value - 0.5


class OneBit(Board):
    """The gate."""

    bits = True
    tails: NDArray[Any]

    def start(self, outcomes: Outcomes, worth: float) -> None:
        super().start(outcomes, worth)
        self.purse, self.left = FAILURE, self.asks

    def submit(self, outcomes: Outcomes, worth: float, account: int = 0) -> float:  # noqa: ARG002
        stake, self.left = self.purse / max(self.left, 1), self.left - 1
        if not stake:
            return 0.0
        wins = int((outcomes & ~self.leader).sum())
        losses = int((self.leader & ~outcomes).sum())
        accepted = self.tails[wins + losses, wins] <= math.log(stake)
        self.purse = stake if accepted else self.purse - stake
        if accepted:
            self.lead(outcomes, worth)
        return 0.5 if accepted else -0.5


BOARDS: dict[str, type[Board]] = {
    "exact scores": Scores,
    "rounded scores": RoundedScores,
    "the Ladder": Ladder,
    "Thresholdout": Thresholdout,
    "holdout, claims": Claims,
    "the gate": OneBit,
}


def voting(board: Board, random: np.random.Generator, *, accounts: int = 1, repeats: int = 1) -> None:
    """Half of the asks for answers of coin flips, the others for what they vote for so far."""
    tally = np.zeros(board.tasks)
    for number in range(board.asks // repeats):
        guess = random.random(board.tasks) < 0.5
        if number % 2:
            guess = tally + random.normal(scale=1e-9, size=board.tasks) > 0.0
        replies = [board.submit(guess, 0.5, number % accounts) for _ in range(repeats)]
        tally += np.mean(replies) * (2 * guess - 1)


def turning(board: Board, blocks: Callable[[int], NDArray[Any]]) -> None:
    """Answers turned round where `blocks` says, kept where the reply is better."""
    guess, best = board.leader, 0.0 if board.bits else board.submit(board.leader, 0.5)
    for number in range(board.asks - 1):
        turned = guess ^ blocks(number)
        reply = board.submit(turned, 0.5)
        if reply > best:
            guess, best = turned, 0.0 if board.bits else reply


def bisection(board: Board, _random: np.random.Generator) -> None:
    size = math.ceil(board.tasks / board.asks)
    places = np.arange(board.tasks) // (5 * size if board.bits else size)
    turning(board, lambda number: places == number)


def climbing(board: Board, random: np.random.Generator) -> None:
    turning(board, lambda _: random.random(board.tasks) < 0.05)


def honest(board: Board, random: np.random.Generator) -> None:
    """What leads with one more change: it solves some tasks and spoils others, a fifth of all together."""
    for _ in range(board.asks):
        gain = 0.1 * (random.random() < 0.1)
        rate = board.worth
        up = min(0.5 * (DISCORDANT + gain), 1.0 - rate)
        down = min(0.5 * (DISCORDANT - gain), up, rate)
        draws = random.random(board.tasks)
        board.submit(np.where(board.leader, draws * rate >= down, draws * (1.0 - rate) < up), rate + up - down)


ATTACKS: dict[str, Callable[[Board, np.random.Generator], None]] = {
    "votes": voting,
    "bisection": bisection,
    "climbing": climbing,
    "replay": lambda board, random: voting(board, random, repeats=5),
    "collusion": lambda board, random: voting(board, random, accounts=board.asks),
    "honest": honest,
}


def arena(name: str, attack: str, options: argparse.Namespace) -> tuple[float, float, float]:
    """The share of arenas with a false accept, the leader's over-fitting and its improvement, on average."""
    found = []
    for number in range(options.arenas):
        random = np.random.default_rng([17, number])
        board = BOARDS[name](options.tasks, options.asks, random)
        board.start(random.random(options.tasks) < 0.5, 0.5)
        ATTACKS[attack](board, random)
        found.append((board.false, float(board.leader.mean()) - board.worth, board.worth - 0.5))
    false, fitted, gained = np.mean(found, axis=0)
    return float(false), float(fitted), float(gained)


def table(options: argparse.Namespace) -> str:
    """All of it as Markdown."""
    OneBit.tails = log_tails(options.tasks)
    lines = ["| attack | told | false (at most) | over-fitting | improvement |", "|---|---|---|---|---|"]
    for attack in options.only or ATTACKS:
        for name in BOARDS:
            false, fitted, gained = arena(name, attack, options)
            bound = upper(round(false * options.arenas), options.arenas)
            lines.append(f"| {attack} | {name} | {false:.3f} ({bound:.3f}) | {fitted:+.3f} | {gained:.3f} |")
            print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> str:
    """Print the table, and write it."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.arena", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arenas", type=int, default=300)
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--asks", type=int, default=200)
    parser.add_argument("--only", nargs="*", choices=tuple(ATTACKS))
    parser.add_argument("--page", type=Path)
    options = parser.parse_args(arguments)
    found = table(options)
    if options.page:
        options.page.write_text(found, encoding="utf-8")
    return found


if __name__ == "__main__":
    main()
