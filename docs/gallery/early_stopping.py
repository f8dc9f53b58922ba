"""Epsilon against the steps taken: deciding on the way costs a little more than a number of steps that was fixed,
and far less than all 300 steps.
"""

import matplotlib.pyplot as plt
from early_stopping import DELTA, STOPS

from dpselect.learners import DPSGDClassifier, EarlyStopping, NoGain, PublicValidation
from dpselect.privacy import dp_sgd

training = {"noise_multiplier": 4.0, "sampling_rate": 0.15}
stopping = EarlyStopping(
    stops=STOPS, delta=DELTA, score=PublicValidation([[0.0]], [0]), rule=NoGain(patience=1, least=0.025)
)
price = DPSGDClassifier(
    **training, steps=STOPS[-1], row_norm=55.0, classes=range(10), nominal_rows=1500, early_stopping=stopping
).price()
fixed = [dp_sgd(**training, steps=stop).epsilon(DELTA) for stop in STOPS]
plt.plot(STOPS, [price.price(stop) for stop in STOPS], "o-", label="stopped there, decided on the way")
plt.plot(STOPS, fixed, "s--", label="fixed in advance")
plt.axhline(price.worst_epsilon, color="grey", linestyle=":", label="reserved")
plt.xlabel("steps")
plt.ylabel(f"epsilon at delta {DELTA:g}")
plt.legend()
