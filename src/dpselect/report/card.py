"""What a model card says in words, from release.json and facts.json alone; the page and model-card.md both show it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

from dpselect.numerics.digits import rounded, rounded_up
from dpselect.report.cells import cells_in_words
from dpselect.searching import Design
from dpselect.searching.design import DESIGNS, design_names

__all__ = ["better_than_constant", "card", "design_of", "no_better_in_words", "rows_of_person", "shown"]

_MOST_NAMES: Final = 12
"""So many categories of a column, or rows of the table of columns, are shown at once."""
_HINTS: Final = {
    "classification": (
        "the shares of the classes are private, and {metric} does not pay for them. Where one class is rare, a "
        "constant prediction may do as well as this model. Declare data.class_shares where they are public, or take "
        "validation.metric = balanced-accuracy, which pays for them"
    ),
    "regression": (
        "the mean of the labels is private, and {metric} does not pay for it; validation.metric = r2 does, and is 0 "
        "for the mean"
    ),
}


def design_of(release: Mapping[str, Any]) -> type[Design]:
    """The design of a release. One from outside that nothing has imported here is shown as a search in one stage."""
    name = release["design"]
    return DESIGNS[name if name in design_names() else "one-stage"]


def card(release: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of the card, each a text, a list of texts or a list of rows."""
    columns = list(_columns(release))
    settings = release["settings"] | (release["parameters"] or {})
    return {
        "lead": release["card"]["purpose"] or _predicts(release),
        "model": list(_model(release)),
        "settings": [(name, shown(value)) for name, value in settings.items()],
        "figures": list(_figures(release)),
        "quality": list(_quality(release)),
        "measured": _measured(release),
        "cells": list(cells_in_words(release)),
        "protected": list(_protected(release, facts)),
        "columns": columns[:_MOST_NAMES],
        "more_columns": columns[_MOST_NAMES:],
        "limits": list(_limits(release, facts)),
        "use": list(_use(release)) if release["found"] else [],
    }


def shown(value: Any) -> str:
    """A public value for people: numbers to four significant digits, lists and tables without brackets.

    >>> shown(0.0123456), shown(2000000), shown([8, 8]), shown({"ill": 40.0}), shown(True)
    ('0.01235', '2000000', '8, 8', 'ill: 40', 'true')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else rounded(value)
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {shown(each)}" for name, each in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _some([shown(each) for each in value])
    return "none" if value is None else str(value)


def _some(words: Sequence[str]) -> str:
    left = len(words) - _MOST_NAMES
    return ", ".join(words) if left <= 1 else f"{', '.join(words[:_MOST_NAMES])} and {left} more"


def _predicts(release: Mapping[str, Any]) -> str:
    data, count = release["data"], len(release["data"]["columns"])
    return f"Predicts {data['label']} from {count} column{'s' * (count != 1)} of {data['source']}."


def _model(release: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    data = release["data"]
    if data["label_bounds"] is None:
        phrases = any(" " in str(each) for each in data["classes"])
        answer = f"one of {shown([f'“{each}”' for each in data['classes']] if phrases else data['classes'])}"
    else:
        answer = f"a number from {shown(data['label_bounds'][0])} to {shown(data['label_bounds'][1])}"
    yield "predicts", f"{data['label']}, {answer}"
    rows = "" if data["nominal_rows"] is None else f", about {data['nominal_rows']} rows (declared)"
    person = data.get("person")
    of_each = "" if person is None else f", at most {person['rows']} of each person ({person['column']})"
    yield "made from", f"{data['source']}{rows}{of_each}"
    among = len(release["candidates"])
    how = f"the best of {among} candidates by its fit" if among else "one run"
    if design_of(release).draws:
        how = "the best of a secret number of runs"
    if design_of(release).follows:
        how += ", trained again on all rows"
    yield "learner", f"{release['learner']}, {how}"
    if release["card"]["license"] is not None:
        yield "licence", release["card"]["license"]


def _figures(release: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What stands on top, with a word beside it: how good, beside what, for how much."""
    found, test, guarantee = release["validation"], release["test"], release["guarantee"]
    if found is not None:
        yield f"{found['metric']} on held-out rows", rounded(found["value"]), _interval(found)
        if found["constant"] is not None:
            said = "" if not no_better_in_words(found) else "the model is not shown to be better"
            yield "constant prediction", rounded(found["constant"]["value"]), said
    elif test is not None:
        metric = "accuracy" if "accuracy" in test else "absolute-error"
        yield f"{metric} on public test rows", rounded(test["metrics"][metric]), ""
        yield "constant prediction", rounded(test["constant"]["metrics"][metric]), ""
    yield "epsilon, in all", rounded_up(guarantee["epsilon"], digits=4), ""
    yield "delta", rounded_up(guarantee["delta"], digits=4), ""


def _interval(found: Mapping[str, Any]) -> str:
    low, high = found["low"], found["high"]
    if low is None and high is None:
        return "no interval"
    if low is None or high is None:
        return f"at most {shown(high)}" if low is None else f"at least {shown(low)}"
    return f"between {shown(low)} and {shown(high)}"


def _quality(release: Mapping[str, Any]) -> Iterator[str]:
    found = release["validation"]
    if found is not None:
        yield from _validated(release, found)
    elif release["score"] is not None:
        yield (
            f"The public rows by which runs were compared give it the score {shown(release['score'])}. It is the best "
            "of several on these very rows, so that it will do somewhat worse on others."
        )
    elif release["found"] and release["test"] is None and design_of(release).follows:
        yield "How good it is was not measured: the rows that compared settings trained it in the second stage."
    elif release["found"] and release["test"] is None:
        yield (
            "How good it is was not measured: no rows were held out or named for that. A [validation] table in the "
            'study keeps some for it, unless it says data = "training".'
        )


def better_than_constant(figure: Mapping[str, Any]) -> bool | None:
    """Return whether the worse end of the interval is better than the constant answer. None if it is not known."""
    constant, less = figure["constant"], figure["less_is_better"]
    if constant is None or figure["low"] is figure["high"] is None:
        return None
    worse = figure["high"] if less else figure["low"]
    return worse is not None and bool(worse < constant if less else worse > constant)


def _all_figures(found: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The figures of a release. Those of earlier versions have one."""
    if "figures" in found:
        return list(found["figures"])
    constant = found["constant"] or {"value": None, "answer": None}
    return [{**found, "name": found["metric"], "constant": constant["value"], "answer": constant["answer"]}]


def rows_of_person(release: Mapping[str, Any]) -> int:
    """The most rows of a person that took part, 1 if the study names no persons."""
    person = release["data"].get("person")
    return 1 if person is None else int(person["rows"])


def no_better_in_words(found: Mapping[str, Any], per_person: int = 1) -> list[str]:
    """Say so if no figure's interval shows that the model is better than the constant answer. Else nothing.

    A model that is constant itself differs from the constant answer by noise alone. So figures that are better by less
    than a quarter of their intervals are called no better. If a person may have several rows, intervals are too long
    to tell that.
    """
    known = [one for one in _all_figures(found) if one["constant"] is not None]
    if found.get("confidence", 0.0) is None or not known or any(better_than_constant(one) for one in known):
        return []
    first = known[0]
    answer = "predicting one value" if first["answer"] is None else f"predicting {shown(first['answer'])}"
    reached = f"always {answer}, with {first['name']} {shown(first['constant'])}"
    if per_person == 1 and all(_near(one) for one in known):
        return [f"by its scores the model is no better than {reached}"]
    return [f"its scores do not show that the model is better than {reached}"]


def _near(figure: Mapping[str, Any]) -> bool:
    ends = [figure["value"] if end is None else end for end in (figure["low"], figure["high"])]
    ahead = (figure["value"] - figure["constant"]) * (-1.0 if figure["less_is_better"] else 1.0)
    return bool(ahead <= (ends[1] - ends[0]) / 4.0)


def _measured(release: Mapping[str, Any]) -> list[tuple[str, str, str, str]]:
    """The figures from the same counts, if there are several: name, value, interval, the constant answer's."""
    figures = [] if release["validation"] is None else _all_figures(release["validation"])
    if len(figures) < 2:
        return []
    constants = ["" if one["constant"] is None else shown(one["constant"]) for one in figures]
    return [
        (one["name"], shown(one["value"]), _interval(one), constant)
        for one, constant in zip(figures, constants, strict=True)
    ]


def _validated(release: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    metric, data = found["metric"], release["data"]
    chosen = ", the choice among runs" if design_of(release).draws else ""
    less = " Less is better." if found["less_is_better"] else ""
    whose = "new rows like these" if rows_of_person(release) == 1 else "the rows of new persons like these"
    on_new = (
        f"On {whose} it is {_interval(found)} with probability {shown(found['confidence'])}: the "
        f"noise{chosen} and the number of rows are counted in."
    )
    if found["confidence"] is None:
        on_new = "There is no interval for new rows: rows of one person or row key are alike, by how much is not known."
    yield (
        f"On private rows that did not train it, its {metric} is {shown(found['value'])}, with noise. {on_new}{less}"
    )
    constant = found["constant"]
    if constant is None:
        said = _HINTS[release["task"]].format(metric=metric)
        if data["label_bounds"] is not None and metric == "absolute-error":
            half = (data["label_bounds"][1] - data["label_bounds"][0]) / 2.0
            said += f". Who always answers the middle of the bounds is off by {shown(half)} at most"
        yield f"The score of a constant prediction is not shown: {said}."
    else:
        answer = "" if constant["answer"] is None else f" ({shown(constant['answer'])})"
        counted = "in the classes" if data["label_bounds"] is None else "by their labels"
        how = {
            "declared": ", by the declared shares of the classes",
            "counts": f", by the noisy numbers of rows {counted}, which are paid for",
            "metric": "",
        }[constant["from"]]
        yield f"One and the same answer for all rows{answer} reaches {shown(constant['value'])}{how}."
    yield from (f"{said[0].upper()}{said[1:]}." for said in no_better_in_words(found, rows_of_person(release)))
    if found["rows_by_class"] is not None:
        counts = dict(zip(map(str, data["classes"]), found["rows_by_class"], strict=True))
        yield f"Held-out rows by class, with noise: {shown(counts)}."
    if found.get("shares") is not None:
        named = zip(data["classes"], found["shares"], strict=True)
        shares = [_share(name, one) for name, one in named]
        each = "" if found["confidence"] is None else ", each interval by itself"
        yield f"Parts of the rows{each}: {_some(shares)}."


def _share(name: Any, found: Mapping[str, Any]) -> str:
    value, low, high = (found[key] for key in ("value", "low", "high"))
    between = "" if low is None and high is None else f" ({shown(low)} to {shown(high)})"
    return f"{name} {shown(value)}{between}"


def _protected(release: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    """Whom it protects, from whom, how much: in words, then in numbers.

    Anyone who guesses which of two neighbouring tables it was, each being as likely before, is right with probability
    (1 + d)/2 at most, d being the total variation distance of the outputs: that is delta at epsilon 0.
    """
    epsilon, delta = release["guarantee"]["epsilon"], release["guarantee"]["delta"]
    apart = [d for e, d in zip(facts["curve"]["epsilon"], facts["curve"]["search"], strict=True) if e == 0.0]
    right = rounded_up((1.0 + min([1.0, *apart])) / 2.0, digits=3)
    times = rounded_up(math.exp(min(epsilon, 700.0)), digits=3)
    plus = f", plus {rounded_up(delta, digits=3)}" if delta > 0.0 else ""
    secret, change = "which of two rows stands in its place", "with the one row than with the other"
    if release["guarantee"]["adjacency"] == "add_or_remove_one":
        secret, change = "whether it is in the table at all", "with the row than without it, or without it than with it"
    who, others, person = "single row", "rows", release["data"].get("person")
    if person is not None:
        who, others = "person", "persons' rows"
        secret, change = "whether a person is in it", "with the person's rows than without them, or the other way round"
        yield (
            f"Of each person, by the column {person['column']}, at most {person['rows']} "
            f"{'row' if person['rows'] == 1 else 'rows'} took part. A hash decides which. The others were left out. "
            "What is said here holds for all rows of a person."
        )
    yield (
        f"Every {who} of {release['data']['source']} is protected: someone who knows all other {others}, and to whom "
        f"it is even odds {secret}, is right about that with a probability of {right} at most after seeing all that "
        "was released."
    )
    yield f"In numbers: no outcome is more than {times} times as likely {change}{plus}."


def _columns(release: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    """Name, kind, range, missing; neighbours of which the same is known are one row."""
    bought = (release["preparation"] or {"bounds": {}})["bounds"]
    rows = [(name, _facts(column, name in bought)) for name, column in release["data"]["columns"].items()]
    for facts, group in groupby(rows, key=lambda row: row[1]):
        names = [name for name, _ in group]
        named = [(names[0],)] if len(names) == 1 else [(f"{names[0]} to {names[-1]} ({len(names)} columns)",)]
        for row in named if len(names) > 2 else [(name,) for name in names]:
            yield (*row, *facts)


def _facts(column: Mapping[str, Any], bought: bool) -> tuple[str, str, str]:
    missing = column.get("missing")
    lost = "refused" if missing is None else f"counts as {shown(missing)}"
    if missing == "indicator":
        lost = "indicator of its own"
    if "categories" in column:
        words = [shown(each) or "(empty)" for each in column["categories"]]
        if missing is None:
            lost = "other" if column.get("other") else "none of these"
        return "category", _some([*words, *(["other"] if column.get("other") else [])]), lost
    if column.get("kind") == "text":
        return "text", _terms(column), "counts as empty" if missing is None else lost
    scale = column.get("scale", "linear")
    read = [str(column[key]) for key in ("format", "time_zone") if column.get(key)]
    kind = ", ".join([column.get("kind", "number"), *read, *([] if scale == "linear" else [scale])])
    if column["bounds"] == "private":
        return kind, "bounds not known", lost
    low, high = (rounded(end) if bought and isinstance(end, float) else _end(end) for end in column["bounds"])
    return kind, f"{low} to {high}{', bought' if bought else ''}", lost


def _terms(column: Mapping[str, Any]) -> str:
    """How a text becomes features."""
    least, most = column["ngram_range"]
    length = f"{least} to {most}" if least < most else f"{least}"
    runs = {"char": "letters", "char_wb": "letters within words", "word": "word" if most == 1 else "words"}
    return f"terms of {length} {runs[column['analyzer']]}, hashed to {column['n_features']} features"


def _end(value: Any) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _limits(release: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator[str]:
    data = release["data"]
    if release["card"]["not_for"] is not None:
        yield f"Not for: {release['card']['not_for']}"
    yield f"It knows rows like those of {data['source']} alone; on others it may be wrong more often."
    yield "How it does on parts of the rows, such as age groups, was not measured."
    yield "Cells beyond the bounds of a column are clipped there; categories that are not listed are none, or other."
    yield (
        "Not protected: what the table shows as a whole. The model may be right about people who are not in it; that "
        "is what it is for."
    )
    if data.get("person") is None:
        yield (
            "A person with several rows is protected less: epsilon grows at least with their number, and at the same "
            f"delta mostly much more{_of_rows(facts)}."
        )
    else:
        column = data["person"]["column"]
        yield f"Someone with several values of {column} counts as several persons, who are protected one by one."
    public = "the names, bounds and categories of columns, the label's" + (
        " classes" if data["label_bounds"] is None else " bounds"
    )
    yield f"What the study declares is taken for public and has no protection: {public}, its whole text."
    if facts["budget"] is None:
        yield "Other releases from the same rows are not counted in: their prices add to this one."
    else:
        yield "Releases that are not entered in the ledger are not counted in: their prices add to this one."
    if design_of(release).draws:
        yield "How long the search took is not covered: it may tell the number of runs."


def _of_rows(facts: Mapping[str, Any]) -> str:
    """The epsilons of persons with several rows; files of earlier versions do not have them."""
    found = [(rows, epsilon) for rows, epsilon in facts.get("rows", {}).items() if epsilon is not None]
    if not found:
        return ""
    named = ", ".join(f"{rounded_up(epsilon, digits=4)} for {rows} rows" for rows, epsilon in found)
    return f": {named}, at delta {rounded_up(facts['delta'], digits=6)}"


def _use(release: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What for, in which language, the lines."""
    model, form = release["model"], release["data"]["form"]
    flags = "".join(f" --{name.replace('_', '-')} {shlex.quote(str(value))}" for name, value in form.items())
    yield "On the command line", "sh", f"dpselect predict {model} new.csv --to predictions.csv{flags}"
    names = {"delimiter": "sep", "skip_rows": "skiprows"}  # of pandas, where it has others
    options = "".join(f", {names.get(name, name)}={value!r}" for name, value in form.items())
    yield (
        "In Python, with a data frame of the columns above, in any order",
        "python",
        f'import dpselect, pandas\nmodel = dpselect.load_model("{model}")\n'
        f'model.predict(pandas.read_csv("new.csv"{options}))',
    )
    yield "For any ONNX runtime, without dpselect", "sh", f"dpselect export {model} --to model.onnx"
    yield "For scikit-learn, as a file of joblib", "sh", f"dpselect export {model} --to model.joblib"
    yield (
        "A fitted estimator there; such files run code when they are loaded: load your own alone",
        "python",
        'import joblib\nmodel = joblib.load("model.joblib")',
    )
