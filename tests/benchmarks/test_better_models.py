"""The benchmark of models: it measures once, and its page says where a target is missed."""

import json

import pytest
from benchmarks.model_tables import tables

from benchmarks import better_models as benchmark, planner


@pytest.mark.full
def test_it_measures_what_it_was_asked_for_once_and_writes_its_page(tmp_path):
    data, page = tmp_path / "found.json", tmp_path / "page.md"
    page.write_text(f"before\n{benchmark.FIRST}\nold\n{benchmark.LAST}\nafter\n")
    asked = ["--only", "iris", "--seeds", "1", "--ways", "by default", "not private: linear", "--json", str(data)]
    first = benchmark.main(asked)
    assert [each["way"] for each in first] == ["by default (nothing chosen)"] * 3 + ["not private: linear"] * 3
    assert all(each["score"] > 0.7 for each in first)
    assert benchmark.main([*asked, "--page", str(page)]) == first == json.loads(data.read_text())
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "**iris**, accuracy" in text
    assert "old" not in text


def test_what_is_missed_or_refused_is_said():
    one = {"table": "digits", "seed": 0, "seconds": 1.0, "regression": False}
    found = [{**one, "way": benchmark.DEFAULT, "epsilon": e, "score": 0.95} for e in benchmark.EPSILONS]
    found += [{**one, "way": "another", "epsilon": e, "why": "refused: no"} for e in benchmark.EPSILONS]
    lines = "\n".join(benchmark.markdown(found))
    assert "| digits | 0.900, 0.950 | 0.945, 0.950 | 0.965, 0.950 (missed) |" in lines
    assert "| another | refused: no |" in lines


def test_a_row_says_of_how_many_splits_it_is_and_searches_are_compared_split_by_split():
    ways = {benchmark.DEFAULT: (0.5, 0.6, 0.7), f"{benchmark.FOR_MAPS}two-stage": (0.6, 0.8)}
    found = [
        release("wine", way, epsilon, seed, score)
        for way, scores in ways.items()
        for epsilon in benchmark.EPSILONS
        for seed, score in enumerate(scores)
    ]
    lines = "\n".join(benchmark.markdown(found))
    assert "| by default (nothing chosen) | 0.600 ± 0.082 | 0.600 ± 0.082 | 0.600 ± 0.082 | 3 | 1.0 |" in lines
    assert "| a search for the map: two-stage | 0.700 ± 0.100 | 0.700 ± 0.100 | 0.700 ± 0.100 | 2 | 1.0 |" in lines
    *_, row = benchmark.paired(found)
    assert row == "| wine | a search for the map: two-stage | +150 ± 50 | +150 ± 50 | +150 ± 50 | 2 |"


def test_designs_are_those_that_a_study_knows():
    names = [name for name, _ in benchmark.ways(next(benchmark.tables()))]
    assert "a search for the map: one-stage" in names
    assert "told the maps: auto" in names


def release(table, way, epsilon, seed, score):
    found = {"table": table, "way": way, "epsilon": epsilon, "seed": seed, "score": score}
    return {**found, "seconds": 1.0, "regression": False}


@pytest.mark.full
def test_the_planner_fits_gains_on_the_same_split_and_checks_tables_that_are_held_out():
    rows = [("wine", 0.90), ("iris", 0.80), ("orders, 3,000 rows", 0.70)]
    found = [
        release(table, way, epsilon, seed, base + seed / 10 + more)
        for table, base in rows
        for seed in range(3)
        for way, epsilon, more in (
            (benchmark.DEFAULT, 1.0, 0.0),
            (f"{benchmark.FOR_MAPS}one-stage", 1.0, -0.02 * seed),
            (planner.WITHOUT_NOISE, planner.LARGE, 0.05),
        )
    ]
    named = {table.name: table for table in tables() if table.name in dict(rows)}
    assert planner.fitted(found, [named["wine"]])["gains"] == []  # of one table nothing is said
    shipped = planner.fitted(found, [named["wine"], named["iris"]])
    assert shipped["tables"] == ["wine", "iris"]
    (gain,) = shipped["gains"]
    assert (gain["task"], gain["design"], gain["space"], gain["group"]) == ("classification", "one-stage", "maps", 0)
    assert (gain["low"], gain["median"], gain["high"], gain["releases"]) == (-0.04, -0.02, 0.0, 6)
    assert shipped["losses"] == []  # for each weight they have not as many signals
    assert [loss for _, loss in planner.losses(found, named["wine"])] == pytest.approx([0.05] * 3)
    assert planner.weights(named["wine"]) == 13 * 3
    assert planner.signals(named["wine"], 1.0) == pytest.approx(0.8 * 178 * 0.268, rel=0.01)
    # orders has n mu of 640, and 20 a weight: in both it is of another group than wine
    assert list(planner.held_out(found, [named["orders, 3,000 rows"]], shipped))[2:] == []
    *_, checked = planner.held_out(found, [named["wine"]], shipped)
    assert "| -20, -40 to +0 | -20 | 3 of 3 |" in checked
