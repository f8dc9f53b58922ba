"""Write the tables of tumours.toml: numbers, words, and classes in words.

They are scikit-learn's breast cancer set with a third of its columns in numbers and the others in words. Every fifth
row goes to the public test rows.

    python examples/tumours.py [FOLDER]
"""

import csv
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer

WORDS = ("low", "middle", "high")


def tables():
    """The header, the rows that are searched on, and the test rows."""
    found = load_breast_cancer()
    columns = {"diagnosis": np.where(found.target == 1, "benign", "malignant").tolist()}
    for name, cells in zip(found.feature_names.tolist(), found.data.T, strict=True):
        if name.startswith("mean"):
            columns[name] = [f"{cell:.4g}" for cell in cells]
        else:
            thirds = np.quantile(cells, [1 / 3, 2 / 3])
            columns[name] = [WORDS[i] for i in np.searchsorted(thirds, cells)]
    rows = list(zip(*columns.values(), strict=True))
    return list(columns), [row for i, row in enumerate(rows) if i % 5], rows[::5]


def main(folder):
    """Write both tables."""
    header, train, test = tables()
    for name, rows in (("tumours.csv", train), ("tumours-test.csv", test)):
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([header, *rows])


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
