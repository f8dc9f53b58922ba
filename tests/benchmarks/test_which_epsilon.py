"""The measurement behind the how-to page on epsilon: one line for each table and learner, and the page shows them."""

from benchmarks import which_epsilon as harness
from tests.root import ROOT


def test_each_line_has_a_mean_for_every_epsilon(monkeypatch):
    monkeypatch.setattr(harness, "study", lambda case, output, **_: (case.seed, case.epsilon, output))
    monkeypatch.setattr(harness, "score", lambda found: found[0] + found[1] * (found[2] == "default"))
    _, _, *lines = harness.rows(2, ("orders",))
    assert lines == [
        "| orders | 3,000, 5 | accuracy | default | 0.60 | 0.80 | 1.50 | 3.50 | 8.50 |",
        "| orders | 3,000, 5 | accuracy | boosted-trees | 0.50 | 0.50 | 0.50 | 0.50 | 0.50 |",
    ]


def test_the_page_has_a_line_for_each_table_and_learner(monkeypatch):
    monkeypatch.setattr(harness, "mean_score", lambda *_: 0.5)
    page = (ROOT / "docs" / "how-to" / "which-epsilon.md").read_text(encoding="utf-8").splitlines()
    for line in harness.rows(1):
        known = line.partition("| 0.50")[0]
        assert sum(one.startswith(known) for one in page) == 1, line
