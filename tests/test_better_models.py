"""The benchmark of models: it measures once, and its page says where a target is missed."""

import json

from benchmarks import better_models as benchmark


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


def test_designs_are_those_that_a_study_knows():
    names = [name for name, _ in benchmark.ways(next(benchmark.tables()))]
    assert "a search for the map: one-stage" in names
    assert "told the maps: auto" in names
