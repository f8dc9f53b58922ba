"""Tune a classifier on private rows within a budget, and release one model."""

# %% [markdown]
# # Tune a classifier on private rows, and release one model
#
# A notebook as a script: run it with `python examples/tune_and_release.py`, or open it in an editor that knows `# %%`.
# `--quick` is for tests: fewer runs, and a key that makes them repeat.

# %%
import os
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import dpselect
from dpselect.accounting import best_of
from dpselect.errors import BudgetError
from dpselect.ledger import Ledger
from dpselect.privacy import pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Harmonic
from dpselect.study import parse_study, run_study

QUICK = "--quick" in sys.argv
FOLDER = Path(tempfile.mkdtemp())
os.environ.setdefault("XDG_STATE_HOME", str(FOLDER / "state"))  # where keys of unfinished searches lie

# %% [markdown]
# ## Before any data: what can we afford?
#
# The law of the number of runs is public, the number is secret. A total of 4 pays for runs of this epsilon each:

# %%
law = Harmonic(limit=5 if QUICK else 30)
one_run = 2.0
whole = best_of(pure_dp(epsilon=one_run), law).epsilon(delta=0)
print(f"one run {one_run}, a search of up to {law.limit} runs {whole:.3f}")

# %% [markdown]
# A search pays about twice what one run costs, however many runs it may make; publishing all runs would pay for each.

# %%
limits = [1, 2, 3, 5, 10, 30]
plt.plot(
    limits,
    [best_of(pure_dp(epsilon=one_run), Harmonic(limit=most)).epsilon(0) for most in limits],
    "o-",
    label="search",
)
plt.plot(limits[:4], [one_run * runs for runs in limits[:4]], "s--", label="all runs published")
plt.xlabel("most runs")
plt.ylabel("epsilon")
plt.legend()
plt.show()

# %% [markdown]
# ## The study: everything public, in one place
#
# The same as a TOML file is `dpselect tune STUDY.toml` on the command line. Bounds, classes, the space and the law are
# chosen without the rows; "plausible ranges of a measurement" are public, its minimum in the data is not.

# %%
names = list(load_breast_cancer().feature_names[[0, 1, 2, 20, 21]])
bounds = [[5, 30], [5, 40], [40, 200], [5, 40], [10, 50]]
study = parse_study(
    {
        "name": "breast cancer",
        "data": {
            "source": "sklearn:breast_cancer",
            "label": "target",
            "classes": [0, 1],
            "columns": {name: {"bounds": pair} for name, pair in zip(names, bounds, strict=True)},
        },
        "privacy": {
            "epsilon": 4.0,
            "adjacency": "replace_one",
            "ledger": str(FOLDER / "budget.db"),
            "budget": "hospital",
        },
        "validation": {"data": "private", "fraction": 0.25},
        "learner": {"name": "output-perturbation"},
        "space": {
            "regularization": {"law": "log_uniform", "low": 0.001, "high": 0.3},
            "row_norm": {"law": "log_uniform", "low": 0.5, "high": 3.0},
        },
        "repetitions": {"law": "harmonic", "limit": law.limit},
        "runs": {"executor": "inline", "workers": 1},  # processes, clusters: docs/how-to/executors.md
        "output": {"folder": str(FOLDER / "search")},
    }
)

# %% [markdown]
# ## Run it, paid for by a budget
#
# The price of the whole search is reserved before the first row is used. A search that is killed is taken up again with
# `resume=True`: nothing is drawn again, nothing is charged twice.

# %%
with Ledger.open(FOLDER / "budget.db") as ledger:
    ledger.create_budget("hospital", epsilon=6, delta=0, adjacency="replace_one")
random = keyed_source(1) if QUICK else None
found = run_study(study, base_folder=FOLDER, random=random)
print(f"released: {sorted(path.name for path in found.folder.iterdir() if path.suffix in {'.json', '.npz', '.html'})}")
print(f"chosen:   {found.release['parameters']}")

# %% [markdown]
# ## Use it
#
# The model is the only thing that left. Predictions on rows that anyone may see are free; on private rows they are not.

# %%
model = dpselect.load_model(found.folder / "model.npz")
frame = load_breast_cancer()
rows = frame.data[:, [0, 1, 2, 20, 21]]
accuracy = float((model.predict(rows) == frame.target).mean())  # for this demonstration: its price is not counted
print(f"accuracy {accuracy:.2f}")

# %% [markdown]
# ## A second search does not fit

# %%
try:
    run_study(study, base_folder=FOLDER, folder=FOLDER / "again", random=random)
    refused = False
except BudgetError as error:
    refused = True
    print(f"refused: {error}")
