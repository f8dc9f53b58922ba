"""The report as a model card: what it says of a model, its data, its worth and its limits."""

import math

import pytest

from dpselect.numerics.digits import rounded_up
from dpselect.report.card import card, no_better_in_words
from dpselect.report.model_card import render_model_card
from dpselect.study.columns.column import Column
from tests.report.pages import BUDGET, FACTS, page, released


def parts(**changes):
    return card(released(**changes), FACTS)


def test_the_card_says_what_it_predicts_from_what_for_how_much():
    found = parts()
    assert dict(found["model"]) == {
        "predicts": "state, one of well, ill",
        "made from": "people.csv, about 4000 rows (declared)",
        "learner": "dp-sgd, the best of a secret number of runs",
    }
    assert found["settings"] == [("steps", "100"), ("learning_rate", "0.1235"), ("hidden_units", "32")]
    assert found["figures"] == [
        ("accuracy on held-out rows", "0.71", "between 0.62 and 0.79"),
        ("constant prediction", "0.6", ""),
        ("epsilon, in all", rounded_up(FACTS["epsilon"], digits=4), ""),
        ("delta", "1e-06", ""),
    ]


def test_classes_of_several_words_stand_in_quotation_marks():
    found = parts(data={"classes": ["came back, soon", "did not"]})
    assert dict(found["model"])["predicts"] == "state, one of “came back, soon”, “did not”"


def test_a_portfolio_names_its_candidates_and_no_secret_number():
    among = [{"map": "cos4", "rate": 0.123456}, {"map": "joint"}]
    found = parts(design="portfolio", candidates=among)
    assert dict(found["model"])["learner"] == "dp-sgd, the best of 2 candidates by its fit"
    assert "choice among runs" not in " ".join(found["quality"])
    text = page(release=released(design="portfolio", candidates=among))
    assert "Each of 2 candidates was tried once" in text
    assert "<td>0.1235</td>" in text


def test_columns_of_which_the_same_is_known_stand_in_one_row():
    assert parts()["columns"] == [
        ("age", "number", "17 to 90", "counts as 40"),
        ("paid", "number, log", "0 to 1000000", "indicator of its own"),
        ("joined", "date", "2000-01-01 to 2026-01-01", "refused"),
        ("job", "category", "nurse, teacher, other", "other"),
        ("answer 0 to answer 39 (40 columns)", "number", "0 to 10", "refused"),
    ]


def test_columns_say_how_their_cells_are_read():
    columns = {
        "ill": Column(kind="boolean", true_values=("J",), false_values=("N",)),
        "seen": Column(kind="date", format="%d.%m.%Y", time_zone="Europe/Berlin", bounds=("01.01.2024", "01.02.2024")),
        "job": Column(kind="category", categories=("nurse",), unicode="exact"),
    }
    facts = {name: column.model_dump(mode="json", exclude_defaults=True) for name, column in columns.items()}
    assert parts(data={"columns": facts})["columns"] == [
        ("ill", "boolean", "False to True", "refused"),
        ("seen", "date, %d.%m.%Y, Europe/Berlin", "01.01.2024 to 01.02.2024", "refused"),
        ("job", "category", "nurse", "none of these"),
    ]


def test_bought_bounds_have_four_digits_and_are_named_so():
    columns = {"age": {"bounds": [17.123456, 89.5]}, "paid": {"bounds": "private"}}
    found = parts(data={"columns": columns}, preparation={"bounds": {"age": [17.123456, 89.5]}, "epsilon": 0.2})
    assert [row[2] for row in found["columns"]] == ["17.12 to 89.5, bought", "bounds not known"]


@pytest.mark.full
def test_a_wide_table_stands_on_the_page_and_folds():
    columns = {f"c{i}": {"bounds": [0.0, 1.0 + i]} for i in range(500)}
    found = parts(data={"columns": columns})
    assert (len(found["columns"]), len(found["more_columns"])) == (12, 488)
    text = page(release=released(data={"columns": columns}))
    assert "488 more rows" in text
    assert ">c499<" in text


def test_the_chance_of_a_guess_is_that_of_the_curve():
    """Of a Gaussian search at epsilon 0 the distance is known; e to the stated epsilon is rounded up."""
    first, second = parts()["protected"]
    apart = FACTS["curve"]["search"][0]
    said = float(first.split("a probability of ")[1].split()[0])
    assert (1 + apart) / 2 <= said <= (1 + apart) / 2 + 0.001
    assert said < math.exp(FACTS["epsilon"]) / (1 + math.exp(FACTS["epsilon"])) + 1e-6 + 0.001
    times = float(second.split("more than ")[1].split()[0])
    assert math.exp(FACTS["epsilon"]) <= times <= 1.01 * math.exp(FACTS["epsilon"])
    assert "whether it is in the table at all" in first
    replaced = parts(guarantee={"adjacency": "replace_one"})["protected"]
    assert "which of two rows stands in its place" in replaced[0]


def test_an_enormous_epsilon_is_no_overflow():
    assert parts(guarantee={"epsilon": 1e9})["protected"]


@pytest.mark.parametrize(
    ("constant", "said"),
    [
        ({"value": 0.98, "answer": "well", "from": "declared"}, "(well) reaches 0.98, by the declared shares"),
        ({"value": 0.98, "answer": "well", "from": "counts"}, "by the noisy numbers of rows in the classes"),
        ({"value": 0.5, "answer": None, "from": "metric"}, "One and the same answer for all rows reaches 0.5."),
    ],
)
def test_one_answer_for_all_rows_stands_beside_the_figure(constant, said):
    text = " ".join(parts(validation={"constant": constant})["quality"])
    assert said in text
    # the interval is from 0.62 to 0.79
    assert ("the model is no better than always" in text) == (constant["value"] == 0.98)


def test_a_loss_is_compared_the_other_way_round():
    loss = {"metric": "log-loss", "value": 0.4, "low": 0.3, "high": 0.5, "less_is_better": True}
    for value, said in (
        (0.6, None),
        (0.47, "do not show that the model is better"),
        (0.42, "is no better than always"),
    ):
        constant = {"value": value, "answer": None, "from": "declared"}
        text = " ".join(parts(validation={**loss, "constant": constant})["quality"])
        assert "Less is better." in text
        assert said is None or said in text
        assert ("always predicting one value" in text) == (said is not None)


def test_where_one_answer_is_neither_public_nor_paid_for_the_card_says_why():
    text = " ".join(parts(validation={"constant": None})["quality"])
    assert "the shares of the classes are private, and accuracy does not pay for them" in text
    assert "data.class_shares" in text
    number = {"label": "days", "classes": None, "label_bounds": [0.0, 60.0]}
    found = {"metric": "absolute-error", "less_is_better": True, "constant": None}
    text = " ".join(parts(task="regression", data=number, validation=found)["quality"])
    assert "the mean of the labels is private" in text
    assert "is off by 30 at most" in text


def test_what_was_not_measured_is_said():
    assert "was not measured" in parts(validation=None, test=None, score=None)["quality"][0]
    assert "the score 0.7" in parts(validation=None)["quality"][0]


def test_the_limits_begin_with_what_the_study_says():
    limits = parts(card={"not_for": "Deciding on treatment."})["limits"]
    assert limits[0] == "Not for: Deciding on treatment."
    assert any("epsilon grows at least with their number" in limit for limit in limits)
    known = {**FACTS, "rows": {"2": 6.7058, "10": None}}
    assert any("mostly much more: 6.706 for 2 rows, at delta" in limit for limit in card(released(), known)["limits"])
    assert any("Other releases from the same rows are not counted in" in limit for limit in limits)
    assert any(
        "not entered in the ledger" in limit for limit in card(released(), {**FACTS, "budget": BUDGET})["limits"]
    )


@pytest.mark.full
def test_the_purpose_leads_and_without_one_the_study_speaks():
    assert "Whom to call again.</p>" in page(release=released(card={"purpose": "Whom to call again."}))
    assert "Predicts state from 44 columns of people.csv.</p>" in page()


def test_the_commands_are_those_for_such_a_file():
    use = parts(data={"form": {"delimiter": ";", "decimal": ","}})["use"]
    assert use[0][2] == "dpselect predict model.npz new.csv --to predictions.csv --delimiter ';' --decimal ,"
    assert "pandas.read_csv(\"new.csv\", sep=';', decimal=',')" in use[1][2]
    compile(use[1][2], "card", "exec")
    use = parts(data={"form": {"thousands": ".", "skip_rows": 1}})["use"]
    assert use[0][2].endswith(" --thousands . --skip-rows 1")
    assert "pandas.read_csv(\"new.csv\", thousands='.', skiprows=1)" in use[1][2]
    assert parts(found=False, model=None)["use"] == []


FIGURES = [
    {"name": "accuracy", "value": 0.71, "low": 0.62, "high": 0.79, "constant": 0.6, "answer": "well"},
    {"name": "balanced-accuracy", "value": 0.64, "low": 0.5, "high": 0.78, "constant": 0.5, "answer": None},
]
SHARES = [{"value": 0.6, "low": 0.55, "high": 0.66}, {"value": 0.4, "low": 0.33, "high": 0.46}]


def told(**changes):
    figures = [{**one, "less_is_better": False} for one in FIGURES]
    return {"figures": figures, "shares": SHARES, **changes}


def test_figures_from_the_same_counts_stand_in_a_table_beside_the_constant_answer():
    found = parts(validation=told())
    assert found["measured"] == [
        ("accuracy", "0.71", "between 0.62 and 0.79", "0.6"),
        ("balanced-accuracy", "0.64", "between 0.5 and 0.78", "0.5"),
    ]
    assert "well 0.6 (0.55 to 0.66), ill 0.4 (0.33 to 0.46)" in " ".join(found["quality"])
    assert parts()["measured"] == []
    shown = page(release=released(validation=told()))
    assert '<th scope="row">balanced-accuracy</th><td class="number">0.64</td>' in shown
    assert "| balanced-accuracy | 0.64 | between 0.5 and 0.78 | 0.5 |" in render_model_card(
        released(validation=told()), FACTS
    )


def test_a_constant_model_is_called_one():
    """Of an accuracy and a balanced accuracy one that is better than the constant answer is enough."""
    near = [{**one, "value": one["constant"], "low": 0.45, "less_is_better": False} for one in FIGURES]
    assert no_better_in_words(told(figures=near)) == [
        "by its scores the model is no better than always predicting well, with accuracy 0.6"
    ]
    assert no_better_in_words(told(figures=near), 2) == [
        "its scores do not show that the model is better than always predicting well, with accuracy 0.6"
    ]
    apart = [{**near[0]}, {**near[1], "low": 0.55}]
    assert no_better_in_words(told(figures=apart)) == []
    tiles = parts(validation=told(figures=near, constant={"value": 0.6, "answer": "well", "from": "counts"}))["figures"]
    assert tiles[1] == ("constant prediction", "0.6", "the model is not shown to be better")
