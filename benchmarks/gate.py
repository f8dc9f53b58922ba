"""The gate's tables: what is believable, false accepts under attack, power beside fresh tasks, a loop of experiments.

    python -m benchmarks.gate [--only plan exact attacks power loop growth] [--gates 10000] [--loops 100] [--asks 1000]

Takes some minutes. Every number is drawn from a fixed seed.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, gammaln

from dpselect.holdout import Gate, GateRules, advise_gate, plan_gate

Array = NDArray[Any]
FAILURE, TASKS, ASKS, BATCH = 0.05, 200, 100, 1000


def log_tails(most: int) -> Array:
    """log P(Binomial(m, 1/2) >= w) by m and w, of the sign test."""
    table = np.zeros((most + 1, most + 2))
    for count in range(most + 1):
        k = np.arange(count + 1)
        logs = gammaln(count + 1) - gammaln(k + 1) - gammaln(count - k + 1) - count * math.log(2)
        table[count, : count + 1] = np.logaddexp.accumulate(logs[::-1])[::-1]
        table[count, count + 1 :] = -np.inf
    return table


class Gates:
    """Many gates at once, each with one purse, asked at the same time."""

    def __init__(self, count: int, tails: Array) -> None:
        self.purse = np.full(count, FAILURE)
        self.failed = np.zeros(count, dtype=bool)
        self._tails = tails

    def ask(self, candidate: Array, incumbent: Array, share: Array, *, null: bool) -> Array:
        """The bits; `share` is that of the purse which is staked."""
        wins, losses = (candidate > incumbent).sum(axis=1), (candidate < incumbent).sum(axis=1)
        stake = self.purse * share
        with np.errstate(divide="ignore"):
            accepted: Array = (self._tails[wins + losses, wins] + 1e-12 <= np.log(stake)) & (stake > 0.0)
        self.purse = np.where(accepted, stake, self.purse - stake)
        if null:
            self.failed |= accepted
        return accepted


def even(_random: np.random.Generator, asks_left: int, gates: int) -> Array:
    return np.full(gates, 1.0 / asks_left)


def any_share(random: np.random.Generator, _asks_left: int, gates: int) -> Array:
    return random.random(gates)


def votes(gates: Gates, random: np.random.Generator, share: Callable[..., Array]) -> None:
    """Coin flips; every second ask the majority of what was accepted and of the opposite of what was rejected."""
    shape = (len(gates.purse), TASKS)
    incumbent, tally = random.random(shape) < 0.5, np.zeros(shape)
    for left in range(ASKS, 0, -1):
        own = random.random(shape) < 0.5
        candidate = own if left % 2 == 0 or left == ASKS else tally + random.random(shape) > 0.5
        accepted = gates.ask(candidate, incumbent, share(random, left, len(gates.purse)), null=True)
        tally += np.where(accepted[:, None], 1, -1) * (2 * candidate.astype(int) - 1)
        incumbent = np.where(accepted[:, None], candidate, incumbent)


def flips(gates: Gates, random: np.random.Generator, share: Callable[..., Array]) -> None:
    """The incumbent with the answers of a random tenth to two thirds of the tasks turned round; what wins is kept."""
    shape = (len(gates.purse), TASKS)
    incumbent = random.random(shape) < 0.5
    for left in range(ASKS, 0, -1):
        block = random.random(shape) < random.choice([0.1, 0.3, 0.66])
        candidate = incumbent ^ block
        accepted = gates.ask(candidate, incumbent, share(random, left, len(gates.purse)), null=True)
        incumbent = np.where(accepted[:, None], candidate, incumbent)


def probes(gates: Gates, random: np.random.Generator, share: Callable[..., Array]) -> None:
    """A true gain where a coin of the task lands heads; then a candidate that wins where it lands tails.

    The second one loses as much elsewhere, in expectation over fresh tasks: it is no better than the incumbent.
    """
    shape = (len(gates.purse), TASKS)
    incumbent, rate = random.random(shape) < 0.5, np.full(len(gates.purse), 0.5)
    for left in range(ASKS, 0, -2):
        region, coin = random.random(shape) < 0.4, random.random(shape) < 0.5
        lost = random.random(shape) < ((1.0 - rate) / (3.0 * rate))[:, None]
        better = incumbent | (region & coin)
        accepted = gates.ask(better, incumbent, share(random, left, len(gates.purse)), null=False)
        incumbent = np.where(accepted[:, None], better, incumbent)
        rate = np.where(accepted, rate + 0.2 * (1.0 - rate), rate)
        swapped = np.where(region, incumbent | ~coin, incumbent & ~lost)
        told = gates.ask(swapped, incumbent, share(random, left - 1, len(gates.purse)), null=True)
        incumbent = np.where(told[:, None], swapped, incumbent)


def upper(failed: int, count: int) -> float:
    """The 99 % upper confidence bound of Clopper and Pearson (1934)."""
    return float(betaincinv(failed + 1, count - failed, 0.99)) if failed < count else 1.0


def attacks(count: int) -> dict[str, float]:
    """False accepts of attacked gates, by attack."""
    found = {}
    print(f"False accepts of {count} attacked gates: {TASKS} tasks, {ASKS} asks, failure probability {FAILURE}")
    tails = log_tails(TASKS)
    for attack in (votes, flips, probes):
        for share in (even, any_share):
            random, failed = np.random.default_rng(7), 0
            for start in range(0, count, BATCH):
                gates = Gates(min(BATCH, count - start), tails)
                attack(gates, random, share)
                failed += int(gates.failed.sum())
            name = f"{attack.__name__}, {'even' if share is even else 'random'} stakes"
            found[name] = failed / count
            print(f"  {name}: {found[name]:.4f}, 99 % upper bound {upper(failed, count):.4f}")
    return found


def shown(gain: float | None) -> str:
    """A gain in three digits, or a dash."""
    return "-" if gain is None else f"{gain:.3f}"


def plan() -> None:
    """Gains accepted with power 0.5 and 0.9, and with twenty asks."""
    levels = (1e-2, 1e-3, 1e-5, 1e-7)
    print("Gains accepted with power 0.5/0.9, a fifth of the tasks discordant, at levels", *levels)
    for tasks in (50, 100, 200, 500, 1000, 5000):
        plans = [plan_gate(tasks=tasks, consultations=1, failure_probability=level) for level in levels]
        print(f"  {tasks}:", *[f"{shown(one.half_power)}/{shown(one.ninety_power)}" for one in plans])
    print("Smallest observed gain of 20 asks with even stakes, and after accepts in a row")
    for tasks in (50, 100, 500, 1000):
        found = plan_gate(tasks=tasks, consultations=20)
        print(f"  {tasks}: {shown(found.smallest_gain[0])};", *map(shown, found.after_accepts[1:5]))


def power() -> None:
    """A gate of 20 asks beside a fresh set of tasks of the same size for each ask."""
    print(
        "True gain accepted with power 0.5/0.9: each of 20 asks of one gate; fresh tasks for each ask, all 20 together"
    )
    print("at the same failure probability; fresh tasks for one ask alone")
    for tasks in (100, 200, 500, 1000):
        gate = plan_gate(tasks=tasks, consultations=20)
        alone = plan_gate(tasks=tasks, consultations=1)
        pairs = [f"{shown(one.half_power)}/{shown(one.ninety_power)}" for one in (gate, gate, alone)]
        print(f"  {tasks}: {pairs[0]}, {pairs[1]} ({20 * tasks} tasks), {pairs[2]}")


def attained(tasks: int, heads: int) -> tuple[float, float]:
    """The purse, and the chance of a false accept of the searcher of docs/theory/gate.md, on fair coins for tasks.

    The first candidate wins on heads and is accepted or rejected; then one that wins on heads and loses on tails is
    asked for, or the opposite, each accepted on so many heads or tails.
    """
    chances = [math.comb(tasks, count) / 2**tasks for count in range(tasks + 1)]
    level = sum(chances[heads:])
    first = {count for count in range(tasks + 1) if count and 0.5**count <= level}
    after_accept = sum(chances[count] for count in first if count >= heads)
    after_reject = sum(chances[count] for count in set(range(tasks + 1)) - first if tasks - count >= heads)
    return 2.0 * level, after_accept + after_reject


def exact() -> None:
    """What a searcher attains of the bound, and what a grader that drifts does to equal systems, without sampling."""
    for tasks, heads in ((6, 5), (8, 7), (20, 16)):
        bound, found = attained(tasks, heads)
        print(f"A searcher on {tasks} tasks, two asks: bound {bound:.4f}, attained {found:.4f}")
    print("Equal systems, the incumbent graded before the grader drifted, a fifth of the tasks discordant:")
    for tasks in (200, 500, 1000, 5000):
        plan = plan_gate(tasks=tasks, consultations=20)
        found = [plan.power(drift) for drift in (0.0, 0.01, 0.03, 0.05)]
        shown = ", ".join(f"{chance:.3f}" for chance in found)
        print(f"  {tasks} tasks, one ask of 20: accepted after a drift of 0, .01, .03, .05: {shown}")


def growth(asks: int) -> None:
    """Processor time of an ask as the record grows, in one process and for a process that has read nothing yet."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_STATE_HOME"] = folder
        before = {f"task {number}": 0 for number in range(LOOP_TASKS)}
        path = Path(folder, "x.gate")
        gate = Gate.create(path, before, consultations=10**6, rules=GateRules(answer_seconds=0))

        def seconds(asked: Gate, count: int) -> float:
            begun = time.process_time()
            for _ in range(count):
                asked.ask(before)
            return (time.process_time() - begun) / count

        print(f"Processor time of an ask, {LOOP_TASKS} tasks")
        print(f"  the first 20: {1000 * seconds(gate, 20):.1f} ms")
        seconds(gate, max(asks - 41, 1))
        print(f"  20 after {asks - 21}: {1000 * seconds(gate, 20):.1f} ms")
        print(f"  by a process that has read nothing: {1000 * seconds(Gate.open(path), 1):.1f} ms", flush=True)


LOOP_TASKS, DISCORDANT = 500, 0.2


class Loop:
    """100 experiments in a row on one system, which solves half of the tasks; a tenth of them are better by the gain.

    An experiment changes what is built so far: it solves some tasks and spoils others, a fifth of all together while
    there are so many left to solve. Development tasks and the gate's tasks are apart; `fresh` draws new ones each ask.
    """

    tasks = LOOP_TASKS

    def __init__(self, gain: float, random: np.random.Generator, tails: Array, *, fresh: bool = False) -> None:
        self.random, self.tails, self.fresh = random, tails, fresh
        self.gain, self.purse, self.false, self.claimed = gain, FAILURE, 0, 0.0
        self.incumbent: tuple[Any, ...] = (0.5, *(random.random((2, self.tasks)) < 0.5))
        self.built = self.incumbent
        """True rate, outcomes on the development tasks, outcomes on the gate's tasks."""

    def experiment(self) -> tuple[Any, ...]:
        """What is built so far with one more change."""
        gain = self.gain * (self.random.random() < 0.1)
        rate, *known = self.built
        up = min(0.5 * (DISCORDANT + gain), 1.0 - rate)
        down = min(0.5 * (DISCORDANT - gain), up, rate)
        changed = [
            np.where(
                solved, self.random.random(self.tasks) * rate >= down, self.random.random(self.tasks) * (1 - rate) < up
            )
            for solved in known
        ]
        return rate + up - down, changed[0], changed[1]

    def compared(self, candidate: Array, incumbent: Array) -> tuple[int, int]:
        """Wins and losses."""
        return int((candidate & ~incumbent).sum()), int((incumbent & ~candidate).sum())

    def tail(self, wins: int, losses: int) -> float:
        """The logarithm of the sign test's p-value."""
        return float(self.tails[wins + losses, wins])

    def take(self, candidate: tuple[Any, ...]) -> None:
        """The candidate is the incumbent."""
        self.false += candidate[0] <= self.incumbent[0]
        wins, losses = self.compared(candidate[2], self.incumbent[2])
        self.claimed += (wins - losses) / self.tasks
        self.incumbent = self.built = candidate

    def ask(self, stake: float) -> None:
        """Ask the gate about what is built; rejected, it stays built."""
        rate, tasks = self.built[0], self.built[2]
        before = self.incumbent[2]
        if self.fresh:  # both systems on new tasks: by the discordance that the old ones have, and the true gain
            shares = [float((tasks & ~before).mean() + (before & ~tasks).mean()), rate - self.incumbent[0]]
            up = min(max(0.5 * (shares[0] + shares[1]), 0.0), 1.0)
            wins, losses, _ = self.random.multinomial(
                self.tasks, [up, max(shares[0] - up, 0.0), 1 - max(shares[0], up)]
            )
        else:
            wins, losses = self.compared(tasks, before)
        accepted = self.tail(int(wins), int(losses)) <= math.log(stake)
        self.purse = stake if accepted else self.purse - stake
        if accepted:
            self.take(self.built)


def by_score(deviations: float) -> Callable[[Loop, int], None]:
    """Whatever scores higher on the tasks, by so many standard deviations."""

    def step(loop: Loop, _left: int) -> None:
        candidate = loop.experiment()
        wins, losses = loop.compared(candidate[2], loop.incumbent[2])
        if wins - losses > deviations * math.sqrt(wins + losses):
            loop.take(candidate)

    return step


def bonferroni(loop: Loop, _left: int) -> None:
    """The sign test at the failure probability over the number of experiments, which the theorem does not cover."""
    candidate = loop.experiment()
    if loop.tail(*loop.compared(candidate[2], loop.incumbent[2])) <= math.log(FAILURE / ASKS):
        loop.take(candidate)


def ask_all(loop: Loop, left: int) -> None:
    """Every experiment is asked, with an even stake."""
    loop.built = loop.experiment()
    loop.ask(loop.purse / left)
    loop.built = loop.incumbent


def screened(loop: Loop, _left: int) -> None:
    """Those that the development tasks favour at level 0.05 are asked, with a fifth of the purse."""
    loop.built = loop.experiment()
    if loop.tail(*loop.compared(loop.built[1], loop.incumbent[1])) <= math.log(0.05):
        loop.ask(0.2 * loop.purse)
    loop.built = loop.incumbent


def advised(loop: Loop, _left: int) -> None:
    """What the development tasks favour at level 0.2 is built upon, and asked when `advise_gate` says so."""
    candidate = loop.experiment()
    if loop.tail(*loop.compared(candidate[1], loop.built[1])) > math.log(0.2):
        return
    loop.built = candidate
    wins, losses = loop.compared(candidate[1], loop.incumbent[1])
    advice = advise_gate(tasks=loop.tasks, purse=loop.purse, wins=wins, losses=losses, development_tasks=loop.tasks)
    if advice.ask:
        loop.ask(min(advice.stake, loop.purse))


WAYS: dict[str, tuple[Callable[[Loop, int], None], bool]] = {
    "greedy: a higher score": (by_score(0.0), False),
    "one standard deviation": (by_score(1.0), False),
    "Bonferroni": (bonferroni, False),
    "the gate, all asked": (ask_all, False),
    "the gate, screened": (screened, False),
    "fresh tasks each ask, screened": (screened, True),
    "the gate, advised": (advised, False),
    "fresh tasks each ask, advised": (advised, True),
}


def loop(count: int) -> dict[tuple[float, str], float]:
    """Loops of 100 experiments, by several ways to accept; means over many such loops."""
    tails, found = log_tails(LOOP_TASKS), {}
    print(f"100 experiments, 10 % of them better by the gain; {LOOP_TASKS} tasks, as many development tasks")
    print(f"true improvement, loops with a false accept, improvement claimed less true one; {count} loops")
    for gain in (0.1, 0.05):
        for name, (step, fresh) in WAYS.items():
            loops = [Loop(gain, np.random.default_rng([11, number]), tails, fresh=fresh) for number in range(count)]
            for one in loops:
                for left in range(ASKS, 0, -1):
                    if one.purse > 0.0:
                        step(one, left)
            true = float(np.mean([one.incumbent[0] - 0.5 for one in loops]))
            failed = float(np.mean([one.false > 0 for one in loops]))
            claimed = float(np.mean([one.claimed for one in loops]))
            found[gain, name] = true
            print(f"  +{gain}: {name}: {true:.3f}, {failed:.3f}, {claimed - true:+.3f}", flush=True)
    return found


def main(arguments: list[str] | None = None) -> None:
    """Print the parts that were asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("--only", nargs="*", choices=("plan", "exact", "attacks", "power", "loop", "growth"))
    parser.add_argument("--gates", type=int, default=10_000)
    parser.add_argument("--loops", type=int, default=100)
    parser.add_argument("--asks", type=int, default=1000)
    given = parser.parse_args(arguments)
    parts: dict[str, Callable[[], object]] = {
        "plan": plan,
        "exact": exact,
        "attacks": lambda: attacks(given.gates),
        "power": power,
        "loop": lambda: loop(given.loops),
        "growth": lambda: growth(given.asks),
    }
    for name in given.only or parts:
        parts[name]()


if __name__ == "__main__":
    main()
