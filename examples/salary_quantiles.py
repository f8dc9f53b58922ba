"""Private medians, quantiles, intervals and bounds of salaries."""

# %% [markdown]
# # Salaries: a median, a pay gap, and bounds that no one knows
#
# A notebook as a script: `python examples/salary_quantiles.py [--quick]`; `--quick` is for tests.

# %%
import sys

import matplotlib.pyplot as plt
import numpy as np

from dpselect.ordered import Quantiles, median, private_range, quantile_interval, quantiles
from dpselect.privacy import compose
from dpselect.randomness import keyed_source

QUICK = "--quick" in sys.argv
random = keyed_source(1) if QUICK else None
rows = 5_000 if QUICK else 100_000
salaries = np.random.default_rng(0).lognormal(10.6, 0.5, rows).round(-2)  # private; their median is near 40,100
salaries[::50] = 0.0  # unpaid: many rows share one value

# %% [markdown]
# ## One number
#
# Bounds are public choices. They may be generous: the error grows with their logarithm.

# %%
middle = median(salaries, lower=0, upper=1e7, epsilon=0.5, granularity=100, random=random)
print(f"median {middle.value:,.0f}, at most {middle.rank_error(0.05):.0f} ranks off in 19 of 20 releases")

# %% [markdown]
# ## Where it surely lies
#
# The interval holds the median of the rows with the stated probability, regardless of the rows.

# %%
low, high = quantile_interval(salaries, q=0.5, lower=0, upper=1e7, epsilon=0.5, granularity=100, random=random).value
print(f"between {low:,.0f} and {high:,.0f}, 95 % sure")

# %% [markdown]
# ## Nine deciles at one price
#
# One mechanism over all nine, not nine mechanisms. What it costs is known before any row is read:

# %%
deciles = [i / 10 for i in range(1, 10)]
price = Quantiles(qs=deciles, epsilon=1.0).guarantee
print(f"price {price.epsilon(delta=0):.3f}")
found = quantiles(salaries, qs=deciles, lower=0, upper=1e7, epsilon=1.0, granularity=100, random=random)
print("deciles", [f"{value:,.0f}" for value in found.value])

# %% [markdown]
# The released deciles are on the curve of the rows. (The rows are made up, so the curve may be shown.)

# %%
shares = np.linspace(0.02, 0.98, 200)
plt.plot(shares, np.quantile(salaries, shares), label="the rows")
plt.plot(deciles, found.value, "o", label="released deciles")
plt.xlabel("share of the rows")
plt.ylabel("salary")
plt.legend()
plt.show()

# %% [markdown]
# ## A gap between two groups
#
# Which group a row is in is part of the row. Both medians are asked, and each row pays for both questions.

# %%
group = np.random.default_rng(1).random(rows) < 0.5
medians = [
    median(salaries[part] * factor, lower=0, upper=1e7, epsilon=0.25, granularity=100, random=random)
    for part, factor in ((group, 1.0), (~group, 0.9))
]
gap = 1 - medians[1].value / medians[0].value
print(f"gap {gap:.1%}, total epsilon {compose(*[m.guarantee for m in medians]).epsilon(delta=0):.2f}")

# %% [markdown]
# ## Bounds that no one knows
#
# Amounts in an unknown currency: find a range first, and pay for it too.

# %%
foreign = salaries * 151.7
outer = private_range(foreign, epsilon=0.3, random=random)
unknown = median(foreign, lower=outer.value[0], upper=outer.value[1], epsilon=0.3, random=random)
total = compose(outer.guarantee, unknown.guarantee).epsilon(delta=0)
print(f"range {outer.value[0]:,.0f} to {outer.value[1]:,.0f}, median {unknown.value:,.0f}, total epsilon {total:.2f}")
