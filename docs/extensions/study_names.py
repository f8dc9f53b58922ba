"""The names that a study can use, as the code has them: written into study-file.md when this is run.

Between two comments of that page are tables of every learner, map, distribution, metric, source, kind of column and
scale, with what each takes. With `--check` nothing is written: the exit status says whether the page is as the code is.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any, Final

from dpselect.preprocessing import MAPS
from dpselect.repetitions.by_name import law_usage
from dpselect.repetitions.distribution import LAWS
from dpselect.study.columns import SCALES
from dpselect.study.columns.kind import KINDS
from dpselect.study.learners import LEARNERS, StudyLearner
from dpselect.study.learners.mapped import map_parameters
from dpselect.study.learners.recipe import learner_keys
from dpselect.study.metrics import METRICS
from dpselect.tables import SOURCES
from dpselect.tuning.space import DISTRIBUTIONS

PAGE: Final = Path(__file__).parents[1] / "reference" / "study-file.md"
FIRST: Final = "<!-- from the code: python docs/extensions/study_names.py -->"
LAST: Final = "<!-- end -->"


def names() -> str:
    """The tables, in Markdown."""
    return "\n".join(
        line for part in (_learners(), _maps(), _laws(), _spaces(), _registries()) for line in part
    ).strip()


def written(page: str) -> str:
    """The page with the tables as the code has them."""
    before, _, rest = page.partition(FIRST)
    _, _, after = rest.partition(LAST)
    return f"{before}{FIRST}\n\n{names()}\n\n{LAST}{after}"


def _learners() -> Iterator[str]:
    for name in LEARNERS:
        kind = LEARNERS[name]
        yield f"### Learner `{name}`"
        yield ""
        for place, task in enumerate(kind.tasks):
            if place:
                yield ""
                yield f"#### Learner `{name}` of a label that is a number"
                yield ""
            yield from _learner(kind, task)


def _learner(kind: StudyLearner, task: str) -> Iterator[str]:
    estimator = kind.for_task(task)
    yield f"{_sentence(estimator)} The noise, `{kind.noise_name}`, follows from the total."
    yield ""
    said, known = _arguments(estimator), estimator().get_params()
    rows = [
        (f"`{key}`", _value(known[key]), said.get(key, ""), "`[learner]` alone" if key in kind.priced else "")
        for key in sorted(learner_keys(kind, task) - {"map"})
    ]
    yield from _table(("key", "default", "what it is", "where"), rows)


def _maps() -> Iterator[str]:
    yield "### Maps"
    yield ""
    yield "Under `[learner]`, or as choices of a `categorical` distribution under `[space]`, `map` is one of:"
    yield ""
    rows = []
    for name in MAPS:
        known = MAPS[name]().get_params()
        rows.append(
            (f"`{name}`", _sentence(MAPS[name]), _defaults({key: known[key] for key in sorted(map_parameters(name))}))
        )
    yield from _table(("map", "what it is", "its own keys under `[learner]`"), rows)


def _laws() -> Iterator[str]:
    yield "### Distributions of the number of runs"
    yield ""
    yield (
        "`[repetitions]` takes `distribution` (once `law`), its settings, and `at_most` for a hard limit. Of two "
        'joined by "or" give one.'
    )
    yield ""
    usage = law_usage()
    takes = {
        name: ", ".join(f"`{part.replace('=', '').replace('|', '` or `')}`" for part in usage[name].split(","))
        if name in usage
        else ", ".join(f"`{parameter}`" for parameter in LAWS[name].parameters())
        for name in LAWS
        if "law" not in LAWS[name].parameters()
    }
    yield from _table(
        ("distribution", "settings", "what it is"), [(f"`{n}`", t, _sentence(LAWS[n])) for n, t in takes.items()]
    )


def _spaces() -> Iterator[str]:
    yield "### Distributions of a searched parameter"
    yield ""
    rows = [
        (f"`{name}`", ", ".join(f"`{field.name}`" for field in fields(kind) if field.init), _sentence(kind))
        for name, kind in DISTRIBUTIONS.items()
    ]
    yield from _table(("distribution", "settings", "what it is"), rows)


def _registries() -> Iterator[str]:
    tables = (
        ("Metrics", "metric", METRICS, lambda name: METRICS.facts(name).get("task", "")),
        ("Sources", "name", SOURCES, lambda name: ", ".join(f"`{key}`" for key in SOURCES.facts(name).get("form", ()))),
    )
    for title, kind, registry, takes in tables:
        yield f"### {title}"
        yield ""
        heads = (kind, "task" if title == "Metrics" else "takes", "what it is")
        yield from _table(heads, [(f"`{name}`", takes(name), _sentence(registry[name])) for name in registry])
    yield "### Kinds and scales of columns"
    yield ""
    yield (
        f"`kind`: {', '.join(f'`{name}`' for name in KINDS)}. `scale`: "
        + ", ".join(f"`{name}:SIZE`" if SCALES[name].with_size else f"`{name}`" for name in SCALES)
        + "."
    )


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    rows = list(rows)
    kept = [place for place in range(len(heads)) if place == 0 or any(row[place] for row in rows)]
    for cells in (heads, *rows):
        yield "| " + " | ".join(cells[place].replace("|", "\\|") for place in kept) + " |"
        if cells is heads:
            yield "|---" * len(kept) + "|"
    yield ""


def _sentence(thing: Any) -> str:
    """The first sentence of a docstring; nothing of what has none of its own."""
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return ""
    text = " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())
    return re.split(r"(?<=\.) (?=[A-Z`])", text)[0]


def _arguments(kind: type[Any]) -> Mapping[str, str]:
    """What the docstring of a class says of its arguments: their first sentences."""
    _, _, text = (inspect.getdoc(kind) or "").partition("Args:\n")
    section = text.split("\n\n")[0]
    found = re.findall(r"^    (\w[\w, ]*): ((?:.|\n(?!    \w))*)", section, flags=re.MULTILINE)
    return {
        name: re.split(r"(?<=\.) (?=[A-Z`])", " ".join(said.split()))[0]
        for names, said in found
        for name in names.split(", ")
    }


def _value(value: Any) -> str:
    return "" if value is None or value is MISSING else f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _defaults(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}` ({_value(value)})" if _value(value) else f"`{key}`" for key, value in settings.items())


if __name__ == "__main__":
    there = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        sys.exit(0 if written(there) == there else f"{PAGE.name} is not as the code is: {FIRST}")
    PAGE.write_text(written(there), encoding="utf-8")
