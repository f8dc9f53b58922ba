"""Every area beside its peers, in one run.

    python -m benchmarks [--quick] [--rounds 5] [--only AREA ...] [--without NAME ...] [--json FILE [--resume]]
                         [--page FILE]

In each round all contenders of a question take a turn, one after the other; a ratio is that of the times of one round,
and the table has the median ratio with the least and the largest. A turn lasts at least 20 ms. A peer that is not
installed is said. Larger and more special measurements are in the scripts of this folder. Three rounds take two
minutes on two idle cores; what is measured is in FILE at once, and `--resume` measures what is not there yet, with the
same versions. `--quick` is for tests and measures nothing that is worth a line.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks.fresh_processes import fresh_processes
from benchmarks.questions import Question, questions
from benchmarks.scalar_calls import scalar_calls, scalar_curves
from benchmarks.scaling import Curve, curves

TURN = 0.02
PACKAGES = ("dpselect", "numpy", "scipy", "dp-accounting", "opendp", "diffprivlib", "opacus", "autodp", "optuna", "ray")
# what has no peer that could be timed, and why
UNMEASURED = {
    "Tumult Analytics": "needs Spark",
    "JAX-Privacy": "prices by dp-accounting",
}


def turn(run: Callable[[], Any], wall: bool, repeats: int) -> float:
    """Seconds for one call."""
    clock = time.perf_counter if wall else time.process_time
    start = clock()
    for _ in range(repeats):
        run()
    return (clock() - start) / repeats


def measure(question: Question, rounds: int, without: list[str]) -> dict[str, Any]:
    """Times of all rounds, by contender."""
    runs, missing, values, repeats = {}, {}, {}, {}
    for name, make in question.makers.items():
        if any(name.startswith(word) for word in without):
            missing[name] = "left out"
            continue
        try:
            runs[name] = make()
        except ImportError as error:
            missing[name] = f"not installed: {str(error).splitlines()[0]}"
            continue
        start = time.perf_counter()
        value = runs[name]()
        repeats[name] = 1 if question.self_timed else max(1, int(TURN / max(time.perf_counter() - start, 1e-9)))
        if question.priced:
            values[name] = value
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(question.rounds or rounds):
        for name, run in runs.items():
            times[name].append(run() if question.self_timed else turn(run, question.wall, repeats[name]))
    return {
        "area": question.area,
        "title": question.title,
        "clock": "wall" if question.wall else "processor",
        "seconds": times,
        "values": values,
        "missing": missing,
        "limit": question.limit,
    }


def shown(seconds: float) -> str:
    """A time in a unit that fits."""
    unit, factor = ("s", 1.0) if seconds >= 1.0 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
    return f"{seconds * factor:.3g} {unit}"


def table(found: dict[str, Any]) -> str:
    """One question as Markdown."""
    ours = next(iter(found["seconds"]))
    limit = "" if found.get("limit") is None else f", at most {shown(found['limit'])} asked"
    lines = [f"**{found['title']}** ({found['clock']} time{limit})\n"]
    valued = bool(found["values"])
    lines.append("| | time | ratio to the first, least and largest |" + (" epsilon |" if valued else ""))
    lines.append("|---|---|---|" + ("---|" if valued else ""))
    for name, times in found["seconds"].items():
        ratios = [mine / first for mine, first in zip(times, found["seconds"][ours], strict=True)]
        ratio = f"{statistics.median(ratios):.3g} [{min(ratios):.3g}, {max(ratios):.3g}]" if name != ours else "1"
        value = f" {found['values'].get(name, float('nan')):.4f} |" if valued else ""
        lines.append(f"| {name} | {shown(statistics.median(times))} | {ratio} |{value}")
    lines += [f"| {name} | {why} | |" for name, why in found["missing"].items()]
    return "\n".join(lines) + "\n"


def measure_curve(curve: Curve, turns: int) -> dict[str, Any]:
    """The least of some turns at each point."""
    points = []
    for where in curve.at:
        run = curve.make(where)
        run()
        points.append((where, min(turn(run, curve.wall, 1) for _ in range(turns))))
    clock = "wall" if curve.wall else "processor"
    return {"what": curve.what, "along": curve.along, "clock": clock, "points": points}


def page(result: dict[str, Any]) -> str:
    """All of it as a page of the documentation."""
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    parts = [
        "# Benchmarks\n",
        f"Written by `{result['command']}` on {result['date']}, {result['machine']}; {versions}. Every\n"
        "number is from that one run. In each round all contenders take a turn, so that a busy machine slows all of\n"
        "them; the ratio is the median over the rounds, with the least and the largest.\n",
        "Not measured: " + "; ".join(f"{name} ({why})" for name, why in UNMEASURED.items()) + ".\n",
    ]
    area = ""
    for found in result["questions"]:
        if found["area"] != area:
            area = found["area"]
            parts.append(f"## {area.capitalize()}\n")
        parts.append(table(found))
    parts.append("## Scaling\n")
    parts.append("The least of three turns.\n")
    for curve in result["scaling"]:
        heads = " | ".join(f"{where:,}" for where, _ in curve["points"])
        cells = " | ".join(shown(seconds) for _, seconds in curve["points"])
        dashes = "---|" * (1 + len(curve["points"]))
        parts.append(
            f"| {curve['what']}: {curve['along']} | {heads} |\n|{dashes}\n| {curve['clock']} time | {cells} |\n"
        )
    return "\n".join(parts)


def main(arguments: list[str] | None = None) -> dict[str, Any]:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="areas, such as accounting or scaling")
    parser.add_argument("--without", nargs="*", default=[], help="contenders to leave out, such as 'Ray Tune'")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--resume", action="store_true", help="measure what FILE of --json lacks")
    parser.add_argument("--page", type=Path)
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            versions[name] = "not installed"
    result: dict[str, Any] = {
        "command": " ".join(["python -m benchmarks", *(arguments if arguments is not None else sys.argv[1:])]),
        "date": datetime.date.today().isoformat(),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        "versions": versions,
        "questions": [],
        "scaling": [],
    }
    if options.resume:
        if options.json is None:
            parser.error("--resume needs --json")
        if options.json.exists():
            before = json.loads(options.json.read_text(encoding="utf-8"))
            if before["versions"] != versions:
                parser.error("--resume: the file was measured with other versions")
            result |= {part: before[part] for part in ("command", "date", "questions", "scaling")}

    def keep() -> None:
        if options.json:
            options.json.write_text(json.dumps(result, indent=1), encoding="utf-8")

    known = {(found["area"], found["title"]) for found in result["questions"]}
    for question in chain(questions(options.quick), scalar_calls(options.quick), fresh_processes(options.quick)):
        wanted = not options.only or question.area in options.only
        if wanted and (question.area, question.title) not in known:
            found = measure(question, 1 if options.quick else options.rounds, options.without)
            result["questions"].append(found)
            print(table(found), flush=True)
            keep()
    known = {(found["what"], found["along"]) for found in result["scaling"]}
    for curve in chain(curves(options.quick), scalar_curves(options.quick)):
        wanted = not options.only or "scaling" in options.only
        if wanted and (curve.what, curve.along) not in known:
            found = measure_curve(curve, 1 if options.quick else 3)
            result["scaling"].append(found)
            print(found["what"], found["along"], [(where, shown(s)) for where, s in found["points"]], flush=True)
            keep()
    if options.page:
        options.page.write_text(page(result), encoding="utf-8")
    return result


if __name__ == "__main__":
    main()
