"""What each holdout says of the model it selected, and what new rows say: the ordinary one is ten standard errors
too high, ours is right within its steps of 1/11.
"""

import matplotlib.pyplot as plt
from printed import numbers

for place, (line, label) in enumerate((("ordinary holdout ", "an ordinary holdout"), ("  ours", "ours"))):
    said, fresh = numbers("reusable_holdout", line)[:2]
    step = 0.5 / 11 if place else 0.0
    plt.errorbar(place - 0.06, said, step or None, fmt="o", capsize=4, color=f"C{place}", label=f"{label} says")
    plt.plot(place + 0.06, fresh, "D", color="grey", label="new rows say" if place else None)
plt.axhline(0.5, color="grey", linestyle=":", label="a coin, which it is")
plt.xticks([0, 1], ["ordinary", "ours"])
plt.xlim(-0.8, 1.8)
plt.ylabel("accuracy of the selected vote")
plt.legend()
