"""A Trainer's model is trained privately, by its optimizer and on its rows; what has no price is refused."""
# ruff: noqa: E402

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("opacus")
pytest.importorskip("transformers")
peft = pytest.importorskip("peft")

from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    EarlyStoppingCallback,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from dpselect.errors import ArgumentError
from dpselect.integrations.opacus import PrivateTraining
from dpselect.integrations.transformers import fine_tune
from dpselect.learners import EarlyStopping, NoGain, PublicValidation
from dpselect.randomness import keyed_source

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("ignore")]
LENGTH = 6
PLAN = PrivateTraining(
    noise_multiplier=1.0, sampling_rate=0.25, steps=4, max_grad_norm=1.0, expected_batch_size=10.0
)  # fmt: skip
SIZES = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
BERT = BertConfig(vocab_size=20, max_position_embeddings=8, **SIZES)


def rows(count=40):
    random = torch.Generator().manual_seed(1)
    lengths = torch.randint(2, 9, (count,), generator=random).tolist()
    return [
        {"input_ids": torch.randint(0, 20, (length,), generator=random).tolist(), "label": k % 2}
        for k, length in enumerate(lengths)
    ]


def classifier():
    lora = peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["query"], modules_to_save=["classifier"])
    return peft.get_peft_model(BertForSequenceClassification(BERT), lora)


def writer():
    model = GPT2LMHeadModel(GPT2Config(vocab_size=20, n_embd=8, n_layer=1, n_head=1, n_positions=8))
    lora = peft.LoraConfig(task_type="CAUSAL_LM", r=2, target_modules=["c_attn"], fan_in_fan_out=True)
    return peft.get_peft_model(model, lora)


@pytest.fixture
def trainer(tmp_path):
    def make(make_model=classifier, data=None, kind=Trainer, arguments=TrainingArguments, beside=None, **options):
        args = arguments(output_dir=str(tmp_path), use_cpu=True, learning_rate=0.1, **options)
        return kind(model=make_model(), args=args, train_dataset=rows() if data is None else data, **(beside or {}))

    return make


def trained(make, plan=PLAN, key=1):
    model = fine_tune(plan, make, length=LENGTH, random=keyed_source(key))
    return torch.cat([each.detach().flatten() for each in model.parameters() if each.requires_grad])


def test_adapters_are_trained_and_replayed(trainer):
    first = trained(trainer)
    assert torch.equal(first, trained(trainer))
    assert not torch.equal(first, trained(trainer, key=2))
    model = fine_tune(PLAN, trainer, length=LENGTH, random=keyed_source(1))
    assert type(model).__name__ == "PeftModelForSequenceClassification"
    assert not model.training


def test_a_causal_model_is_trained(trainer):
    tokens = [{"input_ids": row["input_ids"]} for row in rows()]
    assert trained(lambda: trainer(writer, tokens)).isfinite().all()


def test_one_row_moves_a_step_by_at_most_the_clipping_norm(trainer):
    """The same noise in one step of plain descent: the difference is the row's own gradient."""
    plan = PrivateTraining(
        noise_multiplier=1.0, sampling_rate=1.0, steps=1, max_grad_norm=0.5, expected_batch_size=10.0
    )

    def dropless():
        model = classifier()
        for part in model.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        return model

    def fitted(data):
        plain = {"optim": "sgd", "lr_scheduler_type": "constant"}
        return trained(lambda: trainer(dropless, data, **plain), plan)

    for row in ({"input_ids": [3, 3], "label": 1}, {"input_ids": [19] * 30, "label": 0}):
        moved = float((fitted(rows(5)) - fitted([*rows(5), row])).norm())
        assert 0.0 < moved <= 0.1 * 0.5 / 10.0 * (1 + 1e-3)


@pytest.mark.parametrize(
    "odd",
    [
        {"input_ids": [400, -3, 5], "label": 1},
        {"input_ids": [4, 5], "label": 7},
        {"input_ids": [4, 5], "label": None},
        {"input_ids": [], "label": 0},
        {"input_ids": [None, 3], "label": float("nan")},
    ],
)
def test_no_row_makes_the_training_fail(trainer, odd):
    assert trained(lambda: trainer(data=[*rows(5), odd])).isfinite().all()


def test_no_rows_at_all(trainer):
    empty = [dict(rows(1)[0], label=99)]  # trains nothing
    assert trained(lambda: trainer(data=empty)).isfinite().all()


class OwnTrainer(Trainer):
    """Has a loss of its own."""


class Packing(TrainingArguments):
    """Stands for arguments of another library."""


class Watching(TrainerCallback):
    """Sees every step."""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"gradient_accumulation_steps": 2}, "gradient_accumulation_steps = 2 is refused"),
        ({"train_sampling_strategy": "group_by_length"}, "train_sampling_strategy = .*group_by_length.* is refused"),
        ({"bf16": True}, "bf16 = True is refused"),
        ({"label_smoothing_factor": 0.1}, "label_smoothing_factor = 0.1 is refused"),
        ({"neftune_noise_alpha": 5.0}, "neftune_noise_alpha = 5.0 is refused"),
        ({"max_grad_norm": 0.5}, "max_grad_norm = 0.5 contradicts"),
        ({"max_steps": 9}, "max_steps = 9 contradicts the training's steps, 4"),
        ({"per_device_train_batch_size": 32}, "per_device_train_batch_size = 32 contradicts"),
        ({"num_train_epochs": 2.0}, "num_train_epochs = 2.0 contradicts the training's 4 steps"),
        ({"kind": OwnTrainer}, "the trainer: OwnTrainer is refused"),
        ({"arguments": Packing}, "its arguments: Packing is refused"),
        ({"beside": {"callbacks": [Watching()]}}, "callbacks: Watching would not run"),
        ({"beside": {"compute_loss_func": lambda *_: 0}}, "compute_loss_func is refused"),
        ({"beside": {"data_collator": list}}, "data_collator: type is refused"),
        ({"make_model": lambda: BertForMaskedLM(BERT)}, "must be for sequence classification"),
        ({"data": [{"words": [1]}]}, "reads tokenized text"),
    ],
)
def test_what_has_no_price_is_refused(trainer, options, said):
    with pytest.raises(ArgumentError, match=said):
        trained(lambda: trainer(**options))


def test_early_stopping_is_refused(trainer):
    stopping = EarlyStopping(stops=[1, PLAN.steps], score=PublicValidation([], []), rule=NoGain())
    with pytest.raises(ArgumentError, match="early_stopping is refused"):
        trained(trainer, replace(PLAN, early_stopping=stopping))


def test_arguments_that_agree_are_taken(trainer):
    assert trained(lambda: trainer(max_steps=4, per_device_train_batch_size=10, warmup_steps=2)).isfinite().all()
    assert EarlyStoppingCallback is not None
    with pytest.raises(TypeError, match="must make a Trainer of transformers"):
        trained(classifier)
