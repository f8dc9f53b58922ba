"""The frame of `python -m papers`: rows and verdicts, files, the command. The papers have test files of their own."""

import json
import math

import pytest
from papers.table import (
    PAPERS,
    Context,
    Curve,
    Figure,
    Paper,
    Part,
    Reproduction,
    Row,
    paper_named,
)
from papers.written import describe, markdown, tables, write
from typer.testing import CliRunner

from dpselect.errors import ArgumentError
from dpselect.randomness import keyed_source
from papers import __main__ as command


def row(**changes):
    return Row(**{"name": "a row", "paper": 1.0, "ours": 1.0, "known": "printed"} | changes)


ERRATUM = {"corrected": 1.5, "reason": "a reason"}


def test_a_row_within_its_tolerance_is_reproduced_and_one_outside_needs_a_reason():
    assert row().verdict == "reproduced"
    assert row(ours=1.25, tolerance=0.25).verdict == "reproduced"
    assert row(ours=1.26, tolerance=0.25).verdict == "differs"
    assert row(ours=1.26, tolerance=0.25, note="a remark").verdict == "differs"
    assert row(ours=1.5, **ERRATUM).verdict == "differs, explained"
    assert row(paper=math.inf, ours=math.inf).verdict == "reproduced"
    assert row(paper=math.inf, ours=1.0).verdict == "differs"
    assert row(paper=None, note="a curve without numbers").verdict == "not in the paper"


def test_a_reason_excuses_the_corrected_value_only():
    assert row(ours=1.625, **ERRATUM).verdict == "differs"
    assert row(ours=1.625, tolerance=0.125, **ERRATUM).verdict == "differs, explained"
    assert row(ours=1.0, **ERRATUM).verdict == "reproduced"
    assert row(ours=1.0, **ERRATUM).remark == row(ours=1.625, **ERRATUM).remark == ""
    assert row(ours=1.5, note="a remark", **ERRATUM).remark == "a reason; a remark"


@pytest.mark.parametrize(("relation", "inside", "outside"), [(">=", 1.5, 0.5), ("<=", 0.5, 1.5)])
def test_a_bound_of_the_paper_is_met_on_its_side(relation, inside, outside):
    assert {row(ours=ours, relation=relation).verdict for ours in (inside, 1.0)} == {"reproduced"}
    assert row(ours=outside, relation=relation).verdict == "differs"
    assert row(ours=outside, relation=relation, tolerance=0.5).verdict == "reproduced"
    # a corrected value is a value, not a bound
    assert row(ours=outside, relation=relation, corrected=1.0, reason="a reason").verdict == "differs"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"paper": None}, "unspecified"),
        ({"reason": "a reason"}, "corrected"),
        ({"corrected": 1.0}, "corrected"),
        ({"tolerance": -1.0}, "tolerance"),
        ({"tolerance": math.inf}, "tolerance"),
        ({"ours": math.nan}, "not a number"),
        ({"optimal": math.nan}, "not a number"),
        (ERRATUM | {"corrected": math.nan}, "not a number"),
    ],
)
def test_a_row_refuses(changes, said):
    with pytest.raises(ArgumentError, match=said):
        row(**changes)


def test_a_curve_refuses_values_of_different_lengths():
    with pytest.raises(ArgumentError, match="one length"):
        Curve("a", (1.0, 2.0), (1.0,))
    with pytest.raises(ArgumentError, match="one length"):
        Curve("a", (1.0, 2.0), (1.0, 2.0), band=(1.0,))


FIGURE = Figure(
    name="figure-9",
    title="a title",
    x_label="x",
    y_label="y",
    curves=(Curve("c", (1.0, 2.0), (3.0, math.inf), band=(0.5, 0.5)),),
)


def paper(*rows, takes=None, seen=None, stop_at=None):
    def part(context):
        if stop_at is not None and stop_at == len(seen):
            raise KeyboardInterrupt
        context.progress("half way")
        if seen is not None:
            seen.append((context.quick, dict(context.files), context.random.uniform(3).tolist()))
        return Part(source="Table 9", rows=rows, figures=(FIGURE,), unspecified=("the seed",))

    return Paper(
        name="a-paper",
        citation="Someone (2026). [Brackets] stay.",
        parts={"first": part, "second": part},
        full_seconds=2.0,
        quick_seconds=1.0,
        takes=takes or {},
    )


def finished(*rows):
    made = paper(*rows)
    context = Context(True, keyed_source(1))
    return Reproduction(paper=made, quick=True, parts=dict(made.run(context)), seconds=1.0)


def test_a_reproduction_fails_by_one_row_that_nothing_explains():
    assert finished(row(), row(ours=1.5, **ERRATUM), row(paper=None, note="open")).reproduced
    assert not finished(row(), row(ours=2.0, note="a remark")).reproduced
    assert not finished(row(), row(ours=2.0, **ERRATUM)).reproduced


def test_each_part_draws_from_a_source_of_its_own_and_two_runs_draw_the_same():
    seen = []
    for _ in range(2):
        list(paper(row(), seen=seen).run(Context(True, keyed_source(1))))
    first, second, again, again_second = (drawn for _, _, drawn in seen)
    assert first == again != second == again_second


@pytest.mark.full
def test_the_written_json_has_every_row_and_no_infinity_and_the_image_is_the_same_twice(tmp_path):
    done = finished(row(optimal=math.inf, known="claim"))
    paths = write(done, tmp_path / "new" / "folder")
    assert [path.name for path in paths] == [
        "a-paper.json",
        "a-paper.md",
        "a-paper-figure-9.svg",
        "a-paper-figure-9.svg",
    ]

    def refuse(constant):
        raise AssertionError(constant)

    read = json.loads(paths[0].read_text(encoding="utf-8"), parse_constant=refuse)
    assert read == describe(done)
    part = read["parts"]["first"]
    assert part["rows"][0] | {"optimal": None, "known": "claim"} == part["rows"][0]
    assert part["figures"]["figure-9"]["curves"] == [
        {"label": "c", "x": [1.0, 2.0], "y": [3.0, None], "band": [0.5, 0.5]}
    ]
    image = paths[2].read_bytes()
    assert b"<svg" in image
    write(done, tmp_path / "other")
    assert (tmp_path / "other" / "a-paper-figure-9.svg").read_bytes() == image


def test_the_table_marks_how_a_value_is_known():
    claim, unsaid = row(known="claim", relation=">="), row(paper=None, note="open")
    table = tables(finished(row(known="formula"), claim, row(tolerance=0.125), unsaid))[0]
    assert list(table.columns[1].cells) == ["1 (f)", ">= 1 (c)", "1", "-"]
    assert list(table.columns[4].cells) == ["0", "0", "0.12", "-"]


def test_the_page_has_every_row_and_is_the_same_twice():
    rows = (row(name="a | b", known="claim"), row(ours=1.5, **ERRATUM))
    page = markdown(finished(*rows))
    assert "| a \\| b | 1 (c) | 1 | - | 0 | reproduced |" in page
    assert "| a row | 1 | 1.5 | - | 0 | differs, explained: a reason |" in page
    assert "- Not specified in the paper: the seed." in page
    assert page == markdown(finished(*rows))


def only_npz(path):
    if not path.endswith(".npz"):
        raise ArgumentError("no digits in there")


MNIST = {"mnist": only_npz}


def invoke(monkeypatch, made, *arguments):
    monkeypatch.setattr(command, "paper_named", lambda name: made)
    return CliRunner().invoke(command.app, ["a-paper", *arguments])


@pytest.mark.full
def test_the_command_prints_and_writes_and_its_status_is_the_verdict(monkeypatch, tmp_path):
    seen = []
    given = tmp_path / "data.npz"
    given.write_bytes(b"")
    result = invoke(
        monkeypatch, paper(row(), takes=MNIST, seen=seen), "--quick", "--output", str(tmp_path / "a"),
        "--data", f"mnist={given}",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "[Brackets] stay." in result.stdout
    assert "the seed" in result.stdout
    assert seen[0][:2] == (True, {"mnist": str(given)})
    assert {path.name for path in (tmp_path / "a").iterdir()} == {
        "a-paper.json",
        "a-paper.md",
        "a-paper-figure-9.svg",
    }
    result = invoke(monkeypatch, paper(row(ours=2.0)), "--json", "--output", str(tmp_path / "b"))
    assert result.exit_code == 1
    assert json.loads(result.stdout)["reproduced"] is False
    assert json.loads(result.stdout)["mode"] == "full"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--data", "mnist"), "NAME=PATH"),
        (("--data", f"mnist={__file__}"), "no digits in there"),
        (("--data", "other=x"), "takes mnist"),
        (("--data", "mnist=no-such-file"), "does not exist"),
        (("--output", __file__), "folder"),
    ],
)
def test_wrong_usage_is_refused_before_any_work(monkeypatch, arguments, said):
    seen = []
    result = invoke(monkeypatch, paper(row(), takes=MNIST, seen=seen), *arguments)
    assert isinstance(result.exception, ArgumentError)
    assert said in str(result.exception)
    assert not seen


def test_ctrl_c_writes_the_parts_that_are_done(monkeypatch, tmp_path):
    for done in (0, 1):
        folder = tmp_path / str(done)
        result = invoke(monkeypatch, paper(row(), seen=[], stop_at=done), "--json", "--output", str(folder))
        assert result.exit_code == 130
        assert "interrupted" in result.stderr
        assert (folder / "a-paper.json").exists() == bool(done)
    read = json.loads(result.stdout)
    assert read["missing"] == ["second"]
    assert read["reproduced"] is False
    assert list(read["parts"]) == ["first"]
    assert "Interrupted: second not done." in (folder / "a-paper.md").read_text(encoding="utf-8")


def test_the_five_papers_are_there_under_their_names():
    for name in PAPERS:
        found = paper_named(name)
        assert found.name == name
        assert found.parts
    with pytest.raises(ArgumentError, match="tuning-rdp"):
        paper_named("no-such-paper")
