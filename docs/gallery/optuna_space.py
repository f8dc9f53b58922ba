"""Two hundred draws from a conditional space: linear models have a learning rate only, networks also a number of
hidden units and an activation.
"""

import matplotlib.pyplot as plt
from optuna_space import model

from dpselect.integrations.optuna import IndependentTrial
from dpselect.randomness import keyed_source

drawn = [model(IndependentTrial(keyed_source(trial))) for trial in range(200)]
for label, mark, chosen in (
    ("linear", "s", lambda each: each.hidden_units == 0),
    ("network, tanh", "o", lambda each: each.hidden_units and each.activation == "tanh"),
    ("network, relu", "^", lambda each: each.hidden_units and each.activation == "relu"),
):
    rates, units = zip(*[(each.learning_rate, each.hidden_units) for each in drawn if chosen(each)], strict=True)
    plt.plot(rates, units, mark, markersize=4, alpha=0.7, label=label)
plt.xscale("log")
plt.xlabel("learning rate")
plt.ylabel("hidden units")
plt.ylim(top=90)
plt.legend(loc="upper left", ncols=3)
