"""Search spaces from lists, SciPy distributions and objects with rvs: what each becomes, and its draws."""

import numpy as np
import pytest
from scipy import stats

from dpselect.integrations.sklearn.designs import listed
from dpselect.integrations.sklearn.distributions import describe_value, search_space
from dpselect.randomness import keyed_source
from dpselect.tuning import IntegerUniform, LogUniform, Uniform

# draws


def test_scipy_distributions_become_our_laws_or_are_inverted():
    laws = search_space(
        {
            "u": stats.uniform(1, 3),
            "l": stats.loguniform(1e-3, 1),
            "i": stats.randint(1, 5),
            "n": stats.norm(2.0, 3.0),
            "p": stats.poisson(3.0),
        }
    ).parameters
    assert laws["u"] == Uniform(1.0, 4.0)
    assert laws["l"] == LogUniform(1e-3, 1.0)
    assert laws["i"] == IntegerUniform(1, 4)
    source = keyed_source(1)
    normal = [laws["n"].sample(source) for _ in range(500)]
    # a Kolmogorov-Smirnov test at level 1e-3, for this key
    assert stats.kstest(normal, stats.norm(2.0, 3.0).cdf).pvalue > 1e-3
    assert all(isinstance(laws["p"].sample(source), int) for _ in range(5))


class OnlyRvs:
    def rvs(self, random_state=None):
        return random_state.standard_normal()


def test_an_object_with_rvs_is_drawn_from_our_source():
    law = search_space({"x": OnlyRvs()}).parameters["x"]
    one, again, other = (law.sample(keyed_source(key)) for key in (1, 1, 2))
    assert one == again != other
    assert describe_value(law.law) == describe_value(OnlyRvs())


def test_choices_may_be_anything_and_a_list_of_spaces_is_drawn_from_evenly():
    space = search_space([{"a": [(1, 2), None]}, {"b": np.array([1.0, 2.0])}])
    drawn = [space.sample(keyed_source(key)) for key in range(400)]
    share = sum("a" in each for each in drawn) / 400
    assert abs(share - 0.5) < 0.1  # 4 deviations
    assert {each["a"] for each in drawn if "a" in each} == {(1, 2), None}
    assert {type(each["b"]) for each in drawn if "b" in each} == {float}


@pytest.mark.full
def test_lists_within_lists_are_candidates_too():
    space = search_space([[{"steps": [1]}, {"steps": [2]}], {"steps": [3]}])
    assert listed(space) == [{"steps": 1}, {"steps": 2}, {"steps": 3}]
