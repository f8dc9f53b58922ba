"""What every design declares: its price, its share, its name, and which runs follow from them."""

from dataclasses import dataclass, replace

import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.repetitions import Fixed
from dpselect.searching.design import Design, DesignPrice, design_names, listed, search_design
from dpselect.searching.one_run import SingleRun
from dpselect.searching.stages import TwoStages
from tests.searching.requests import request

PRICE = DesignPrice(repetitions=Fixed(count=1), noise=1.0, parts=(pure_dp(epsilon=1.0),))


@dataclass(frozen=True, kw_only=True)
class Says(Design):
    """A design with this price."""

    found: DesignPrice = PRICE

    def price(self, request):
        return self.found


def test_a_last_run_without_a_guarantee_is_refused():
    with pytest.raises(ArgumentError, match="final is needed beside final_noise"):
        replace(PRICE, final_noise=1.0)
    assert replace(PRICE, final=pure_dp(epsilon=0.5)).search.epsilon(0.0) == 1.5


def test_a_price_of_other_runs_than_the_class_says_is_refused():
    assert Says().priced(request()) is PRICE
    last = replace(PRICE, final=pure_dp(epsilon=0.5), final_noise=2.0)
    with pytest.raises(ArgumentError, match=r"Says\.price says another kind of runs"):
        Says(found=last).priced(request())


def test_only_a_design_with_a_last_run_takes_a_share():
    assert TwoStages.of(0.6).share == 0.6
    assert TwoStages.of().share == 0.7
    assert SingleRun.of(0.6) == SingleRun()


def test_a_design_of_several_noises_needs_a_total():
    assert request(epsilon=3.0, delta=1e-6).total == (3.0, 1e-6)
    with pytest.raises(ArgumentError, match="epsilon must be given"):
        _ = request(epsilon=1.0).__class__(**{**vars(request()), "epsilon": None}).total


def test_names_begin_with_those_that_draw_nothing():
    names = [name for name in design_names() if name in ("one-run", "one-stage", "portfolio", "two-stage")]
    assert names == ["one-run", "portfolio", "one-stage", "two-stage"]
    with pytest.raises(ArgumentError, match="design 'one-run' exists already"):
        search_design("one-run")(Says)


def test_combinations_list_the_first_choices_first():
    assert listed({"a": [1, 2], "b": ["x", "y"]}) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
