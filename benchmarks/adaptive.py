"""Adaptive analysis: speed of answers, and the table of required blocks.

    python benchmarks/adaptive.py speed          # 1,000 medians of 10,000 block values on 2**32 points, each mechanism
    python benchmarks/adaptive.py blocks         # required blocks: the paper's constants, plain and refined accounting
    python benchmarks/adaptive.py choice         # how far from the best a choice is at most

Times are processor time of one process, the best of three.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

from dpselect.adaptive import integer_grid, plan_blocks
from dpselect.adaptive.blocks import required_samples
from dpselect.adaptive.choosing import choice_error
from dpselect.adaptive.medians import ExponentialMedian, SearchMedian
from dpselect.adaptive.search_noise import SearchNoise
from dpselect.randomness import keyed_source


def speed() -> None:
    """Answers from block values that are there already."""
    grid = integer_grid(-(2**31), 2**31 - 1)
    values = np.random.default_rng(0).normal(0, 1e8, (1000, 10_000))
    source, noise = keyed_source(1), SearchNoise.of_deviation(32, 100.0)

    def seconds(answer: Callable[[np.ndarray], int]) -> float:
        start = time.process_time()
        for row in values:
            answer(row)
        return time.process_time() - start

    for name, answer in (
        ("binary search", lambda row: SearchMedian(noise=noise)(row, grid, random=source).value),
        ("exponential mechanism", lambda row: ExponentialMedian(epsilon=0.02)(row, grid, random=source).value),
    ):
        print(f"1,000 answers by the {name}: {min(seconds(answer) for _ in range(3)):.2f} s")


def blocks() -> None:
    """Blocks for validity at the quartiles with failure probability 0.05."""
    print("| grid | questions | paper | exponential, plain | refined | search, plain | refined |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for size, name in ((21, "21"), (1001, "1,001"), (2**64, "2^64")):
        for queries in (10, 100, 1000, 10_000):
            paper = required_samples(queries=queries, grid_size=size, failure_probability=0.05, accounting="paper")
            found = [
                plan_blocks(
                    queries=queries, grid_size=size, failure_probability=0.05, mechanism=mechanism, refined=refined
                ).blocks
                for mechanism in ("exponential", "binary_search")
                for refined in (False, True)
            ]
            print(f"| {name} | {queries:,} | {paper:,} | " + " | ".join(f"{one:,}" for one in found) + " |")


def choice() -> None:
    """Win shares lost by `choose`, at a failure probability of 0.05."""
    print("| mechanism | questions | blocks | candidates | behind the best on the blocks | on new rows |")
    print("|---|---:|---:|---:|---:|---:|")
    for mechanism in ("binary_search", "exponential"):
        for queries, times in ((10, 1), (10, 10), (100, 1), (100, 10)):
            plan = plan_blocks(queries=queries, grid_size=1001, failure_probability=0.05, mechanism=mechanism)
            plan = plan.at(times * plan.blocks)
            for candidates in (2, 10, 100):
                found = choice_error(plan, candidates=candidates)
                print(
                    f"| {mechanism} | {queries} | {plan.blocks:,} | {candidates} | {found.on_blocks:.3f} | "
                    f"{found.on_fresh_rows:.3f} |"
                )


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "blocks", "choice"])
    {"speed": speed, "blocks": blocks, "choice": choice}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
