"""A release and its facts, cheap to make, for tests of the report."""

import json

from dpselect.accounting import best_of
from dpselect.privacy import gaussian, pure_dp, worst_of
from dpselect.repetitions import Harmonic
from dpselect.report import render_page, search_facts

LAW = Harmonic(limit=4)
PARTS = (gaussian(noise_multiplier=6.0), pure_dp(epsilon=0.3))
SEARCH = worst_of(*[best_of(part, LAW) for part in PARTS])
FACTS = search_facts(parts=PARTS, search=SEARCH, law=LAW, delta=1e-6)
RELEASE = {
    "study": "toy",
    "design": "one-stage",
    "learner": "dp-sgd",
    "settings": {"steps": 100},
    "found": True,
    "parameters": {"learning_rate": 0.25, "hidden_units": 32},
    "score": None,
    "model": "model.npz",
    "guarantee": SEARCH.describe(delta=1e-6),
    "replayable": False,
    "receipt": None,
    "versions": {"dpselect": "0"},
}


def page(*, release=RELEASE, facts=FACTS):
    return render_page(release, facts)


def toy_release(folder):
    """A folder such as a study writes."""
    made = folder / "release"
    made.mkdir()
    (made / "release.json").write_text(json.dumps(RELEASE))
    (made / "facts.json").write_text(json.dumps(FACTS))
    (made / "report.html").write_text(page())
    (made / "model.npz").write_bytes(b"")
    return made
