"""Progress bars: public stages only, and nothing where no one looks."""

import io
import re
import sys

from dpselect.cli import progress
from dpselect.cli.progress import showing
from dpselect.cli.terminal import bars, plain
from dpselect.repetitions import Fixed, Harmonic, Poisson
from dpselect.steps import each_step


class Terminal(io.StringIO):
    """Standard error as a terminal."""

    def isatty(self):
        return True


def shown(monkeypatch, law, *, quiet=False, operator=False, terminal=True, stages=()):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.showing(law, quiet=quiet, operator=operator) as callbacks:
        for stage in stages:
            callbacks.stage(stage)
        if operator:
            callbacks.operator_progress(2, 7)
    return callbacks, stream.getvalue()


def test_the_bars_speak_of_stages_and_the_law_only(monkeypatch):
    """No matter what has passed, the only words are the stages', the public law's and the time's."""
    _, text = shown(monkeypatch, Harmonic(limit=20), stages=("reading the rows", "searching"))
    said = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[━╸╺]|\d:\d\d:\d\d|-:--:--", "", text)
    words = {line.strip() for line in re.split(r"[\r\n]", said)} - {""}
    assert words == {"reading the rows", "searching: 5.56 runs on average, at most 20"}
    assert progress.law_in_words(Poisson(mean=3)) == "3 runs on average, no hard limit"


def test_the_steps_of_one_run_are_counted_and_those_of_more_are_not(monkeypatch):
    """A count that begins again would tell of another run."""
    for law, seen in (
        (Fixed(count=1), True),
        (Fixed(count=2), False),
        (Harmonic(limit=20), False),
        (Poisson(mean=3), False),
    ):
        stream = Terminal()
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.showing(law, quiet=False, operator=False) as callbacks:
            callbacks.stage("finding the price")
            list(each_step("steps of training", 3))
            assert "of 3" not in stream.getvalue()
            callbacks.stage("training")
            list(each_step("steps of training", 250))
        assert ("training: 249 of 250 steps of training" in stream.getvalue()) is seen


def test_nothing_is_shown_where_nobody_looks(monkeypatch):
    for options in ({"terminal": False}, {"quiet": True}):
        callbacks, text = shown(monkeypatch, Harmonic(limit=20), **options)
        assert callbacks == progress.Shown(None, None)
        assert text == ""


def test_trial_counts_are_for_the_operator_who_asks(monkeypatch):
    _, text = shown(monkeypatch, Harmonic(limit=20), operator=True)
    assert "operator only: 2 of 7 trials" in text


ESCAPES = "\x1b[31mred\x1b[0m\x07\u202ereversed\x9b2J [red]"


def test_a_bar_takes_nothing_for_markup(monkeypatch):
    stream = Terminal()
    with bars(stream) as bar:
        bar.add_task(plain(f"drawing: {ESCAPES} [/nothing]"), total=1.0)
    assert "\x1b[31m" not in stream.getvalue()
    assert "[red] [/nothing]" in stream.getvalue()
    monkeypatch.setattr(sys, "stderr", Terminal())
    with showing(Fixed(count=3), quiet=False, operator=False) as shown:
        shown.stage("[/nothing] searching \x07")
    assert "\x07" not in sys.stderr.getvalue()
