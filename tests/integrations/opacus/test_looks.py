"""Trainings that look at their model, and may end early: what is asked, what it costs, and what a kill leaves."""
# ruff: noqa: E402

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")

from dpselect.errors import AdjacencyError, ArgumentError
from dpselect.integrations.opacus import checkpoints
from dpselect.integrations.opacus.looks import AskedModule, Looks, refuse_uncertain_answers
from dpselect.integrations.opacus.processes import ALONE
from dpselect.integrations.opacus.synthetic_rows import SyntheticRows
from dpselect.learners import EarlyStopping, NoGain, PrivateValidation, PublicValidation, Reached
from dpselect.mechanisms import NoisyCount
from dpselect.privacy import compose, dp_sgd
from dpselect.randomness import keyed_source
from dpselect.repetitions import Fixed
from dpselect.steps import watched
from dpselect.tuning import LogUniform, tune
from tests.integrations.opacus.test_processes import together, weights as weights_of_all
from tests.integrations.opacus.train_together import train
from tests.integrations.opacus.training_cases import descent, linear, plan, rows, weights

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:torch", "ignore:Full backward hook")
LOSS = torch.nn.CrossEntropyLoss(reduction="none")
LOOK = NoisyCount(epsilon=0.5)


class Scripted:
    """A score that says what it is told to, and notes what it saw."""

    guarantee, disjoint = None, True

    def __init__(self, *scores):
        self.left, self.seen = list(scores), []

    def __call__(self, model, source):
        self.seen.append((model(rows(3)[0]).clone(), model._module.training, int(source.bits(32))))
        return self.left.pop(0)


def early(score, stops=(2, 4, 6), rule=None, **options):
    return EarlyStopping(stops=stops, score=score, rule=rule or Reached(0.9), **options)


def looking(score, steps=6, **changes):
    stops = changes.pop("stops", (2, 4, 6))
    return plan(steps=steps, sampling_rate=0.5, early_stopping=early(score, stops), **changes)


def fit(training, key=1, **options):
    return training.fit(linear, descent, LOSS, *rows(20), random=keyed_source(key), **options)


def noisy(disjoint=False, **options):
    X, y = rows(12, seed=2)
    return PrivateValidation(X, y, nominal_rows=12, epsilon=0.5, disjoint=disjoint, **options)


# when it ends


@pytest.mark.full
@pytest.mark.parametrize(("scores", "reached"), [([0.95], 2), ([0.1, 0.95], 4), ([0.1, 0.2], 6)])
def test_it_ends_where_the_rule_says_with_the_weights_of_a_training_of_that_length(scores, reached):
    score, told = Scripted(*scores), []
    with watched(lambda *seen: told.append(seen)):
        stopped = fit(looking(score))
    assert torch.equal(weights(stopped), weights(fit(plan(steps=reached, sampling_rate=0.5))))
    assert len(score.seen) == len(scores)
    assert told[: reached + 1] == [("steps of training", done, 6) for done in range(min(reached + 1, 6))]
    assert not stopped.training


@pytest.mark.full
def test_looks_change_no_step_and_see_the_model_in_eval_mode():
    score = Scripted(0.1, 0.1)
    assert torch.equal(weights(fit(looking(score))), weights(fit(plan(steps=6, sampling_rate=0.5))))
    assert [training for _, training, _ in score.seen] == [False, False]
    assert not torch.equal(score.seen[0][0], score.seen[1][0])
    assert score.seen[0][2] != score.seen[1][2]  # each look has noise of its own


@pytest.mark.full
def test_the_rule_sees_all_scores_so_far():
    seen = []
    rule = early(Scripted(0.25, 0.5, 0.75), (1, 2, 3, 4), lambda scores: bool(seen.append(scores)))
    fit(plan(steps=4, sampling_rate=0.5, early_stopping=rule))
    assert seen == [(0.25,), (0.25, 0.5), (0.25, 0.5, 0.75)]


# what it costs


def test_the_whole_length_and_every_look_is_paid():
    plain = dp_sgd(noise_multiplier=2, sampling_rate=0.5, steps=6)
    assert looking(Scripted()).guarantee.epsilon(1e-5) == plain.epsilon(1e-5)
    same = looking(noisy()).guarantee.epsilon(1e-5)
    assert same == compose(plain, LOOK.guarantee, LOOK.guarantee).epsilon(1e-5) > plain.epsilon(1e-5)
    assert looking(noisy(disjoint=True)).guarantee.epsilon(1e-5) == plain.epsilon(1e-5)
    costly = looking(noisy(disjoint=True), noise_multiplier=200).guarantee
    assert costly.epsilon(1e-5) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"stops": (2, 4)}, "the last one must be steps, 6"),
        ({"stops": (4, 2, 6)}, "must increase"),
        ({"stops": (2, 2, 6)}, "must increase"),
        ({"stops": ()}, "must be steps"),
        ({"delta": 1e-5}, "leave delta out"),
        ({"spender": object(), "shares": [1, 1, 1]}, "leave spender, shares out"),
        ({"worst_epsilon": 3.0}, "leave worst_epsilon out"),
    ],
)
def test_what_the_plan_refuses(change, match):
    with pytest.raises(ArgumentError, match=match):
        plan(steps=6, early_stopping=early(Scripted(), **change))
    with pytest.raises(ArgumentError, match="must be an EarlyStopping, got int"):
        plan(steps=6, early_stopping=3)


def test_looks_within_an_epoch_of_random_allocation_are_refused():
    settings = {"sampling": "random-allocation", "sampling_rate": 0.5, "steps": 6}
    assert plan(**settings, early_stopping=early(Scripted())).guarantee.epsilon(1e-5) > 0
    with pytest.raises(ArgumentError, match="ends of epochs, multiples of 2"):
        plan(**settings, early_stopping=early(Scripted(), (3, 6)))


def test_parts_need_one_adjacency_that_keeps_them():
    with pytest.raises(AdjacencyError, match="one adjacency"):
        looking(noisy(disjoint=True, adjacency="replace_one"))
    with pytest.raises(AdjacencyError, match="may change its part"):
        looking(noisy(disjoint=True, adjacency="replace_one"), adjacency="replace_one")
    both = looking(noisy(adjacency="replace_one"), adjacency="replace_one")
    assert both.guarantee.epsilon(1e-5) > looking(Scripted(), adjacency="replace_one").guarantee.epsilon(1e-5)


# what is asked


class BatchMeanInEval(torch.nn.Module):
    """Rows mix in eval mode only, where the probe of training does not look."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)

    def forward(self, x):
        return self.layer(x if self.training else x - x.mean(dim=0))


def test_no_row_moves_the_answer_of_another_one():
    inputs, _ = rows(9)
    for make in (BatchMeanInEval, linear):
        model = AskedModule(make().eval())
        assert model.predict(inputs)[:8].tolist() == model.predict(inputs[:8]).tolist()
        assert model.predict(inputs.numpy().astype(float)).dtype == np.int64
        assert model.predict(inputs[:0]).shape == (0,)


def test_one_output_is_compared_with_0_and_others_need_a_score():
    inputs = torch.tensor([[1.0], [-1.0]])
    assert AskedModule(torch.nn.Identity()).predict(inputs).tolist() == [1, 0]
    assert AskedModule(torch.nn.Identity())(inputs).tolist() == inputs.tolist()
    with pytest.raises(ArgumentError, match="score that you wrote"):
        AskedModule(torch.nn.Identity()).predict(torch.zeros(2, 3, 4))


@pytest.mark.parametrize("score", [noisy(), PublicValidation(*rows(12, seed=2))])
def test_scores_of_tensors_count_right_answers(score):
    inputs, targets = rows(12, seed=2)

    class Right(torch.nn.Module):
        def forward(self, x):
            return torch.nn.functional.one_hot(targets, 3)[(inputs == x).all(1)]

    found = [score(AskedModule(Right()), keyed_source(key)) for key in range(10)]
    assert abs(np.mean(found) - 1.0) < 0.4  # noise of deviation 2.8 on a count of 12, ten times: five deviations


class Draws(torch.nn.Module):
    def __init__(self, draw):
        super().__init__()
        self.layer, self.draw = torch.nn.Linear(4, 3), draw

    def forward(self, x):
        return self.layer(x) + self.draw()


DRAWS = (lambda: torch.rand(1), lambda: np.random.rand(), lambda: random.random(), np.random.default_rng(1).random)  # noqa: NPY002


@pytest.mark.parametrize("draw", DRAWS)
def test_a_module_that_draws_in_eval_mode_is_refused(draw):
    module = Draws(draw)
    before = torch.random.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    with pytest.raises(ArgumentError, match="draws in eval mode"):
        refuse_uncertain_answers(module, SyntheticRows(*rows(7)))
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1:] == (np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002
    refuse_uncertain_answers(linear(), SyntheticRows(*rows(7)))


class CountsInEval(torch.nn.Module):
    """Keeps something of the rows that it is asked about."""

    def __init__(self):
        super().__init__()
        self.layer, self.largest = torch.nn.Linear(4, 3), 0.0

    def forward(self, x):
        if not self.training:
            self.largest = max(self.largest, float(x.detach().max()))
        return self.layer(x)


def test_a_module_that_keeps_rows_in_eval_mode_is_refused():
    with pytest.raises(ArgumentError, match="largest changes"):
        looking(noisy()).fit(CountsInEval, descent, LOSS, *rows(20), random=keyed_source(1))


class CountsCalls(torch.nn.Module):
    """Sound in training. In a look it counts the validation rows, and is released."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 3)
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


def test_a_count_of_calls_would_tell_how_many_rows_a_look_asks():
    with pytest.raises(ArgumentError, match="calls counts calls in eval mode"):
        refuse_uncertain_answers(CountsCalls(), SyntheticRows(*rows(7)))


# kills


class StoppedError(Exception):
    """Stands for a kill."""


def killed_in(step):
    class Stopping(torch.optim.Adam):
        done = 0

        def step(self, closure=None):
            type(self).done += 1
            if type(self).done == step:
                raise StoppedError
            return super().step(closure)

    return lambda parameters: Stopping(parameters, lr=0.1)


@pytest.mark.full
@pytest.mark.parametrize("step", range(1, 7))
def test_a_killed_training_goes_on_to_the_same_scores_and_bytes(tmp_path, monkeypatch, step):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    scores = []

    def attempt(kill, kept):
        rule = early(noisy(), rule=lambda found: bool(scores.append(found)))
        training = plan(steps=6, sampling_rate=0.5, early_stopping=rule)
        return weights(training.fit(linear, killed_in(kill), LOSS, *rows(20), random=keyed_source(1), checkpoints=kept))

    whole = attempt(None, None)
    expected, scores[:] = list(scores), []
    with pytest.raises(StoppedError):
        attempt(step, tmp_path)
    assert torch.equal(attempt(None, tmp_path), whole)
    assert scores == expected  # no look is made twice, and none is left out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_a_checkpoint_with_other_looks_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    with pytest.raises(StoppedError):
        looking(noisy()).fit(linear, killed_in(4), LOSS, *rows(20), random=keyed_source(1), checkpoints=tmp_path)
    for other in (looking(noisy(), stops=(3, 6)), plan(steps=6, sampling_rate=0.5)):
        with pytest.raises(ArgumentError, match="other settings"):
            fit(other, checkpoints=tmp_path)


# several processes, searches


@pytest.mark.full
def test_processes_look_once_for_all(tmp_path):
    assert together(tmp_path, 2, looks=True) == [0, 0]
    assert torch.equal(weights_of_all(tmp_path), train(looks=True))
    assert not torch.equal(train(looks=True), train())


def test_the_first_process_looks():
    class Second(type(ALONE)):
        def of_first(self, thing):
            assert thing is None
            return 0.95

    looks = Looks(early(Scripted()), linear(), keyed_source(1), Second(rank=1, count=2))
    assert (looks.end(1), looks.end(2), looks.scores) == (False, True, [0.95])


@pytest.mark.full
def test_a_search_counts_the_looks_of_every_run():
    training = looking(noisy())
    score = NoisyCount(epsilon=0.5)

    def objective(params, source):
        model = training.fit(
            linear,
            lambda p: torch.optim.SGD(p, lr=params["rate"]),
            LOSS,
            *rows(20),
            random=source.spawn("training"),
        )
        right = int((model(rows(12, seed=2)[0]).argmax(1) == rows(12, seed=2)[1]).sum())
        return score.draw(right, random=source.spawn("score")), model.state_dict()

    base = compose(training.guarantee, score.guarantee)
    result = tune(objective, space={"rate": LogUniform(0.1, 1)}, base=base, repetitions=Fixed(count=2), rehearse=False)
    assert set(result.value) == set(linear().state_dict())
    assert result.guarantee.epsilon(1e-5) > base.epsilon(1e-5)


@pytest.mark.full
def test_no_gain_is_a_rule_too():
    score = Scripted(0.5, 0.5)
    training = plan(steps=6, sampling_rate=0.5, early_stopping=early(score, rule=NoGain()))
    assert torch.equal(weights(fit(training)), weights(fit(plan(steps=4, sampling_rate=0.5))))
