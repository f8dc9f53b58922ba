"""A portfolio: its price covers the exact law of what leaves, the choice alone attains its own, and mutations fail."""

import itertools
import math
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

from dpselect.accounting.planning.portfolio import PortfolioPrice, covering, portfolio_of
from dpselect.audit import FiniteSubject, exact_audit
from dpselect.privacy import Adjacency, compose, gaussian, pure_dp
from dpselect.randomness import keyed_source
from dpselect.searching.portfolio import CandidateTrials
from dpselect.study.metrics import METRICS
from dpselect.study.portfolio import agreement, the_choice
from dpselect.study.target import Target
from dpselect.testing.exact import finite_guarantee
from tests.audits.score_laws import exponential_law

ADD, REPLACE = Adjacency.ADD_OR_REMOVE_ONE, Adjacency.REPLACE_ONE
CLASSES = Target((0, 1))
TRAINING = (0.3, 0.5, 0.4)
LAST = (0.6, 0.9, 0.3)
AHEAD, BEGUN = 1, 2


@dataclass(frozen=True)
class Says:
    """A model that gives these answers for rows, which are their places."""

    answers: tuple[float, ...]

    def predict(self, X):
        return np.asarray(self.answers)[np.asarray(X, dtype=int).ravel()]


def trained(epsilon, labels, begun=None):
    """A stand-in for a training: the probabilities that a model answers 0 and 1, by the exponential mechanism.

    One that continues from another favours its answer by some rows.
    """
    counted = [labels.count(0), labels.count(1)]
    if begun is not None:
        counted[begun] += BEGUN
    return exponential_law(counted, epsilon)


def counts(models, labels, compared):
    rows = np.zeros((len(labels), 1)), np.array(labels, dtype=int)
    return [float(compared.cells(Says((model,)), *rows)[0]) for model in models]


def law(labels, choice, compared):
    """The exact law of the place chosen and the last run's model, of the trials of TRAINING and the runs of LAST."""
    parts = [trained(epsilon, labels) for epsilon in TRAINING]
    last = [[trained(epsilon, labels, begun) for begun in (0, 1)] for epsilon in LAST]
    found = {}
    for models in itertools.product((0, 1), repeat=len(parts)):
        chance = math.prod(float(part[model]) for part, model in zip(parts, models, strict=True))
        sums = counts(models, labels, compared)
        sums[0] += AHEAD * compared.steps
        for place, p in enumerate(exponential_law(sums, float(choice.rate))):
            for model in (0, 1):
                outcome = place, model
                found[outcome] = found.get(outcome, 0.0) + chance * float(p) * float(last[place][models[place]][model])
    return found


def pairs(adjacency, sizes=2):
    """Tables of up to two labels, and each with one more, or with one replaced (which costs the trainings twice)."""
    for size in range(sizes):
        for labels in itertools.combinations_with_replacement((0, 1), size):
            for label in (0, 1):
                if adjacency is ADD:
                    yield list(labels), [*labels, label]
                else:
                    yield [*labels, label], [*labels, 1 - label]


def curves(epsilons, labels, others, adjacency, begun=(None,)):
    """The stand-ins' exact curves on this pair."""
    found = [finite_guarantee(trained(e, labels, at), trained(e, others, at)) for e in epsilons for at in begun]
    return [replace(each, adjacency=adjacency) for each in found]


def price_of(labels, others, choice, cover=covering):
    """The library's composition, of the stand-ins' exact curves on this pair and of the choice."""
    parts = curves(TRAINING, labels, others, choice.adjacency)
    last = curves(LAST, labels, others, choice.adjacency, (0, 1))
    noises = (1.0,) * len(parts)
    return PortfolioPrice(noises, tuple(parts), choice, noises, cover(last)).guarantee


def refuted(adjacency, *, sizes=2, choice=None, claim=price_of, compared=None):
    """Whether some pair's laws exceed the claim."""
    compared = agreement(CLASSES) if compared is None else compared
    right = the_choice(compared, 1.0, adjacency)
    run = right if choice is None else choice
    return [
        exact_audit(
            FiniteSubject(
                name="portfolio",
                data=law(labels, run, compared),
                neighbour=law(others, run, compared),
                claim=claim(labels, others, right),
            )
        ).violated
        for labels, others in pairs(adjacency, sizes)
    ]


@pytest.mark.cases(1)
@pytest.mark.theorem("docs/theory/portfolio.md, Theorem 1", exact=True, loose="the losing models are paid for too")
@pytest.mark.parametrize(("adjacency", "sizes"), [(REPLACE, 1), (REPLACE, 2), (ADD, 2)])
def test_the_composition_covers_what_leaves(adjacency, sizes):
    assert not any(refuted(adjacency, sizes=sizes))


def test_the_price_without_the_choice_is_refuted():
    """A choice that costs as much as it may, between trainings that tell little."""

    def without(labels, others, choice):
        return compose(*curves((*TRAINING, max(LAST)), labels, others, choice.adjacency))

    strong = the_choice(agreement(CLASSES), 8.0, ADD)
    assert any(refuted(ADD, choice=strong, claim=without))


def test_the_price_without_the_last_run_or_with_that_of_another_candidate_is_refuted():
    def without(labels, others, choice):
        return compose(*curves(TRAINING[:1], labels, others, choice.adjacency))

    def smallest(labels, others, choice):
        return compose(*curves((min(LAST),), labels, others, choice.adjacency, (0,)))

    weak = the_choice(agreement(CLASSES), 0.01, ADD)
    assert any(refuted(ADD, choice=weak, claim=without))
    assert any(refuted(ADD, choice=weak, claim=smallest))


def test_a_last_run_that_is_priced_one_per_cent_lower_is_refuted(monkeypatch):
    """Where trials and choice tell next to nothing and all last runs are alike, theirs is the whole price."""
    for name, value in (("TRAINING", (1e-6,) * 3), ("LAST", (0.9,) * 3), ("BEGUN", 0)):
        monkeypatch.setitem(globals(), name, value)
    weak = the_choice(agreement(CLASSES), 1e-6, ADD)

    def priced(share):
        def claim(labels, others, choice):
            parts = curves(TRAINING, labels, others, choice.adjacency)
            return compose(*parts, *curves((share * LAST[0],), labels, others, choice.adjacency), weak.guarantee)

        return any(refuted(ADD, choice=weak, claim=claim))

    assert not priced(1.0)
    assert priced(0.99)


def test_the_last_run_is_covered_whichever_it_is():
    gaussians = [gaussian(noise_multiplier=noise) for noise in (3.0, 2.0, 4.0)]
    assert covering(gaussians) is gaussians[1]
    pure = [pure_dp(epsilon=epsilon) for epsilon in (1.0, 2.0)]
    assert covering(pure).pure_epsilon == 2.0
    assert covering([*gaussians, *pure]).epsilon(1e-6) == max(each.epsilon(1e-6) for each in (*gaussians, *pure))


@pytest.mark.full
def test_a_plan_pays_for_the_last_run_of_the_dearest_candidate():
    """Their noises are searched to a part in ten thousand, so that one is a little more expensive than the other."""
    makes = [lambda noise: pure_dp(epsilon=1.0 / noise), lambda noise: pure_dp(epsilon=noise**-1.3)]
    choice = the_choice(agreement(CLASSES), 0.1, ADD)
    for order in (makes, makes[::-1]):
        price = portfolio_of(order, choice, epsilon=1.0, delta=0.0)
        finals = [make(noise).pure_epsilon for make, noise in zip(order, price.noises, strict=True)]
        assert min(finals) < price.last.pure_epsilon == max(finals)
        whole = sum(each.pure_epsilon for each in price.training) + max(finals) + choice.epsilon
        assert price.guarantee.pure_epsilon == pytest.approx(whole, rel=1e-12)


def started():
    choice = the_choice(agreement(CLASSES), 0.3, ADD)
    make = [lambda noise: gaussian(noise_multiplier=noise)] * 3
    return portfolio_of(make, choice, epsilon=3.0, delta=1e-6)


def test_the_first_candidate_has_the_larger_trial():
    """Eight of the ten parts that the trials share; the last run has the rest of the squares."""
    found = started()
    squares = np.array([each.gaussian_mu**2 for each in (*found.training, found.last)])
    assert squares / np.sum(squares) == pytest.approx([0.12, 0.015, 0.015, 0.85], rel=1e-3)
    assert found.ahead == math.floor(3.5 / found.training[0].gaussian_mu) > 0


def test_what_a_candidate_fits_by_chance_is_taken_off_where_it_is_more_than_the_first_ones():
    """About half a row a weight, and no more than its privacy lets the rows that train it matter."""
    found = started()
    assert found.starts([100, 301, 40]) == (found.ahead, -101, 0)
    assert found.starts([None] * 3) == (found.ahead, 0, 0)
    assert found.starts([None, 301, 40]) == found.starts([100, None, 40]) == (found.ahead, 0, 0)
    first, other = (500 * found.training[place].delta(0.0) for place in (0, 1))
    assert 15 < other < 25 < 40 < first < 70
    assert found.starts([10, 301, 40], rows=500) == (found.ahead, -math.ceil(other - 5), -math.ceil(other - 5))
    assert found.starts([20, 301, 24], rows=500) == (found.ahead, -math.ceil(other - 10), -2)
    assert found.starts([301, 9000, 40], rows=500) == (found.ahead, 0, 0)
    assert found.starts([0, 1e300, 0]) == (found.ahead, -(2**40), 0)


@pytest.mark.theorem("docs/theory/portfolio.md, Lemma 2", exact=True, sharp=True)
def test_a_training_fits_its_own_rows_by_no_more_than_its_delta_at_epsilon_0():
    """All tables of up to three labels; attained by the first label, and a profile read at epsilon 0.1 is refuted."""
    gaps, wrong = [], []
    for size in (1, 2, 3):
        for labels in itertools.product((0, 1), repeat=size):
            for place, label in enumerate(labels):
                rest = [*labels[:place], *labels[place + 1 :]]
                here, without = trained(0.5, list(labels)), trained(0.5, rest)
                most = finite_guarantee(here, without)
                gaps.append((float(here[label] - without[label]), most.delta(0.0)))
                wrong.append(most.delta(0.1))
    assert all(gap <= most for gap, most in gaps)
    assert max(gap / most for gap, most in gaps) > 0.999
    assert any(gap > most for (gap, _), most in zip(gaps, wrong, strict=True))


def chosen(adjacency, before, after, **changed):
    """The law of a choice alone between candidates with these sums on two neighbours, and what it claims."""
    right = the_choice(agreement(CLASSES), 1.0, adjacency)
    run = replace(right, **changed)
    laws = [dict(enumerate(exponential_law(sums, float(run.rate)))) for sums in (before, after)]
    return exact_audit(FiniteSubject(name="choice", data=laws[0], neighbour=laws[1], claim=right.guarantee))


@pytest.mark.theorem("docs/theory/portfolio.md, Lemma 1", exact=True, sharp=True)
def test_the_choice_attains_its_epsilon():
    """A candidate far ahead gains a row: by the others' chances it shows at almost the whole epsilon of 1."""
    for adjacency, before, after in ((ADD, [9.0, 0.0], [10.0, 0.0]), (REPLACE, [16.0, 2.0], [17.0, 1.0])):
        found = chosen(adjacency, before, after)
        assert not found.violated
        assert 0.99 < found.epsilon_lower <= 1.0


@pytest.mark.parametrize(
    ("adjacency", "mutation"),
    [(ADD, {"sensitivity": 0.5}), (REPLACE, {"sensitivity": 0.5}), (REPLACE, {"monotonic": True})],
)
def test_a_sensitivity_too_small_or_a_factor_two_dropped_is_refuted(adjacency, mutation):
    before, after = ([9.0, 0.0], [10.0, 0.0]) if adjacency is ADD else ([16.0, 2.0], [17.0, 1.0])
    assert chosen(adjacency, before, after, **mutation).violated


def test_the_candidate_that_agrees_most_is_trained_again():
    """At an epsilon that leaves no doubt: by the first of the cells, what agrees, and not by the rest."""
    agreed = {"low": [10, 90], "high": [90, 10], "middle": [50, 50]}
    for names in itertools.permutations(agreed):
        price = SimpleNamespace(
            trials=(1.0,) * 3,
            noises=(2.0,) * 3,
            starts=lambda _sizes, _rows: [0.0] * 3,
            choice=the_choice(agreement(CLASSES), 100.0, ADD),
        )
        fits = [lambda noise, *_, name=name: (name, noise) for name in names]
        run = CandidateTrials(fits, price, lambda model, *_: np.array(agreed[model[0]]))
        model, (place,) = run({}, keyed_source("".join(names)), (None, None))
        assert model == ("high", 2.0)
        assert names[int(place)] == "high"


@pytest.mark.full
def test_the_choice_is_drawn_by_the_law_that_is_audited():
    choice = the_choice(agreement(CLASSES), 1.0, ADD)
    law, source = exponential_law([3.0, 1.0, 2.0], float(choice.rate)), keyed_source(5)
    drawn = np.bincount([choice([3.0, 1.0, 2.0], random=source.spawn(i)).value for i in range(2000)], minlength=3)
    assert np.max(np.abs(drawn / 2000 - law)) < 4.0 * 0.5 / math.sqrt(2000)


# What is counted


@pytest.mark.parametrize(
    ("compared", "labels"),
    [
        (agreement(CLASSES), [0, 1, 1, -1, 0]),
        (agreement(CLASSES, [1.0, 3.0]), [0, 1, 1, -1, 0]),
        (agreement(Target(bounds=(-5.0, 15.0))), [-5.0, 3.3, 15.0, 99.0, 1.0]),
    ],
)
def test_a_row_adds_its_own_number_between_0_and_the_most(compared, labels):
    answers = (0.0, 1.0, 3.0, 14.0, math.nan) if compared.steps > 1 and len(set(labels)) == 5 else (0, 1, 0, 0, 1)
    rows = np.arange(5)[:, None]
    model, y = Says(answers), np.array(labels)
    each = [int(compared.cells(model, rows[i : i + 1], y[i : i + 1])[0]) for i in range(5)]
    assert all(0 <= one <= compared.steps for one in each)
    assert max(each) > 0
    for kept in itertools.product((False, True), repeat=5):
        mask = np.array(kept)
        assert int(compared.cells(model, rows[mask], y[mask])[0]) == sum(itertools.compress(each, kept))


def test_what_a_row_counts():
    def cell(compared, answer, label):
        return int(compared.cells(Says((answer,)), np.zeros((1, 1)), np.array([label]))[0])

    assert [cell(agreement(CLASSES), 1, label) for label in (0, 1, -1)] == [0, 1, 0]
    weighted = agreement(CLASSES, [1.0, 4.0])
    assert [cell(weighted, label, label) for label in (0, 1)] == [weighted.steps // 4, weighted.steps]
    numbers = agreement(Target(bounds=(0.0, 20.0)))
    # an error of 1.5 is 0.15 of [-1, 1], half of the reach; one of 3 is all of it
    assert cell(numbers, 10.0, 11.5) == pytest.approx(numbers.steps / 2, abs=1)
    assert [cell(numbers, 10.0, label) for label in (10.0, 13.01)] == [numbers.steps, 0]
    assert cell(numbers, math.nan, 10.0) == 0


def test_right_answers_are_counted_as_the_accuracy_counts_them():
    rows, y = np.arange(6)[:, None], np.array([0, 1, -1, 1, 0, 0])
    model = Says((0, 0, 1, 1, 1, 0))
    by_class = METRICS["accuracy"](CLASSES).cells(model, rows, y)
    assert np.array_equal(agreement(CLASSES).cells(model, rows, y), by_class.sum(axis=1))
