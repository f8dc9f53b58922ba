"""A year of one budget: teams, refunds, refusals, and a record that can be checked."""

# %% [markdown]
# # A year of one budget
#
# One data set, one budget of epsilon 3 for a year, twelve months of questions by people who do not know of each other.
# What an output did not use comes back, so the budget lasts longer than its worst case says; nothing can overspend it.
#
# A notebook as a script: `python examples/year_of_budget.py [--quick]`. `--quick` makes it repeat, for tests.

# %%
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from dpselect.ledger import InsufficientBudget, Ledger
from dpselect.mechanisms import SparseVector, noisy_count
from dpselect.ordered import median
from dpselect.privacy import OutputGuarantee
from dpselect.randomness import keyed_source, system_source

QUICK = "--quick" in sys.argv
random = keyed_source(3) if QUICK else system_source()
ledger = Ledger.open(Path(tempfile.mkdtemp(), "year.db"))
year = ledger.create_budget("year", epsilon=3, delta=1e-6)

# %% [markdown]
# ## Within it, budgets of two teams
#
# A charge must fit the team's budget and the year's. The teams' limits may add up to more than the year has.

# %%
doctors = ledger.create_budget("doctors", parent="year", epsilon=2, delta=1e-6)
planners = ledger.create_budget("planners", parent="year", epsilon=2, delta=1e-6)

# days in hospital, month by month; private. Who comes back is in several months, so every month pays for all
stays = np.random.default_rng(0).gamma(2.0, 2.5, size=(12, 4000))

# %% [markdown]
# ## Every month: a median, and an alarm that is nearly always free
#
# The alarm is a gate: it costs 0.3 when it says something and 0.02 when it does not. Which of the two it was is settled
# after the run, and the difference comes back. (Hartmann, Bindschaedler, Bentkamp, West 2022: that is sound because the
# whole of 0.3 had to fit before.)

# %%
gate = OutputGuarantee(cell=lambda out: "alarm" if out else "quiet", epsilons={"alarm": 0.3, "quiet": 0.02})


def long_stays(month: int) -> str | None:
    """A noisy test at 0.02 whether many stays were long, and only then a count at 0.28."""
    count = int(np.sum(stays[month] > 14))
    if noisy_count(count, epsilon=0.02, random=random) < 600:  # 150 are expected; the noise has scale 50
        return None
    return f"{noisy_count(count, epsilon=0.28, random=random)} long stays"


answered, course = [], []
for month in range(12):
    try:
        release = median(stays[month], lower=0, upper=60, epsilon=0.1, spender=planners, random=random)
        answered.append(round(float(release.value), 1))
        with doctors.reserve(gate, label=f"alarm {month + 1}") as charge:
            charge.settle(long_stays(month))
        course.append(float(year.spent().epsilon))
    except InsufficientBudget as refused:
        print(f"month {month + 1}: {refused}")
print(f"medians: {answered}")
print(f"the year so far: {float(year.spent().epsilon):.2f} of 3; alarms gave back {float(doctors.refunded()):.2f}")

# %% [markdown]
# What is spent grows month by month; what the alarms reserved and did not use never counts.

# %%
months = range(1, len(course) + 1)
plt.step(months, course, where="post", label="spent")
plt.step(months, [0.4 * month for month in months], where="post", linestyle="--", label="if nothing came back")
plt.axhline(3, color="grey", linestyle=":", label="the budget")
plt.xlabel("month")
plt.ylabel("epsilon")
plt.legend()
plt.show()

# %% [markdown]
# ## An expensive question late in the year
#
# What is left is known at any time, by everyone, without asking the data.

# %%
left = float(year.remaining().epsilon)
try:
    noisy_count(int(np.sum(stays[0] > 4.2)), epsilon=2.0, spender=planners, label="a count, very exact")
    refused = False
except InsufficientBudget as error:
    refused = True
    print(f"refused: {error}")
print(f"left {left:.2f}")

# %% [markdown]
# A sparse vector answers many yes-or-no questions and charges for the first yes.

# %%
options = {"epsilon_threshold": 0.1, "epsilon_queries": 0.3, "max_positives": 1, "monotonic": True}
with SparseVector(**options, spender=planners, label="a month of long stays", random=random) as search:
    answers = []
    while len(answers) < 12 and not search.halted:
        answers.append(search.above(float(np.sum(stays[len(answers)] > 4.2)), 2010.0))
first = len(answers) if any(answers) else None
print(f"first month with about 2,010 stays above 4.2 days or more: {first}")

# %% [markdown]
# ## The record can be checked by anyone who holds it

# %%
ledger.verify()
spent = float(year.spent().epsilon)
print(f"verified: {spent:.2f} of 3 spent")
ledger.close()
