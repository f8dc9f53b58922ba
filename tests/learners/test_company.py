"""Whether answers or sums depend on the rows beside: independent ones pass, each kind of dependence is found."""

import numpy as np
import pytest

from dpselect.learners.company import ROWS, depends_on_company, sum_depends_on_company

VALUES = np.linspace(0.5, 2.0, ROWS)


class Counting:
    """Answers by how often it was called before."""

    def __init__(self):
        self.calls = 0

    def __call__(self, places):
        self.calls += 1
        return VALUES[places] * self.calls


@pytest.mark.parametrize(
    "answers",
    [
        lambda places: VALUES[places],
        lambda places: VALUES[places] * (1 + 1e-5 * np.arange(len(places))),  # rounding by place in a batch
        lambda places: np.array(list("ab" * 16))[places],
        lambda places: np.where(places % 2, np.nan, 1.0),
        lambda places: np.ones((len(places), 3)),
    ],
    ids=["numbers", "rounded", "text", "missing", "several"],
)
def test_answers_of_rows_alone(answers):
    assert not depends_on_company(answers)


@pytest.mark.parametrize(
    "answers",
    [
        lambda places: VALUES[places] - VALUES[places].mean(),
        lambda places: VALUES[places] + 0.01 * (len(places) == ROWS),
        lambda places: VALUES[places] + 0.01 * (places[0] == 0),
        lambda places: VALUES[places] + 0.01 * (len(places) == 1),
        lambda places: VALUES[places] * (1 + 0.01 * (places[:1] > places[-1:])),
        lambda places: np.array(list("ab" * 16))[np.sort(places)],
        lambda places: VALUES[places][: 9 if len(places) == 13 else None],
        lambda places: VALUES[places][:9],
        lambda places: VALUES[places].mean(),
        Counting(),
    ],
    ids=["mean", "number", "first", "alone", "order", "sorted", "too few", "always too few", "one for all", "calls"],
)
def test_answers_that_depend_on_others(answers):
    assert depends_on_company(answers)


def test_sums():
    assert not sum_depends_on_company(lambda places: VALUES[places].sum())
    assert not sum_depends_on_company(lambda places: np.stack([VALUES, -VALUES], axis=1)[places].sum(axis=0))
    assert not sum_depends_on_company(lambda places: VALUES[places].sum() * (1 + 1e-6 * (len(places) > 20)))
    assert sum_depends_on_company(lambda places: VALUES[places].sum() * (1 + 1e-4 * (len(places) > 20)))
    assert sum_depends_on_company(lambda places: VALUES[places].mean())
    assert sum_depends_on_company(lambda places: VALUES[np.unique(places)].max())
