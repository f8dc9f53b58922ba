"""Watch a stream of private monitors and raise the first real alarm.

Every minute twenty monitors count the people who met some error. The counts are private; the alarm levels are public.
A sparse vector compares every count with its level and pays for the alarm only, however many quiet minutes went before.
When it rings, the count that rang it is released with noise of its own, for a price of its own.

    python examples/watch_monitors.py

One person changes each count by at most one, for the whole stream. The data are synthetic: Poisson counts, and an
outage of monitor 7 that begins in minute 600.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dpselect.mechanisms import NoisyCount, SparseVector, noisy_count
from dpselect.privacy import Release, compose
from dpselect.randomness import RandomSource, resolve

MONITORS = 20
MINUTES = 1440
OUTAGE = (600, 7)
LEVELS = np.full(MONITORS, 230.0)


def synthetic_minutes(seed: int = 1) -> Iterator[np.ndarray]:
    """One vector of counts a minute: about 100 for each monitor, 400 during the outage."""
    generator = np.random.default_rng(seed)
    start, monitor = OUTAGE
    for minute in range(MINUTES):
        counts = generator.poisson(100.0, size=MONITORS)
        if minute >= start:
            counts[monitor] += 300
        yield counts


def main(random: RandomSource | None = None) -> Release:
    """Run the example; returns the alarm (minute, monitor, noisy count), or None for a quiet stream."""
    source = resolve(random)
    # counts of people move in one direction when a person comes or goes, so half the noise is enough
    watch = SparseVector(epsilon_threshold=0.2, epsilon_queries=0.4, max_positives=1, monotonic=True, random=source)
    alarm = None
    for minute, counts in enumerate(synthetic_minutes()):
        answers = watch.above_many(counts, LEVELS)
        if watch.halted:
            monitor = len(answers) - 1
            alarm = minute, monitor, noisy_count(counts[monitor], epsilon=0.1, random=source)
            break
    stream, count = watch.guarantee.worst(), NoisyCount(epsilon=0.1).guarantee
    total = compose(stream, count)
    if alarm:
        print(f"alarm in minute {alarm[0]} by monitor {alarm[1]}: about {alarm[2]} people")
    print(f"up to {MONITORS * MINUTES:,} comparisons: epsilon {stream.epsilon(0.0):.2f}")
    print(f"with the count: epsilon {total.epsilon(0.0):.2f}")
    return Release(value=alarm, guarantee=total, replayable=source.replayable)


if __name__ == "__main__":
    main()
