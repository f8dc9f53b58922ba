"""The study with a network of the user runs as it is in the examples, in fewer steps."""

import sys
import tomllib

import numpy as np
import pytest

from dpselect.randomness import keyed_source
from dpselect.study import load_model, parse_study, run_study
from dpselect.testing.learner_contract import unpriced
from tests.root import ROOT

FOLDER = ROOT / "examples" / "network"


@pytest.mark.full
@pytest.mark.parametrize("module", ["my_models:build", "my_models:perceptron"])
def test_the_network_learns(module, tmp_path, monkeypatch):
    pytest.importorskip("opacus")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    document = tomllib.loads((FOLDER / "network.toml").read_text(encoding="utf-8"))
    document["learner"] |= {"module": module, "steps": 12}
    del document["validation"]
    with unpriced():
        run_study(parse_study(document), base_folder=FOLDER, folder=tmp_path / "out", random=keyed_source(1))
    function = vars(sys.modules.pop("my_models"))[module.partition(":")[2]]
    model = load_model(tmp_path / "out" / "model.npz", module=function)
    from sklearn.datasets import load_digits

    rows, labels = load_digits(return_X_y=True)
    assert np.mean(model.predict(rows) == labels) > 0.5
