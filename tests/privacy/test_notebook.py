"""What a notebook shows: the price and what is public, everything escaped, nothing secret."""

import numpy as np
import pytest

from dpselect.accounting import plan
from dpselect.ledger import Ledger
from dpselect.privacy import OutputGuarantee, Release, approximate_dp, from_profile, gaussian, pure_dp
from dpselect.privacy.notebook import bound, card, grid, text
from dpselect.privacy.release import Receipt
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic
from dpselect.tuning import LogUniform, TuneResult, tune
from tests.report.test_page import Outline

HOSTILE = "<script>alert('x')</script>"


def html(thing):
    shown = thing._repr_html_()
    assert Outline(shown).unbalanced == []
    assert "<script" not in shown
    return shown


def test_a_guarantee_shows_its_price():
    shown = html(gaussian(noise_multiplier=4.0))
    assert "1.0607" in shown  # 1.06067 at delta 1e-6 (Balle, Wang 2018), as `dpselect account` prints it
    assert "noise_multiplier = 4" in shown
    assert "add_or_remove_one" in shown
    assert "epsilon at delta 0<" in html(pure_dp(epsilon=1.0))
    assert "epsilon at delta 0<" not in html(approximate_dp(epsilon=1.0, delta=1e-6))


def test_a_price_is_rounded_up_and_infinity_is_told_in_words():
    assert float(bound(1.23456789)) >= 1.23456789
    assert "nothing finite" in html(from_profile([1.0], [1e-3]))


def test_an_output_guarantee_shows_its_cells():
    answers = OutputGuarantee(cell=lambda output: output, epsilons={HOSTILE: 1.0, "no": 0.1})
    shown = html(answers)
    assert "epsilon of &#x27;no&#x27;" in shown
    many = OutputGuarantee(cell=lambda output: output, epsilons=dict.fromkeys(range(30), 0.1))
    assert "and more cells" in html(many)
    assert "Realised price" in html(answers.observed("no"))


def test_a_release_shows_what_was_released():
    guarantee = pure_dp(epsilon=1.0)
    receipt = Receipt(account=HOSTILE, identifier="i", charged={"epsilon": 1.0})
    assert "&lt;script&gt;" in html(Release(value=HOSTILE, guarantee=guarantee, receipt=receipt))
    assert "nothing" in html(Release(value=None, guarantee=guarantee))
    assert "promises nothing to anyone who knows that key" in html(
        Release(value=1, guarantee=guarantee, replayable=True)
    )
    assert "a dict_keys" in html(Release(value={}.keys(), guarantee=guarantee))
    assert "0.5" in html(Release(value=np.float64(0.5), guarantee=guarantee))


@pytest.mark.full
def test_a_search_shows_the_winner_and_nothing_else():
    """The same picture for two keys with different K, but for what was released."""
    law = Harmonic(limit=3)
    keys = {law.sample(keyed_source(key)): key for key in range(60, -1, -1)}
    shown = []
    for count in (1, 3):
        result = tune(
            lambda params, random: (random.laplace(1)[0], "model"),
            space={"x": LogUniform(0.1, 1.0)},
            base=pure_dp(epsilon=1.0),
            repetitions=law,
            random=keyed_source(keys[count]),
        )
        shown.append(html(result).replace(f"{result.params['x']:.6g}", "X"))
    assert shown[0] == shown[1]
    assert "x = X" in shown[0]
    assert "score" not in shown[0]
    declared = TuneResult(value=1, guarantee=pure_dp(epsilon=1.0), params={"x": 1}, score=0.5, key_variable="SECRET")
    assert "score" in html(declared)
    assert "SECRET" not in html(declared)


def test_a_plan_shows_every_option():
    found = plan(base=pure_dp(epsilon=1.0), delta=0, expected_quantile=0.7, max_runs=10)
    assert html(found).count("<tr>") == len(found.options) + 1


def test_ledgers_and_budgets_show_what_is_left(tmp_path):
    with Ledger.open(tmp_path / "budget.db") as ledger:
        budget = ledger.create_budget(HOSTILE, epsilon=3, delta=1e-6)
        budget.reserve(pure_dp(epsilon=1.0), label="secret label").settle()
        for shown in (html(budget), html(ledger)):
            assert "&lt;script&gt;" in shown
            assert ">2<" in shown
            assert "secret label" not in shown


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "none"), (0.5, "0.5"), ((1, None), "1, none"), (object(), "a object")]
)
def test_values_in_a_cell(value, shown):
    assert text(value) == shown


def test_long_values_are_cut():
    assert len(text("x" * 10_000)) < 300
    assert len(text(["x" * 150] * 100)) < 300


def test_titles_and_heads_are_escaped():
    assert "<script" not in card(HOSTILE, [(HOSTILE, HOSTILE)], note=HOSTILE)
    assert "<script" not in grid(HOSTILE, [HOSTILE], [[HOSTILE]], note=HOSTILE)
