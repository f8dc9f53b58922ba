"""Train on handwritten digits, look at public rows every 50 steps, stop when they say so, and pay for the steps taken.

python examples/early_stopping.py [budget.db]
"""

import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_digits

from dpselect.learners import DPSGDClassifier, EarlyStopping, NoGain, PublicValidation
from dpselect.ledger import Ledger
from dpselect.privacy import dp_sgd
from dpselect.randomness import keyed_source

STOPS = [50, 100, 150, 200, 250, 300]
DELTA = 1e-5


def main(record: Path) -> None:
    """Print what each stopping point costs, where training stopped, and what the ledger was charged."""
    X, y = load_digits(return_X_y=True)
    public, private = slice(0, 300), slice(300, None)  # say the first 300 rows had been published before

    budget = Ledger.open(record).create_budget("digits", epsilon=4, delta=1e-4)
    stopping = EarlyStopping(
        stops=STOPS,
        delta=DELTA,
        score=PublicValidation(X[public], y[public]),
        rule=NoGain(patience=1, least=0.025),
        spender=budget,
        label="train on digits",
    )
    # the key makes this run repeat; leave it out where the data is private
    model = DPSGDClassifier(
        noise_multiplier=4.0,
        sampling_rate=0.15,
        steps=STOPS[-1],
        learning_rate=4.0,
        row_norm=55.0,
        classes=range(10),
        nominal_rows=1500,
        early_stopping=stopping,
        random=keyed_source(1),
    )
    price = model.price()
    print("steps  epsilon when stopped there  epsilon if fixed in advance")
    for stop in STOPS:
        fixed = dp_sgd(noise_multiplier=4.0, sampling_rate=0.15, steps=stop).epsilon(DELTA)
        print(f"{stop:5}  {price.price(stop):26.3f}  {fixed:27.3f}")
    model.fit(X[private], y[private])
    print("scores", [round(score, 3) for score in model.scores_])
    print(f"stopped after {model.n_steps_} steps; accuracy on public rows {model.score(X[public], y[public]):.3f}")
    spent, left = budget.spent(), budget.remaining()
    print(f"reserved {price.worst_epsilon:.3f}, charged {float(spent.epsilon):.3f}, left {float(left.epsilon):.3f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder) / "budget.db")
