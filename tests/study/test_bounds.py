"""Bounds that are bought: what is refused, what it costs, what is drawn, and that it is drawn and charged once."""

import json
import math
from functools import partial

import numpy as np
import pytest

import dpselect
from dpselect.accounting import best_of, calibrate
from dpselect.accounting.planning.search_prices import SearchPrice
from dpselect.errors import BudgetError, NothingFoundWarning, StudyError
from dpselect.mechanisms import bounded_range
from dpselect.privacy import Adjacency, compose, gaussian, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from dpselect.study import check_study, parse_study, run_study
from dpselect.study.bounds import QUANTILES, Purchase, buy, known_columns, purchase_of
from dpselect.study.columns.column import Column
from dpselect.study.data import load
from dpselect.study.learners.recipe import recipe_of
from dpselect.study.price import price_study
from dpselect.study.validate import StudyPaths, law_of, validate
from dpselect.testing.learner_contract import unpriced
from dpselect.tuning import Categorical, SearchStore, SharedRelease, tune
from tests.budgets import budget_at, charges

PRIVATE = {"bounds": "private"}
ROWS = 400


pytestmark = pytest.mark.usefixtures("state", "no_page")


@pytest.fixture
def table():
    """Columns of many magnitudes, in no order; the label follows from the first."""
    random = np.random.default_rng(5)
    zeta = random.uniform(2e6, 3e6, ROWS)
    days = zip(random.integers(1, 29, ROWS), random.integers(1, 10, ROWS), strict=True)
    return {
        "zeta": zeta.tolist(),
        "día": [f"{day:02d}.0{month}.1999" for day, month in days],
        "y": ["yes" if z > 2.5e6 else "no" for z in zeta],
        "Alpha": random.normal(0, 1e-3, ROWS).tolist(),
        "kind": random.choice(["a", "b"], ROWS).tolist(),
    }


def written(folder, cells):
    lines = [",".join(cells), *(",".join(map(str, row)) for row in zip(*cells.values(), strict=True))]
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")


LITTLE = {"epsilon": 2.0, "adjacency": "replace_one"}
COLUMNS = {
    "Alpha": PRIVATE,
    "día": {"kind": "date", "format": "%d.%m.%Y", "bounds": "private"},
    "zeta": {"bounds": "private", "within": [0, 1e9], "missing": 5},
    "kind": {"categories": ["b", "a"]},
}


def study(columns=COLUMNS, **tables):
    """Quick to price: one run, and no delta."""
    privacy = {"epsilon": 400.0, "adjacency": "replace_one"}
    return parse_study(
        {
            "data": {"source": "rows.csv", "label": "y", "classes": ["yes", "no"], "columns": columns},
            "privacy": privacy,
            "learner": {"name": "output-perturbation"},
            "space": {"row_norm": {"law": "categorical", "choices": [1.0]}},
            "repetitions": {"law": "fixed", "count": 1},
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
            **tables,
        }
    )


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ({"bounds": "privat"}, "bounds"),
        ({"bounds": [0, 1], "within": [0, 2]}, "within goes with"),
        ({"categories": ["a"], "within": [0, 2]}, "within go with bounds"),
        ({**PRIVATE, "within": [2, 0]}, "within must be two finite numbers"),
        ({**PRIVATE, "within": [0, math.inf]}, "within must be two finite numbers"),
        ({**PRIVATE, "within": [0, 9], "missing": 10}, "within the bounds"),
        ({**PRIVATE, "scale": "log"}, "not below 0: declare within"),
        ({**PRIVATE, "kind": "date", "format": "%d.%m."}, "lower one first"),
    ],
)
def test_what_cannot_be_bought_is_refused(column, said):
    with pytest.raises(StudyError, match=said):
        study({"x": column})


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    ("tables", "error", "said"),
    [
        ({"columns": {"zeta": {"bounds": [0, 1]}}, "preparation": {"share": 0.1}}, StudyError, "no column"),
        ({"preparation": {"epsilon": 1.0, "share": 0.1}}, StudyError, "not both"),
        ({"preparation": {"share": 1.0}}, StudyError, "preparation.share"),
        ({"preparation": {"epsilon": 2.1}, "privacy": LITTLE}, BudgetError, "preparation.epsilon: must be below"),
    ],
)
def test_a_preparation_that_does_not_fit_is_refused(tmp_path, table, tables, error, said):
    written(tmp_path, table)
    with pytest.raises(error, match=said):
        check_study(study(**tables), base_folder=tmp_path, folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("delta", "share"), [(0.0, 0.25), (1e-5, 0.25), (1e-5, 0.1)])
def test_a_share_is_that_part_of_the_total(delta, share):
    bought = purchase_of(study(privacy=privacy(delta=delta), preparation={"share": share}), private(7))
    if not delta:
        assert bought.guarantee.epsilon(0.0) == pytest.approx(share * 2.0)
        return
    mu = 1 / calibrate(lambda noise: gaussian(noise_multiplier=noise), epsilon=2.0, delta=delta)
    alone = gaussian(noise_multiplier=1 / (mu * math.sqrt(share))).epsilon(delta)
    assert 0.9 * alone < bought.guarantee.epsilon(delta) < 1.05 * alone


def privacy(**changes):
    return {"epsilon": 2.0, "delta": 1e-5, "nominal_rows": 2000, **changes}


def private(count, **more):
    return {f"x{i}": Column(**PRIVATE, **more) for i in range(count)}


def test_epsilon_is_that_of_all_columns_together():
    bought = purchase_of(study(privacy=privacy(), preparation={"epsilon": 0.5}), private(12))
    assert 0.49 < bought.guarantee.epsilon(1e-5) <= 0.5
    assert bought.share is None


def test_the_rule_takes_the_larger_share_where_the_smaller_finds_nothing_and_warns_where_neither_does():
    found = {rows: purchase_of(study(privacy=privacy(nominal_rows=rows)), private(10)) for rows in (90_000, 1300, 100)}
    assert [one.share for one in found.values()] == [0.1, 0.2, 0.2]
    assert [one.too_few_rows_warning(rows) is not None for rows, one in found.items()] == [False, False, True]
    assert "which takes about" in found[100].too_few_rows_warning(100)
    assert found[100].too_few_rows_warning(None) is None  # not known
    assert found[100].rows < purchase_of(study(privacy=privacy(nominal_rows=100)), private(90)).rows
    narrow = purchase_of(study(privacy=privacy(nominal_rows=100)), private(10, within=(0, 9)))
    assert narrow.rows < found[100].rows


def test_bounds_and_search_are_composed():
    bought = Purchase(tuple("abc"), 0.4, None, Adjacency.ADD_OR_REMOVE_ONE, 100.0)
    part, law = pure_dp(epsilon=0.5), Harmonic(limit=3)
    alone = best_of(part, law, bound="pure").epsilon(0.0)
    assert SearchPrice((part,), law, bought.guarantee, bound="pure").epsilon(0.0) == pytest.approx(alone + 1.2)


@pytest.mark.slow
def test_the_price_is_that_of_the_draws_and_of_the_search_composed():
    asked = study(
        privacy={"epsilon": 6.0, "adjacency": "replace_one"},
        repetitions={"law": "harmonic", "limit": 3},
        preparation={"share": 0.2},
    )
    recipe = recipe_of(asked, nominal_rows=None, columns=private(3))
    found = price_study(asked, recipe, law_of(asked), purchase_of(asked, recipe.columns))
    assert found.purchase.epsilon == pytest.approx(0.4)
    assert found.search.epsilon(0.0) <= 6.0
    alone = max(best_of(part, Harmonic(limit=3)).epsilon(0.0) for part in found.parts)
    assert found.cells is not None
    counts = found.cells.guarantee.epsilon(0.0)
    assert found.search.epsilon(0.0) == pytest.approx(alone + counts + 1.2, rel=1e-6)


@pytest.mark.parametrize("count", [1, 2, 40])
def test_no_promise_is_smaller_than_composed_exponential_mechanisms(count):
    bought = Purchase(tuple(map(str, range(count))), 0.05, None, Adjacency.ADD_OR_REMOVE_ONE, 100.0)
    expected = compose(*[bounded_range(epsilon=0.05)] * count)
    assert bought.guarantee.epsilon(1e-6) == pytest.approx(expected.epsilon(1e-6), rel=1e-12)
    assert bought.guarantee.epsilon(0.0) == pytest.approx(0.05 * count)


@pytest.mark.parametrize(
    "values",
    [
        *([], [math.nan] * 9, [math.inf, -math.inf] * 9, [0.0] * 50, [5e-324] * 50, [1e308, -1e308] * 30),
        *([7.0] * 90, [math.nan, 3.0], [0.0, 1.0] * 40),
    ],
)
@pytest.mark.parametrize(
    "column",
    [
        Column(**PRIVATE),
        Column(**PRIVATE, within=(-3, 1e6), missing="indicator"),
        Column(**PRIVATE, within=(0, 1e6), scale="log", missing=9),
        Column(**PRIVATE, within=(10, 11), missing=10.5, scale="bins:3"),
        Column(**PRIVATE, kind="duration", missing=0),
        Column(**PRIVATE, kind="date", missing="2000-01-01"),
        Column(**PRIVATE, kind="date", format="%Y", missing="2000"),
        Column(**PRIVATE, kind="date", format="%d.%m.%y", two_digit_years_from=1920),
        Column(**PRIVATE, kind="timestamp", time_zone="Europe/Berlin"),
        Column(**PRIVATE, kind="integer", missing=-1, missing_values=(-99,)),
        Column(
            **PRIVATE,
            kind="date",
            format="%d.%m.%y",
            two_digit_years_from=1969,
            within=("01.01.69", "31.12.68"),
        ),
    ],
)
def test_no_values_make_it_fail(values, column):
    bought = Purchase(("x",), 0.5, None, Adjacency.ADD_OR_REMOVE_ONE, 100.0)
    limits = buy(bought, {"x": column}, {"x": np.array(values, dtype=float)}, keyed_source(len(values)))
    known = known_columns(bought, {"x": column}, limits)["x"]
    low, high = known.limits
    assert column.limits[0] <= low < high <= column.limits[1]
    assert not known.private
    assert known.within is None
    assert known.width == column.width
    assert np.abs(known.features(np.array([low, 0.0, high]))).max() <= 1.0
    assert Column(**known.model_dump(exclude_none=True)) == known  # as the model file has it


@pytest.mark.parametrize("unit", [1e-7, 1e-3, 1.0, 1e5, 1e12])
@pytest.mark.parametrize("middle", [0.0, 5.0])
def test_bounds_of_any_magnitude_are_found(unit, middle):
    values = unit * (middle + np.random.default_rng(3).uniform(-1, 1, 2000))
    bought = Purchase(("x",), 0.5, None, Adjacency.ADD_OR_REMOVE_ONE, 100.0)
    low, high = buy(bought, private(1) | {"x": Column(**PRIVATE)}, {"x": values}, keyed_source(4))[0]
    first, last = np.quantile(values, QUANTILES)
    assert low == pytest.approx((first + last) / 2 - 0.8 * (last - first), abs=0.2 * unit)
    assert high == pytest.approx((first + last) / 2 + 0.8 * (last - first), abs=0.2 * unit)


def test_columns_are_drawn_from_sources_of_their_own():
    values = np.random.default_rng(1).normal(size=60)
    bought = Purchase(("a", "b"), 0.1, None, Adjacency.ADD_OR_REMOVE_ONE, 100.0)
    limits = buy(bought, {name: Column(**PRIVATE) for name in "ab"}, dict.fromkeys("ab", values), keyed_source(1))
    assert not np.any(limits[0] == limits[1])


@pytest.mark.full
def test_the_model_has_what_was_bought(tmp_path, table):
    written(tmp_path, table)
    (tmp_path / "test.csv").write_text((tmp_path / "rows.csv").read_text())
    asked = study(test={"source": "test.csv"})

    def run(name):
        return run_study(asked, base_folder=tmp_path, folder=tmp_path / name, random=keyed_source(2)).release

    with unpriced():
        release, again = run("out"), run("again")
    model = dpselect.load_model(tmp_path / "out" / "model.npz")
    assert list(model.columns) == ["zeta", "día", "Alpha", "kind"]
    assert not any(column.private for column in model.columns.values())
    assert release["preparation"]["bounds"] == {
        name: list(model.columns[name].bounds) for name in ("zeta", "día", "Alpha")
    }
    low, high = model.columns["zeta"].limits
    assert 1.5e6 < low < 2.3e6 < 2.7e6 < high < 3.5e6
    assert model.columns["zeta"].missing == low  # declared below what was bought
    assert model.columns["día"].bounds[0].endswith(("1998", "1999"))
    answers = model.predict({name: table[name] for name in sorted(table)})
    assert np.mean(answers == np.array(table["y"])) == release["test"]["accuracy"] > 0.6
    assert again["preparation"] == release["preparation"]
    assert charges(tmp_path / "out" / "budget.db") == [True]


def test_a_row_stays_in_its_part_whatever_is_bought(tmp_path, table):
    """Its digest is a matter of that row alone, and tells rows apart whose cells differ by little."""
    written(tmp_path, table)
    asked = study({"Alpha": PRIVATE})
    settled = validate(asked, StudyPaths(tmp_path, tmp_path / "out"))
    digests = load(asked.data, settled.table, settled.columns).digests
    assert len(set(digests)) == ROWS
    table["Alpha"][1:] = [1e9] * (ROWS - 1)
    written(tmp_path, table)
    again = validate(asked, StudyPaths(tmp_path, tmp_path / "out"))
    assert load(asked.data, again.table, again.columns).digests[0] == digests[0]


@pytest.mark.full
def test_too_few_rows_are_said_before_anything_is_drawn(tmp_path, table, caplog):
    written(tmp_path, table)
    few = study(privacy={**LITTLE, "nominal_rows": ROWS})
    found = check_study(few, base_folder=tmp_path, folder=tmp_path / "out")
    assert "some will be far too wide" in found["preparation"]["warning"]
    assert json.dumps(found)
    with unpriced():
        run_study(few, base_folder=tmp_path, folder=tmp_path / "out", random=keyed_source(1))
    assert "some will be far too wide" in caplog.text


def test_a_kill_draws_and_charges_nothing_again(tmp_path):
    """Killed where the release is drawn, and again in the first run: it is the same, under one reservation."""
    drawn, budget = [], budget_at(tmp_path / "ledger.db", epsilon=2, delta=0)

    def objective(random, *, dies, run_dies):
        drawn.append(float(random.laplace(1)[0]))
        if dies:
            raise KeyboardInterrupt
        return partial(one_run, shared=drawn[-1], dies=run_dies)

    def one_run(params, random, *, shared, dies):
        if dies:
            raise KeyboardInterrupt
        return 0.0, shared

    def search(*, resume=False, dies=False, run_dies=False):
        return tune(
            SharedRelease(partial(objective, dies=dies, run_dies=run_dies), pure_dp(epsilon=0.75)),
            space={"x": Categorical([1])},
            base=pure_dp(epsilon=0.5),
            repetitions=Fixed(count=1),
            store=SearchStore(path=tmp_path / "search", resume=resume),
            ledger=budget.at(delta=0),
        )

    with pytest.raises(KeyboardInterrupt):
        search(dies=True)
    with pytest.raises(KeyboardInterrupt):
        search(resume=True, run_dies=True)
    result = search(resume=True)
    assert len(drawn) == 3
    assert len(set(drawn)) == 1
    assert result.value == drawn[0]
    assert result.guarantee.epsilon(0.0) == pytest.approx(1.25)
    assert float(budget.spent().epsilon) == pytest.approx(1.25)
    assert charges(tmp_path / "ledger.db") == [True]


def test_a_preparation_that_fails_finds_nothing_and_says_nothing(capsys, caplog):
    def failing(random):
        print("seven")
        raise ValueError("seven")

    with pytest.warns(NothingFoundWarning) as warned:
        result = tune(
            SharedRelease(failing, pure_dp(epsilon=0.75)),
            space={"x": Categorical([1])},
            base=pure_dp(epsilon=0.5),
            repetitions=Fixed(count=2),
        )
    assert result.value is None
    assert "seven" not in capsys.readouterr().out + caplog.text + str(warned[0].message)


def test_a_search_is_not_resumed_with_another_preparation(tmp_path):
    def search(epsilon, *, resume):
        return tune(
            SharedRelease(lambda random: failing, pure_dp(epsilon=epsilon)),
            space={"x": Categorical([1])},
            base=pure_dp(epsilon=0.5),
            repetitions=Fixed(count=1),
            store=SearchStore(path=tmp_path / "search", resume=resume),
        )

    def failing(params, random):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search(0.75, resume=False)
    with pytest.raises(StudyError, match="has changed"):
        search(0.5, resume=True)


def test_a_budget_that_allows_the_search_but_not_the_bounds_refuses(tmp_path):
    budget = budget_at(tmp_path / "ledger.db", epsilon=1, delta=0)
    with pytest.raises(BudgetError):
        tune(
            SharedRelease(lambda random: pytest.fail("was drawn"), pure_dp(epsilon=0.75)),
            space={"x": Categorical([1])},
            base=pure_dp(epsilon=0.5),
            repetitions=Fixed(count=1),
            ledger=budget.at(delta=0),
        )
