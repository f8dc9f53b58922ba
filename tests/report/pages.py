"""A release and its facts, cheap to make, for tests of the report."""

import json

from dpselect.accounting import best_of
from dpselect.privacy import gaussian, pure_dp, worst_of
from dpselect.repetitions import Harmonic
from dpselect.report.facts import search_facts
from dpselect.report.page import render_page

LAW = Harmonic(limit=4)
PARTS = (gaussian(noise_multiplier=6.0), pure_dp(epsilon=0.3))
SEARCH = worst_of(*[best_of(part, LAW) for part in PARTS])
FACTS = search_facts(parts=PARTS, search=SEARCH, law=LAW, delta=1e-6)
BUDGET = {
    "name": "team",
    "accounting": "output",
    "epsilon": 3.0,
    "delta": 1e-5,
    "before": {"epsilon": 0.25, "delta": 0.0},
    "after": {"epsilon": 1.25, "delta": 1e-6},
}
RELEASE = {
    "study": "toy",
    "design": "one-stage",
    "candidates": [],
    "learner": "dp-sgd",
    "settings": {"steps": 100},
    "found": True,
    "parameters": {"learning_rate": 0.123456789, "hidden_units": 32},
    "score": 0.7,
    "model": "model.npz",
    "task": "classification",
    "validation": {
        "metric": "accuracy",
        "value": 0.71,
        "low": 0.62,
        "high": 0.79,
        "confidence": 0.95,
        "rows_by_class": None,
        "less_is_better": False,
        "constant": {"value": 0.6, "answer": "well", "from": "declared"},
    },
    "test": {
        "source": "test.csv",
        "rows": 200,
        "accuracy": 0.7,
        "metrics": {"accuracy": 0.7, "auc": 0.8, "balanced-accuracy": 0.65, "log-loss": 0.6},
        "constant": {
            "answer": "well",
            "metrics": {"accuracy": 0.61, "auc": 0.5, "balanced-accuracy": 0.5, "log-loss": 0.67},
        },
    },
    "notes": [],
    "preparation": None,
    "card": {"purpose": None, "not_for": None, "license": None},
    "data": {
        "source": "people.csv",
        "form": {},
        "label": "state",
        "classes": ["well", "ill"],
        "label_bounds": None,
        "nominal_rows": 4000,
        "columns": {
            "age": {"bounds": [17.0, 90.0], "missing": 40},
            "paid": {"bounds": [0.0, 1e6], "scale": "log", "missing": "indicator"},
            "joined": {"kind": "date", "bounds": ["2000-01-01", "2026-01-01"]},
            "job": {"categories": ["nurse", "teacher"], "other": True},
            **{f"answer {i}": {"bounds": [0.0, 10.0]} for i in range(40)},
        },
    },
    "guarantee": SEARCH.describe(delta=1e-6),
    "replayable": False,
    "receipt": None,
    "versions": {"dpselect": "0"},
}


def page(*, release=RELEASE, facts=FACTS):
    return render_page(release, facts)


def released(**changes):
    """The release with other parts; a table is changed key by key."""
    parts = {
        name: {**(RELEASE[name] or {}), **part} if isinstance(part, dict) else part for name, part in changes.items()
    }
    return {**RELEASE, **parts}


def toy_release(folder):
    """A folder such as a study writes."""
    made = folder / "release"
    made.mkdir()
    (made / "release.json").write_text(json.dumps(RELEASE))
    (made / "facts.json").write_text(json.dumps(FACTS))
    (made / "report.html").write_text(page())
    (made / "model.npz").write_bytes(b"")
    return made
