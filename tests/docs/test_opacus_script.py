"""The page that turns a script with Opacus into a search shows the difference of two scripts, and both run."""

import difflib
import importlib.util

import pytest

from dpselect.accounting import best_of
from dpselect.privacy import compose
from dpselect.repetitions import Fixed, Harmonic
from tests.root import ROOT

PAGE = ROOT / "docs" / "how-to" / "tune-an-opacus-script.md"
NAMES = ("script", "searched")


def script(name):
    pytest.importorskip("opacus")
    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / "opacus_search" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_shows_the_difference():
    texts = [
        (ROOT / "examples" / "opacus_search" / f"{name}.py").read_text(encoding="utf-8").splitlines() for name in NAMES
    ]
    found = list(difflib.unified_diff(*texts, n=1, lineterm=""))[2:]
    shown = PAGE.read_text(encoding="utf-8").partition("```diff\n")[2].partition("\n```")[0].splitlines()
    assert shown == ["@@" if line.startswith("@@") else line for line in found]


@pytest.mark.full
def test_both_scripts_run(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["script", "--model", str(tmp_path / "model.pt")])
    for name, quick in zip(NAMES, ({"EPOCHS": 1}, {}), strict=True):
        module = script(name)
        for key, value in quick.items():
            monkeypatch.setattr(module, key, value)
        if hasattr(module, "TRAINING"):
            monkeypatch.setattr(module, "Harmonic", lambda limit: Fixed(count=1))
            monkeypatch.setattr(module, "TRAINING", type(module.TRAINING)(
                noise_multiplier=4.0, sampling_rate=0.2, steps=2, max_grad_norm=1.0, expected_batch_size=288
            ))  # fmt: skip
        module.main()
        assert "best: {" in capsys.readouterr().out
        assert (tmp_path / "model.pt").stat().st_size > 1000


@pytest.mark.full
def test_the_prices_of_the_page():
    pytest.importorskip("opacus")
    single, page = script(NAMES[1]).TRAINING.guarantee, PAGE.read_text(encoding="utf-8")
    assert f"| {compose(*[single] * 6).epsilon(1e-5):.2f} |" in page
    assert f"| {best_of(single, Harmonic(limit=21)).epsilon(1e-5):.2f} |" in page  # above that of a scoring row
    assert f"{Harmonic(limit=21).mean:.1f} runs on average" in page
