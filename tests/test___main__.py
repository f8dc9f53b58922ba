import runpy

import dpselect.cli
from tests.root import ROOT


def test_python_m_dpselect_is_the_command(monkeypatch):
    called = []
    monkeypatch.setattr(dpselect.cli, "main", lambda: called.append(True))
    runpy.run_path(str(ROOT / "src/dpselect/__main__.py"), run_name="__main__")
    assert called
