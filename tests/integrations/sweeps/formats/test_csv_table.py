"""CSV with a row for each run."""

import pytest

from dpselect.errors import ArgumentError, ContentError
from dpselect.integrations.sweeps.read import read_sweep
from tests.integrations.sweeps import tool_records as made


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found(tmp_path, delimiter):
    sweep = read_sweep(str(made.csv_file(tmp_path, delimiter=delimiter, name="sweep.tsv")))
    assert [run.values["noise_multiplier"] for run in sweep.runs] == ["1.0", "2.0", "2.0"]


def test_an_export_of_weights_and_biases(tmp_path):
    path = made.wrote(
        tmp_path / "a.csv", '"Name","State","noise_multiplier"\n"bold-1","finished","1"\n"b-2","crashed",""\n\n'
    )
    runs = read_sweep(str(path)).runs
    assert [(run.name, run.status, run.values["noise_multiplier"]) for run in runs] == [
        ("bold-1", "finished", "1"),
        ("b-2", "failed", None),
    ]


def test_results_of_a_search_of_scikit_learn(tmp_path):
    pandas = pytest.importorskip("pandas")
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GridSearchCV

    search = GridSearchCV(Ridge(), {"alpha": [1.0, 2.0]}, cv=3).fit([[i] for i in range(9)], range(9))
    path = tmp_path / "a.csv"
    pandas.DataFrame(search.cv_results_).to_csv(path)
    sweep = read_sweep(str(path))
    assert [run.times for run in sweep.runs] == [3, 3, 1]
    assert sweep.runs[2].values["param_alpha"] == str(search.best_params_["alpha"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n1\n", "a row of 1 cells below a header of 2"),
        ("a,a\n1,2\n", "more than one column 'a'"),
        ("a,b\n", "no rows"),
        ("", "no rows"),
    ],
)
def test_what_is_refused(tmp_path, text, message):
    with pytest.raises(ContentError, match=message):
        read_sweep(str(made.wrote(tmp_path / "a.csv", text)))


def test_a_file_has_no_parts(tmp_path):
    with pytest.raises(ArgumentError, match="study_name"):
        read_sweep(str(made.csv_file(tmp_path)), part="a")
