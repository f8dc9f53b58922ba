"""Looks of a private search: noise on each report, Optuna's own pruners on noisy values, and the price of them all."""
# ruff: noqa: E402

import pytest

optuna = pytest.importorskip("optuna")

from optuna.pruners import HyperbandPruner, MedianPruner, NopPruner, PatientPruner, ThresholdPruner

from dpselect.errors import ArgumentError
from dpselect.integrations.optuna import PrivatePruner, rehearse, tune
from dpselect.integrations.optuna.trial import IndependentTrial, TrialRefusal
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import compose, dp_sgd, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed

NOISE = NoisyCount(epsilon=0.125)
BASE = pure_dp(epsilon=1.0)


def pruner(inner=None, looks=3, **options):
    return PrivatePruner(inner or ThresholdPruner(lower=50), noise=NOISE, looks=looks, **options)


def trial_of(own, key=1, direction="maximize"):
    return IndependentTrial(keyed_source(key), own.reports(keyed_source(key).spawn("looks"), direction))


def search(objective, own, base=BASE, **options):
    return tune(objective, direction="maximize", base=base, repetitions=Fixed(count=4), pruner=own, **options)


# what it costs


def test_a_search_pays_for_every_look_of_a_run():
    result = search(lambda trial: trial.suggest_float("x", 0, 1), pruner(), random=keyed_source(1))
    plain = search(lambda trial: trial.suggest_float("x", 0, 1), None, random=keyed_source(1))
    by_hand = search(
        lambda trial: trial.suggest_float("x", 0, 1),
        None,
        compose(BASE, *[NOISE.guarantee] * 3),
        random=keyed_source(1),
    )
    assert result.guarantee.epsilon(0) == by_hand.guarantee.epsilon(0) > plain.guarantee.epsilon(0)
    assert result.params == plain.params


def test_the_part_that_is_counted_pays():
    training, scoring = dp_sgd(noise_multiplier=4, sampling_rate=0.2, steps=60), pure_dp(epsilon=0.5)
    added = pruner(part=1).added_to([training, scoring])
    assert added[0] is training
    assert added[1].epsilon(0) == pytest.approx(0.875, abs=1e-12)
    every = pruner().added_to((training, scoring))
    assert every[0].epsilon(1e-5) > training.epsilon(1e-5)
    assert every[1].epsilon(0) == added[1].epsilon(0)
    assert pruner(part=0).added_to(scoring).epsilon(0) == added[1].epsilon(0)
    with pytest.raises(ArgumentError, match="part must be below the number of parts of base, 2"):
        pruner(part=2).added_to([training, scoring])


# what it sees


def test_optunas_pruner_sees_noisy_counts_of_this_run():
    seen = []

    class Noting:
        def prune(self, study, trial):
            return bool(seen.append(dict(trial.intermediate_values)))

    own = pruner()
    own._pruner = Noting()
    trial = trial_of(own)
    for step in (10, 20):
        trial.report(100, step)
        assert not trial.should_prune()
    assert [sorted(each) for each in seen] == [[10], [10, 20]]
    assert seen[1][10] != seen[1][20]  # each look has noise of its own
    assert seen[0][10] == seen[1][10]


@pytest.mark.statistical
def test_the_noise_is_that_of_the_price():
    """The mean of |noise| of scale 8 over 400 draws is 8 within 2: wrongly rejected below 1e-5; seeded."""
    drawn = []
    for key in range(400):
        trial = trial_of(pruner(), key)
        trial.report(100, 0)
        drawn.append(abs(trial._reports._values[0] - 100))
    assert 6 < sum(drawn) / 400 < 10


def test_it_prunes_by_its_own_threshold():
    assert trial_of(pruner()).should_prune() is False  # nothing was reported
    for count, pruned in ((1000, False), (-1000, True)):
        trial = trial_of(pruner())
        trial.report(count, 1)
        assert trial.should_prune() is pruned


@pytest.mark.parametrize(("direction", "pruned"), [("maximize", True), ("minimize", False)])
def test_patience_follows_the_direction(direction, pruned):
    trial = trial_of(pruner(PatientPruner(None, patience=1)), direction=direction)
    for step, count in enumerate((3000, 2000, 1000)):
        trial.report(count, step)
    assert trial.should_prune() is pruned
    assert "PatientPruner" in repr(pruner(PatientPruner(ThresholdPruner(lower=1), patience=2)))


def test_a_step_is_looked_at_once_and_no_look_is_free():
    trial = trial_of(pruner(looks=1))
    trial.report(10, 5)
    first = trial._reports._values[5]
    trial.report(10**6, 5)
    assert trial._reports._values == {5: first}
    with pytest.raises(ArgumentError, match="declares 1 looks"):
        trial.report(10, 6)
    for wrong, step in ((0.123456, 7), (10, "x")):
        with pytest.raises((TypeError, ArgumentError)) as error:
            trial_of(pruner()).report(wrong, step)
        assert "0.123456" not in str(error.value)
    with pytest.raises(ArgumentError, match="step"):
        trial_of(pruner()).report(1, -1)


# in a search


def test_an_objective_for_optuna_runs_unchanged():
    def objective(trial):
        right = trial.suggest_int("right", 0, 2000)
        trial.report(right, step=1)
        if trial.should_prune():
            raise optuna.TrialPruned
        return right

    result = search(objective, pruner(ThresholdPruner(lower=500)), random=keyed_source(1), rehearse=objective)
    assert result.params["right"] > 400
    same = search(objective, pruner(ThresholdPruner(lower=500)), random=keyed_source(1))
    assert (same.params, same.score) == (result.params, result.score)
    assert rehearse(objective, pruner=pruner(ThresholdPruner(lower=10**6)), random=keyed_source(1))[1] >= 0
    for refused in (lambda: rehearse(objective), lambda: search(objective, None)):
        with pytest.raises(TrialRefusal, match="PrivatePruner"):
            refused()


@pytest.mark.parametrize(
    "other", [MedianPruner(), NopPruner(), HyperbandPruner(), PatientPruner(MedianPruner(), 1), None]
)
def test_pruners_that_see_other_runs_are_refused(other):
    with pytest.raises(ArgumentError, match="Give ThresholdPruner or PatientPruner"):
        PrivatePruner(other, noise=NOISE, looks=1)


def test_what_else_is_refused():
    with pytest.raises(TypeError, match="NoisyCount"):
        PrivatePruner(ThresholdPruner(lower=1), noise=0.5, looks=1)
    with pytest.raises(ArgumentError, match="looks"):
        pruner(looks=0)
    with pytest.raises(ArgumentError, match="pruner=PrivatePruner"):
        search(lambda trial: 1.0, ThresholdPruner(lower=1))


def test_an_ordinary_study_is_refused():
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(pruner=pruner())

    def objective(trial):
        trial.report(1.0, 1)
        return float(trial.should_prune())

    with pytest.raises(ArgumentError, match="keeps each value as it is"):
        study.optimize(objective, n_trials=1)
