"""model-card.md: the card of a model as repositories of models show it, in the format of Hugging Face.

Its head is YAML between two lines of dashes, which tells machines the library, the task and the figures; then comes
Markdown for people. Both are made from release.json and facts.json alone, as the page is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from dpselect.numerics.digits import rounded
from dpselect.report.card import card, design_of
from dpselect.report.page import ENVIRONMENT

__all__ = ["render_model_card"]

_METRICS: Final = {
    "auc": "roc_auc",
    "absolute-error": "mae",
    "squared-error": "mse",
    "r2": "r_squared",
    "balanced-accuracy": "balanced_accuracy",
    "log-loss": "log_loss",
}
"""What is called otherwise there."""


def render_model_card(release: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """The text of model-card.md, from release.json and from the facts of `search_facts`.

    As `README.md` of a repository it is what Hugging Face shows. A licence stands in it only where the study declares
    one, and a figure only where one was released.
    """
    return ENVIRONMENT.get_template("model-card.md").render(
        release=release,
        whole=design_of(release).whole,
        card=card(release, facts),
        head="\n".join(_head(release)),
        markdown=_markdown,
    )


def _head(release: Mapping[str, Any]) -> Iterator[str]:
    task = f"tabular-{release['task']}"
    yield "library_name: dpselect"
    yield f"pipeline_tag: {task}"
    if release["card"]["license"] is not None:
        yield f"license: {_quoted(release['card']['license'])}"
    yield from ("tags:", "- dpselect", "- differential-privacy", f"- {task}")
    results = list(_results(release))
    if not results:
        return
    yield "metrics:"
    yield from sorted({f"- {metric}" for _, figures in results for metric, _, _ in figures})
    yield from ("model-index:", f"- name: {_quoted(release['study'])}", "  results:")
    for rows, figures in results:
        yield from ("  - task:", f"      type: {task}", "    dataset:", f"      name: {_quoted(rows)}")
        yield from ("      type: tabular", "    metrics:")
        for metric, name, value in figures:
            yield from (f"    - type: {metric}", f"      name: {_quoted(name)}", f"      value: {_number(value)}")


def _results(release: Mapping[str, Any]) -> Iterator[tuple[str, list[tuple[str, str, float]]]]:
    """Which rows, and of each figure its name there, its name for people and its value."""
    found, test = release["validation"], release["test"]
    if found is not None:
        figure = (_named(found["metric"]), f"{found['metric']}, with noise", found["value"])
        yield f"held-out rows of {release['data']['source']}", [figure]
    if test is not None:
        yield test["source"], [(_named(name), name, value) for name, value in test["metrics"].items()]


def _named(metric: str) -> str:
    return _METRICS.get(metric, metric) if re.fullmatch(r"[a-z][a-z0-9_-]*", metric) else _quoted(metric)


def _number(value: float) -> str:
    """As YAML 1.1 reads it: an exponent needs a point before it."""
    text = rounded(value)
    return re.sub(r"^(-?\d+)e", r"\1.0e", text)


def _quoted(text: str) -> str:
    """As YAML, which takes JSON's strings, but not the characters that are no text."""
    written = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\u{ord(each):04x}" for each in written)


def _markdown(text: Any) -> str:
    """The same text in one line of Markdown, where nothing of it is a mark."""
    return re.sub(r"([\\`*_\[\]<>|~$&])", r"\\\1", " ".join(str(text).split()))
