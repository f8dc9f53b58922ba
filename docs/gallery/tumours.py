"""Mean radius and mean texture of the tumours, by diagnosis: malignant ones are larger."""

import matplotlib.pyplot as plt
from tumours import tables

header, train, _ = tables()
radius, texture = header.index("mean radius"), header.index("mean texture")
for diagnosis, mark in (("benign", "o"), ("malignant", "x")):
    rows = [(float(row[radius]), float(row[texture])) for row in train if row[0] == diagnosis]
    plt.plot(*zip(*rows, strict=True), mark, markersize=4, alpha=0.7, label=diagnosis)
plt.xlabel("mean radius")
plt.ylabel("mean texture")
plt.legend()
