"""Counts of twenty monitors against the minute: all near 100, one jumps to 400 in minute 600, where the alarm
rings.
"""

import matplotlib.pyplot as plt
import numpy as np
from printed import numbers
from watch_monitors import LEVELS, OUTAGE, synthetic_minutes

counts = np.array(list(synthetic_minutes()))
minute, monitor, people = numbers("watch_monitors", "alarm")
plt.plot(np.delete(counts, OUTAGE[1], axis=1), color="grey", alpha=0.15, linewidth=0.5)
plt.plot(counts[:, OUTAGE[1]], linewidth=0.8, label=f"monitor {monitor:.0f}")
plt.axhline(LEVELS[0], color="tab:orange", linestyle=":", label="level")
plt.plot(minute, people, "v", color="tab:red", label="the alarm, with its noisy count")
plt.xlabel("minute")
plt.ylabel("people with an error")
plt.legend()
