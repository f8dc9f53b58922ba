"""Problems of a study are collected, so that all of them are reported at once."""

import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.study.problems import Problems


def refusing(text, kind=ArgumentError):
    def step():
        raise kind(text)

    return step


def test_a_step_returns_its_value_and_an_error_is_kept():
    check = Problems()
    assert check.of(lambda: 3, "data") == 3
    check.none()
    assert check.of(refusing("first")) is None
    with pytest.raises(ArgumentError, match=r"^first$"):
        check.none()
    check.of(refusing("second"))
    check.of(refusing("second"))
    assert check.lines == ["first", "second"]
    with pytest.raises(StudyError, match=r"the study cannot run:\n  first\n  second$"):
        check.none()


@pytest.mark.parametrize(
    ("wrong", "key", "runs"),
    [
        ("data.label", "data", False),
        ("data", "data.label", False),
        ("data.label", "data.label", False),
        ("data.label", "data.labels", True),
        ("data.labels", "data.label", True),
        ("privacy", "data", True),
    ],
)
def test_a_step_that_depends_on_a_wrong_key_is_not_taken(wrong, key, runs):
    assert Problems([wrong]).of(lambda: "ran", key) == ("ran" if runs else None)


def test_a_mistake_of_the_program_is_not_kept():
    with pytest.raises(ZeroDivisionError):
        Problems().of(lambda: 1 / 0)
