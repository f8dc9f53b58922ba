"""The command `export` writes where it is told, and says so."""

from pathlib import Path

import dpselect.study
from dpselect.cli.export import export


def test_it_exports_and_names_the_file(monkeypatch, capsys):
    done = []
    monkeypatch.setattr(dpselect.study, "export_model", lambda *given: done.append(given), raising=False)
    export(Path("model.npz"), Path("model.joblib"))
    assert done == [(Path("model.npz"), Path("model.joblib"))]
    assert capsys.readouterr().out == "wrote model.joblib\n"
