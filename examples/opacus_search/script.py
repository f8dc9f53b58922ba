"""A training with Opacus as its documentation writes it: one private network, whose search costs nothing, it seems."""

import argparse
import warnings

import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import nn

DELTA = 1e-5
BATCH = 288
EPOCHS = 12

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


def train(rows, labels, rate, channels):
    """One private training."""
    model = network(channels)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.5)
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows, labels), batch_size=BATCH)
    engine = PrivacyEngine()
    model, optimizer, loader = engine.make_private(
        module=model, optimizer=optimizer, data_loader=loader, noise_multiplier=4.0, max_grad_norm=1.0
    )
    loss = nn.CrossEntropyLoss()
    for _ in range(EPOCHS):
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss(model(inputs), targets).backward()
            optimizer.step()
    return model, engine.get_epsilon(DELTA)


def accuracy(model, rows, labels):
    """The fraction of correct predictions."""
    with torch.no_grad():
        return float((model(rows).argmax(dim=1) == labels).double().mean())


def main():
    """Train with each setting, and keep the best model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="model.pt")
    options = parser.parse_args()
    rows, labels, score_rows, score_labels = load()
    best = None
    for rate in (0.1, 0.5, 2.0):
        for channels in (4, 8):
            model, epsilon = train(rows, labels, rate, channels)
            score = accuracy(model, score_rows, score_labels)
            if best is None or score > best[0]:
                best = score, {"rate": rate, "channels": channels}, model, epsilon
    print(f"best: {best[1]}, accuracy {best[0]:.3f}, epsilon {best[3]:.3f} of one run")
    torch.save(best[2].state_dict(), options.model)


if __name__ == "__main__":
    main()
