"""The replay of published models: what is accepted by score over-fits, and the gate accepts what is clearly better."""

import json

import numpy as np
import pytest
from benchmarks.gate import WAYS
from benchmarks.replay import right_answers, table


@pytest.fixture
def study(tmp_path):
    """Four models on 2,000 old and 100 new images, in the files of the study; the last one is far better."""
    random = np.random.default_rng(3)
    truth = random.integers(0, 10, 2000), random.integers(0, 10, 100)
    np.save(tmp_path / "labels.npy", truth[0])
    (tmp_path / "datasets").mkdir()
    np.save(tmp_path / "datasets" / "cifar10.1_v6_labels.npy", truth[1])
    for folder, known in zip(("original_predictions", "v6_predictions"), truth, strict=True):
        place = tmp_path / "model_predictions" / folder
        place.mkdir(parents=True)
        for number, share in enumerate((0.5, 0.5, 0.5, 0.9)):
            answers = np.where(random.random(known.size) < share, known, 10)
            (place / f"model{number}_predictions.json").write_text(json.dumps(answers.tolist()))
    return tmp_path


def test_what_is_accepted_by_score_over_fits(study, monkeypatch):
    few = {name: WAYS[name] for name in ("greedy: a higher score", "the gate, screened")}
    monkeypatch.setattr("benchmarks.replay.WAYS", few)
    right = right_answers(study, study / "labels.npy")
    assert right.shape == (4, 2100)
    assert right.mean(axis=1) == pytest.approx([0.5, 0.5, 0.5, 0.9], abs=0.05)
    lines = table(right, 2000, 2, 200).splitlines()[2:]
    rows = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines}
    assert float(rows["greedy: a higher score"][1]) > 1
    assert float(rows["the gate, screened"][1]) == 0
    assert float(rows["the gate, screened"][3].split(" ")[0]) > 0.2
