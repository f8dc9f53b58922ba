"""People with several rows in a search: the price for persons, and which rows take part."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from dpselect.accounting import best_of
from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.integrations.sklearn import PrivateSearchCV, search as search_module
from dpselect.integrations.sklearn.request import request_of
from dpselect.integrations.sklearn.several_scores import scorings_of
from dpselect.learners import DPSGDClassifier, OutputPerturbationClassifier
from dpselect.ledger import Ledger
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import Adjacency, compose, pure_dp, worst_of
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed, Harmonic
from tests.integrations.sklearn.attacks_cases import Seen, search

pd = pytest.importorskip("pandas")

ROWS = 60
X = keyed_source("rows").uniform((ROWS, 3))
Y = (X[:, 0] > 0.5).astype(int)
GROUPS = np.arange(ROWS) // 4  # 15 persons with four rows each
NOISY = DPSGDClassifier(noise_multiplier=4.0, steps=4)


def grouped(estimator=NOISY, space=None, **options):
    defaults = {"nominal_rows": 30, "classes": [0, 1], "random": keyed_source(1), "rows_per_group": 2}
    return PrivateSearchCV(estimator, {} if space is None else space, **{**defaults, **options})


@pytest.mark.parametrize("k", [1, 2, 5])
def test_a_person_pays_for_a_run_on_all_rows_of_that_person(k):
    law = Harmonic(limit=4)
    made = grouped(repetitions=law, score_epsilon=0.5, delta=1e-6, rows_per_group=k)
    training = best_of(NOISY.set_params(nominal_rows=24.0).guarantee().of_rows(k), law)
    score = best_of(NoisyCount(epsilon=0.5).guarantee, law)
    assert made.guarantee().epsilon(1e-6) == worst_of(training, score).epsilon(1e-6)


@pytest.mark.full
def test_the_total_is_met_for_persons_with_so_much_more_noise():
    law, totals = Harmonic(limit=4), {"epsilon": 3.0, "delta": 1e-6}
    noises = [grouped(repetitions=law, rows_per_group=k, **totals).plan().noise for k in (1, 2, 3)]
    assert np.allclose(np.array(noises) / noises[0], [1, 2, 3], rtol=1e-3)  # k mu, exact for Gaussian noise
    for k in (1, 2, 3):
        found = grouped(repetitions=law, rows_per_group=k, **totals).guarantee()
        assert 2.99 < found.epsilon(1e-6) <= 3.0


def test_a_run_is_scored_with_the_noise_that_is_for_persons(monkeypatch):
    given = []
    monkeypatch.setattr(
        search_module,
        "scorings_of",
        lambda *args, **options: given.append(options["noise"]) or scorings_of(*args, **options),
    )
    grouped(repetitions=Fixed(count=1), score_epsilon=0.1, delta=1e-6).fit(X, Y, groups=GROUPS)
    assert [noise.epsilon for noise in given] == [Fraction(1, 20)]


@pytest.mark.full
@pytest.mark.parametrize("design", ["portfolio", "two-stage", "one-run"])
def test_other_designs_are_priced_for_persons(design):
    space = {"learning_rate": [1.0, 2.0]} if design != "one-run" else {}
    options = {"design": design, "epsilon": 2.0, "delta": 1e-6}
    one, two = (grouped(space=space, rows_per_group=k, **options).plan() for k in (1, 2))
    assert max(one.guarantee.epsilon(1e-6), two.guarantee.epsilon(1e-6)) <= 2.0
    assert two.noise == pytest.approx(2.0 * one.noise, rel=5e-3)
    found = grouped(space=space, **options).fit(X, Y, groups=GROUPS)
    assert found.guarantee_.epsilon(1e-6) <= 2.0
    if one.portfolio is not None and two.portfolio is not None:
        assert two.portfolio.choice.sensitivity == 2.0 * one.portfolio.choice.sensitivity


def test_folds_and_rows_that_train_and_score_are_composed_for_persons():
    law = Fixed(count=1)
    training = NOISY.set_params(nominal_rows=20.0).guarantee().of_rows(2)
    score = NoisyCount(epsilon=0.3).guarantee
    folds = grouped(cv=3, repetitions=law, score_epsilon=0.3, delta=1e-6).guarantee()
    assert folds.epsilon(1e-6) == compose(training, training, score).epsilon(1e-6)


def test_a_score_has_an_equal_part_of_a_persons_epsilon_for_each_row():
    made = request_of(grouped(repetitions=Fixed(count=1), rows_per_group=3), None)
    noise = made.score_noise(0.1, Adjacency.ADD_OR_REMOVE_ONE)
    assert noise is not None
    assert noise.epsilon == Fraction(1, 30)
    assert pure_dp(epsilon=noise.epsilon).of_rows(3).epsilon(0) >= 0.1 * (1 - 1e-12)


def trained(table, labels, groups, **options):
    """The rows that train, of a search on these rows."""
    made = search(Seen(), **{"rows_per_group": 2, **options}).fit(table, labels, groups=groups)
    return [tuple(row) for row in made.best_estimator_.seen_[0].tolist()]


PUBLIC = {"validation_fraction": None, "public_validation": (X, Y)}
KNOWN = {tuple(row): person for row, person in zip(X.tolist(), GROUPS.tolist(), strict=True)}


@pytest.mark.parametrize("frame", [False, True])
def test_at_most_so_many_rows_of_a_person_take_part_and_all_in_one_part(frame):
    table = pd.DataFrame(X, columns=["a", "b", "c"]) if frame else X
    groups = pd.Series(GROUPS) if frame else GROUPS
    every = trained(table, Y, groups, **PUBLIC)
    assert Counter(KNOWN[row] for row in every) == dict.fromkeys(range(15), 2)
    part = trained(table, Y, groups, validation_fraction=0.5)
    persons = Counter(KNOWN[row] for row in part)
    assert set(part) < set(every)
    assert set(persons.values()) == {2}  # none is split
    assert 2 <= len(persons) <= 13


def test_the_rows_that_take_part_depend_on_no_order_and_on_no_other_person():
    every = set(trained(X, Y, GROUPS, **PUBLIC))
    order = np.argsort(keyed_source("order").uniform(ROWS))
    assert set(trained(X[order], Y[order], GROUPS[order], **PUBLIC)) == every
    others = GROUPS != 3
    assert set(trained(X[others], Y[others], GROUPS[others], **PUBLIC)) == {r for r in every if KNOWN[r] != 3}
    half = {"validation_fraction": 0.5}
    without = set(trained(X[others], Y[others], GROUPS[others], **half))
    assert without == {row for row in trained(X, Y, GROUPS, **half) if KNOWN[row] != 3}


def test_rows_without_a_person_take_no_part():
    groups = np.where(GROUPS == 0, np.nan, GROUPS)
    assert {KNOWN[row] for row in trained(X, Y, groups, **PUBLIC)} == set(range(1, 15))
    nobody = grouped(OutputPerturbationClassifier(epsilon=2.0), repetitions=Fixed(count=1), score_epsilon=0.1)
    assert nobody.fit(X, Y, groups=[None] * ROWS).best_estimator_ is not None


def test_the_ledger_is_charged_for_persons(tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=5, delta=1e-5)
    grouped(repetitions=Harmonic(limit=4), epsilon=3.0, delta=1e-6, ledger=budget).fit(X, Y, groups=GROUPS)
    assert 2.99 < budget.spent().epsilon <= 3.0
    rows = grouped(repetitions=Fixed(count=1), score_epsilon=0.1, delta=1e-6, rows_per_group=1).guarantee()
    assert rows.epsilon(1e-6) < grouped(repetitions=Fixed(count=1), score_epsilon=0.1, delta=1e-6).guarantee().epsilon(
        1e-6
    )


def test_groups_and_their_number_go_together(tmp_path):
    budget = Ledger.open(tmp_path / "ledger.db").create_budget("b", epsilon=100, delta=1e-5)
    options = {"repetitions": Fixed(count=1), "score_epsilon": 0.1, "ledger": budget, "delta": 1e-6}
    with pytest.raises(ArgumentError, match="add groups= to fit"):
        grouped(**options).fit(X, Y)
    with pytest.raises(ArgumentError, match="add rows_per_group=1"):
        grouped(rows_per_group=None, **options).fit(X, Y, groups=GROUPS)
    with pytest.raises(ArgumentError, match="one value for each row"):
        grouped(**options).fit(X, Y, groups=GROUPS[1:])
    with pytest.raises(ArgumentError, match="rows_per_group"):
        grouped(rows_per_group=0, **options).fit(X, Y, groups=GROUPS)
    replaced = OutputPerturbationClassifier(epsilon=2.0, adjacency="replace_one")
    with pytest.raises(AdjacencyError, match="rows_per_group"):
        grouped(replaced, **options).fit(X, Y, groups=GROUPS)
    assert budget.spent().epsilon == 0


def test_a_score_of_persons_has_no_interval():
    options = {"repetitions": Fixed(count=1), "score_epsilon": 0.5, "delta": 1e-6, "release_score": True}
    found = grouped(**options).fit(X, Y, groups=GROUPS)
    assert np.isfinite(found.best_score_)
    assert not hasattr(found, "best_score_interval_")


def test_a_scale_and_persons_go_together():
    options = {"repetitions": Fixed(count=1), "score_epsilon": 0.5, "delta": 1e-6}
    found = grouped(scale="declared", bounds=(0, 1), **options).fit(X, Y, groups=GROUPS)
    assert found.guarantee_.epsilon(1e-6) == grouped(**options).guarantee().epsilon(1e-6)
