"""Two stages: shares of epsilon, and the key of the last run."""

import pytest

from dpselect.errors import ArgumentError
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.searching.stages import FIRST_STAGE, SHARE, FirstStage, TwoStages
from tests.searching.requests import request


@pytest.mark.parametrize("share", [SHARE, 0.5])
def test_both_stages_together_cost_the_total(share):
    found = TwoStages(share=share).priced(request(epsilon=2.0, repetitions=Fixed(count=1)))
    assert found.parts[0].epsilon(0.0) == pytest.approx(2.0 * (1.0 - share))
    assert found.final.epsilon(0.0) == pytest.approx(2.0 * share, rel=1e-3)
    assert found.final_noise == pytest.approx(1.0 / (2.0 * share), rel=1e-3)
    assert 2.0 - 1e-3 <= found.search.epsilon(0.0) <= 2.0


def test_what_is_paid_beside_leaves_less_to_the_last_run():
    beside = pure_dp(epsilon=0.25)
    found = TwoStages(share=0.5).priced(request(epsilon=2.0, repetitions=Fixed(count=1), beside=beside))
    assert found.final.epsilon(0.0) == pytest.approx(0.75, rel=1e-3)


def test_a_share_is_between_0_and_1():
    for share in (0.0, 1.0, -0.1):
        with pytest.raises(ArgumentError, match="share"):
            TwoStages(share=share)
    assert (SHARE, FIRST_STAGE.mean) == (0.7, pytest.approx(5.0))


def test_a_run_of_the_first_stage_gives_its_score_and_a_key_in_place_of_its_value():
    seen = []

    def run(params, random):
        seen.append(random.bytes(4))
        return params["x"], "a model"

    stage = FirstStage(run, "last", value=lambda key: [key])
    score, (key,) = stage({"x": 0.5}, keyed_source(1))
    assert score == 0.5
    assert key == keyed_source(1).spawn("last").bytes(32)
    assert key != keyed_source(1).spawn("other").bytes(32)
    assert seen == [keyed_source(1).bytes(4)]
