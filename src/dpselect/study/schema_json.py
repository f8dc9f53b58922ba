"""The JSON schema of study files, for editors and for programs that write them."""

from __future__ import annotations

from typing import Any

from dpselect.repetitions.by_name import law_names
from dpselect.searching.design import design_names
from dpselect.study.learners import LEARNERS
from dpselect.study.metrics import METRICS
from dpselect.study.schema import Study
from dpselect.tuning.space import LAW_NAMES as PARAMETER_LAWS

__all__ = ["study_schema"]


def study_schema() -> dict[str, Any]:
    """The schema (JSON Schema 2020-12) of a study file read as nested tables.

    A study that is valid by the schema can still be refused: which keys go together is checked by `parse_study`, names
    of columns and the price by `check_study`.

    >>> study_schema()["required"]
    ['data', 'privacy', 'output']
    """
    found = _without_null(Study.model_json_schema())
    properties = found["properties"]
    for table, key, names in (
        ("Learner", "name", LEARNERS),
        ("Validation", "metric", METRICS),
        ("SearchDesign", "design", ("auto", *design_names())),
    ):
        found["$defs"][table]["properties"][key]["enum"] = list(names)
    properties["space"]["additionalProperties"] = _law(PARAMETER_LAWS)
    properties["repetitions"] = {
        **_law(law_names()),
        "title": "Repetitions",
        "description": "The distribution of the number of runs, and its settings; `at_most` adds a hard limit.",
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **found,
        "title": "A dpselect study",
        "description": "What is public about a private search: `dpselect tune STUDY.toml`.",
    }


def _law(names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {
            "distribution": {"enum": list(names)},
            "law": {"enum": list(names), "deprecated": True, "description": "The old name of `distribution`."},
        },
        "oneOf": [{"required": ["distribution"]}, {"required": ["law"]}],
        "additionalProperties": True,
    }


def _without_null(part: Any) -> Any:
    """TOML has no null: a key without a value is left out."""
    if isinstance(part, list):
        return [_without_null(item) for item in part]
    if not isinstance(part, dict):
        return part
    kept = {key: _without_null(value) for key, value in part.items() if (key, value) != ("default", None)}
    options = [option for option in kept.get("anyOf", []) if option != {"type": "null"}]
    if len(options) == 1:
        del kept["anyOf"]
        return {**options[0], **kept}
    return {**kept, "anyOf": options} if options else kept
