"""Code of the user's own: where it is found, what is no function, and modules of one name in two places."""

import sys

import pytest

from dpselect.errors import ArgumentError
from dpselect.study.user_module import code_digest, function_of, importable, named_modules, refuse_ambiguous


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "nets_of_a_test.py").write_text(
        "def build(columns, classes):\n    return columns, classes\n\nSIZE = 3\n"
    )
    (tmp_path / "broken_nets.py").write_text("raise RuntimeError('not today')\n")
    (tmp_path / "needing_nets.py").write_text("import no_such_package_at_all\n")
    before = list(sys.path)
    with importable(tmp_path):
        yield tmp_path
    assert sys.path == before
    for name in ("nets_of_a_test", "broken_nets", "needing_nets"):
        sys.modules.pop(name, None)


def test_a_function_is_found_in_the_folder(folder):
    assert function_of("nets_of_a_test:build")(4, 2) == (4, 2)
    assert function_of(len) is len
    assert function_of("collections:OrderedDict.fromkeys")("ab") == {"a": None, "b": None}


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("nets_of_a_test", 'such as "my_models:build"'),
        ("nets_of_a_test:", 'such as "my_models:build"'),
        ("../nets:build", 'such as "my_models:build"'),
        (3, 'such as "my_models:build"'),
        (None, 'such as "my_models:build"'),
        ("nets_of_a_test:SIZE", "has no function 'SIZE'"),
        ("nets_of_a_test:none", "has no function 'none'"),
        ("no_nets:build", "there is no Python module 'no_nets' in the study file's folder"),
        ("nets_of_a_test.part:build", "there is no Python module 'nets_of_a_test.part'|cannot be imported"),
        ("broken_nets:build", "'broken_nets' cannot be imported: RuntimeError: not today"),
        ("needing_nets:build", "'needing_nets' cannot be imported: No module named 'no_such_package_at_all'"),
    ],
)
def test_what_is_no_function_is_refused(folder, module, said):
    with pytest.raises(ArgumentError, match=said):
        function_of(module)


def test_a_folder_comes_after_everything_else_and_once(folder):
    assert sys.path[-1] == str(folder.resolve())
    with importable(folder):
        assert sys.path.count(str(folder.resolve())) == 1
    assert sys.path[-1] == str(folder.resolve())


def test_a_module_that_hides_behind_another_one_is_refused(folder, tmp_path_factory):
    refuse_ambiguous("nets_of_a_test:build", folder)
    refuse_ambiguous("json:loads", folder)  # none in the folder
    (folder / "json.py").write_text("def build(): ...\n")
    with pytest.raises(ArgumentError, match="'json' in the study file's folder has the name of another module"):
        refuse_ambiguous("json:build", folder)
    function_of("nets_of_a_test:build")
    other = tmp_path_factory.mktemp("other")
    (other / "nets_of_a_test.py").write_text("def build(columns, classes): ...\n")
    with pytest.raises(ArgumentError, match="Rename it"):  # the first one is loaded
        refuse_ambiguous("nets_of_a_test:build", other)


def test_a_digest_follows_the_file(folder):
    function_of("nets_of_a_test:build")
    before = code_digest("nets_of_a_test:build")
    assert len(before) == 64
    (folder / "nets_of_a_test.py").write_text("def build(): ...\n")
    assert code_digest("nets_of_a_test:build") != before
    assert code_digest("sys:exit") == code_digest("never_imported:build") == ""


def test_the_names_in_a_study():
    choices = {"law": "categorical", "choices": ["a:b", "c:d"]}
    assert named_modules({"module": "x:y"}, {"module": choices}) == ["x:y", "a:b", "c:d"]
    assert named_modules({}, {"steps": choices}) == named_modules({"module": 3}, {"module": {"choices": "a"}}) == []
