"""Opacus's accountants, their states and its engine; the library itself where it is installed."""

from __future__ import annotations

from collections import OrderedDict
from types import SimpleNamespace

import pytest

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.integrations.opacus.state import CALLER_ENSURES, history_guarantee
from dpselect.privacy import as_guarantee

HISTORY = [(1.0, 0.01, 50), (2.0, 0.02, 30)]
OURS = history_guarantee(HISTORY).epsilon(1e-5)


def theirs(name, **fields):
    """An object of a class that Opacus defines."""
    return type(name, (SimpleNamespace,), {"__module__": "opacus.made.up"})(**fields)


def test_an_accountant_its_state_and_its_engine_are_one():
    accountant = theirs("RDPAccountant", history=HISTORY)
    state = OrderedDict(history=HISTORY, mechanism="rdp")
    for thing in (
        accountant,
        theirs("PrivacyEngine", accountant=accountant),
        state,
        {"privacy_accountant_state_dict": state, "module": 1},
    ):
        found = as_guarantee(thing)
        assert found.epsilon(1e-5) == OURS
        assert CALLER_ENSURES in found.terms["rests"]
        with pytest.raises(AdjacencyError, match="Opacus"):
            as_guarantee(thing, adjacency="replace_one")


def test_what_tells_no_steps_is_refused():
    with pytest.raises(ArgumentError, match="engine_guarantee"):
        as_guarantee(theirs("DPOptimizer", noise_multiplier=1.0))
    for history, match in (([], "no step"), ([(1.0, 0.01)], "history"), ("abc", "history"), (None, "history")):
        with pytest.raises(ArgumentError, match=match):
            as_guarantee({"history": history})
    for phase in ((0.0, 0.01, 5), (1.0, 1.5, 5), (1.0, 0.01, 0)):
        with pytest.raises(ArgumentError):
            as_guarantee({"history": [phase]})


@pytest.mark.full
@pytest.mark.parametrize("name", ["RDPAccountant", "PRVAccountant", "GaussianAccountant"])
def test_the_librarys_accountants(name):
    accountants = pytest.importorskip("opacus.accountants")
    accountant = getattr(accountants, name)()
    for _ in range(40):
        accountant.step(noise_multiplier=1.0, sample_rate=0.05)
    ours = as_guarantee(accountant)
    assert as_guarantee(accountant.state_dict()).epsilon(1e-5) == ours.epsilon(1e-5)
    if name == "RDPAccountant":
        assert ours.epsilon(1e-5) <= accountant.get_epsilon(1e-5) * 1.001
    if name == "PRVAccountant":
        assert ours.epsilon(1e-5) == pytest.approx(accountant.get_epsilon(1e-5), abs=0.02)  # its error is 0.01


@pytest.mark.full
def test_the_librarys_engine():
    opacus = pytest.importorskip("opacus")
    engine = opacus.PrivacyEngine()
    with pytest.raises(ArgumentError, match="no step"):
        as_guarantee(engine)
    engine.accountant.step(noise_multiplier=1.0, sample_rate=0.05)
    assert as_guarantee(engine).epsilon(1e-5) == history_guarantee([(1.0, 0.05, 1)]).epsilon(1e-5)
