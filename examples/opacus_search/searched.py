"""The training of script.py as a private search: the price covers all runs and the choice among them."""

import argparse
import warnings

import torch
from sklearn.datasets import load_digits
from torch import nn

from dpselect.integrations.opacus import PrivateTraining
from dpselect.mechanisms import discrete_laplace
from dpselect.privacy import pure_dp
from dpselect.repetitions import Harmonic
from dpselect.tuning import Categorical, tune

DELTA = 1e-5
BATCH = 288
TRAINING = PrivateTraining(
    noise_multiplier=4.0, sampling_rate=0.2, steps=60, max_grad_norm=1.0, expected_batch_size=BATCH
)

warnings.filterwarnings("ignore", category=UserWarning)


def load():
    """Images in [0, 1] and labels. Every fifth row scores."""
    digits = load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    labels = torch.tensor(digits.target)
    scores = torch.arange(len(images)) % 5 == 0
    return images[~scores], labels[~scores], images[scores], labels[scores]


def network(channels):
    """Two convolutions and a linear layer for 8 x 8 images."""
    return nn.Sequential(
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.AvgPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(8 * channels, 10),
    )


def train(rows, labels, rate, channels, random):
    """One private training."""
    return TRAINING.fit(
        lambda: network(channels),
        lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=0.5),
        nn.CrossEntropyLoss(reduction="none"),
        rows,
        labels,
        random=random.spawn("training"),
    )


def correct(model, rows, labels, random):
    """The number of correct predictions, with noise."""
    with torch.no_grad():
        return int((model(rows).argmax(dim=1) == labels).sum()) + discrete_laplace(2, random.spawn("score"))


def main():
    """Search the settings, and keep the best model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="model.pt")
    options = parser.parse_args()
    rows, labels, score_rows, score_labels = load()

    def objective(params, random):
        model = train(rows, labels, params["rate"], params["channels"], random)
        return correct(model, score_rows, score_labels, random), model.state_dict()

    space = {"rate": Categorical([0.1, 0.5, 2.0]), "channels": Categorical([4, 8])}
    base = [TRAINING.guarantee, pure_dp(epsilon=0.5)]  # a training row, a scoring row
    best = tune(objective, space=space, base=base, repetitions=Harmonic(limit=21))
    print(f"best: {best.params}, epsilon {best.guarantee.epsilon(DELTA):.3f} of the whole search")
    if best.value is not None:
        torch.save(best.value, options.model)


if __name__ == "__main__":
    main()
