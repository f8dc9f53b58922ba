"""The command `report` makes the page again where it is told, and says where."""

import json
from pathlib import Path

import dpselect.study.write
from dpselect.cli.report import report


def test_it_names_the_page(monkeypatch, capsys):
    asked = []

    def remake(folder, output):
        asked.append((folder, output))
        return output or folder / "report.html"

    monkeypatch.setattr(dpselect.study.write, "remake_report", remake)
    report(Path("found"))
    assert capsys.readouterr().out == f"look at {Path('found/report.html')}\n"
    report(Path("found"), Path("page.html"), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"report": "page.html"}
    assert asked == [(Path("found"), None), (Path("found"), Path("page.html"))]
