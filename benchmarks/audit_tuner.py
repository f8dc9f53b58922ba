"""What the worst search leaks, measured, beside what the accountants say.

    python -m benchmarks.audit_tuner [--draws 1000000] [--tune-draws 5000]

`exact` is the leak of the worst order over a base cut into some hundred outcomes, from the laws; `drawn` and `tune()`
are lower limits at confidence 0.99 from draws of the sampler and of the real tuner. Full size: three minutes of
processor time.
"""

from __future__ import annotations

import argparse

from dpselect.accounting import best_of
from dpselect.audit import audit, exact_audit
from dpselect.audit.tuner import tuned_learner, worst_search
from dpselect.privacy import approximate_dp, dp_sgd, gaussian, laplace, pure_dp
from dpselect.randomness import keyed_source
from dpselect.repetitions import Geometric, Logarithmic, Poisson

DP_SGD = dp_sgd(noise_multiplier=1.0, sampling_rate=0.01, steps=1000)
GEOMETRIC, LOGARITHMIC = Geometric.with_mean(mean=10.0), Logarithmic.with_mean(mean=10.0)
ROWS = [
    ("Gaussian, noise 4", gaussian(noise_multiplier=4.0), GEOMETRIC, 1e-6),
    ("Gaussian, noise 1", gaussian(noise_multiplier=1.0), LOGARITHMIC, 1e-5),
    ("DP-SGD, noise 1, rate 0.01, 1,000 steps", DP_SGD, LOGARITHMIC, 1e-5),
    ("Laplace, scale 1", laplace(scale=1.0), GEOMETRIC, 1e-3),
    ("randomised response, 1", pure_dp(epsilon=1.0), LOGARITHMIC, 1e-6),
    ("Gaussian, noise 1", gaussian(noise_multiplier=1.0), Geometric.with_mean(mean=3.0), 0.05),
    ("Gaussian, noise 1", gaussian(noise_multiplier=1.0), Poisson(mean=3.0), 0.05),
    ("randomised response, 1", pure_dp(epsilon=1.0), Logarithmic.with_mean(mean=5.0), 0.05),
    ("Laplace, scale 1", laplace(scale=1.0), Geometric.with_mean(mean=3.0), 0.05),
]
DRAWN = 0.01
"""From this delta on draws can show something near the price."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1_000_000)
    parser.add_argument("--tune-draws", type=int, default=5000)
    arguments = parser.parse_args()
    print("| base | K | delta | one run | exact | drawn | `tune()` | optimal bound | published bound |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name, base, law, delta in ROWS:
        price = best_of(base, law)
        # the claim at this delta alone: an audit against all of the optimal curve takes a minute
        claim = approximate_dp(epsilon=price.epsilon(delta), delta=delta)
        search = worst_search(base, law, delta=delta, atoms=256, claim=claim)
        coarse = worst_search(base, law, delta=delta, atoms=32, claim=claim)
        measured = [exact_audit(search.exact(), delta=delta)]
        if delta >= DRAWN:
            for subject, draws in ((search.sampled(), arguments.draws), (coarse.tuned(), arguments.tune_draws)):
                measured.append(audit(subject, draws=draws, delta=delta, random=keyed_source(name)))
        assert not any(found.violated for found in measured)
        shown = [f"{found.epsilon_lower:.3f}" for found in measured]
        published = best_of(base, law, bound="published").epsilon(delta)
        cells = [
            name,
            f"{law.law_name}, mean {law.mean:g}",
            f"{delta:g}",
            f"{base.epsilon(delta):.3f}",
            *[*shown, "", ""][:3],
        ]
        print("|", " | ".join([*cells, f"{price.epsilon(delta):.3f}", f"{published:.3f}"]), "|", flush=True)
    learner = tuned_learner()
    found = audit(learner, draws=arguments.tune_draws, delta=0.05, random=keyed_source("learner"))
    assert not found.violated
    print(
        f"\nDPSGDClassifier (noise 1, one step) by tune(), geometric K with mean 3, delta 0.05, {found.draws:,} draws: "
        f"measured {found.epsilon_lower:.3f} of {found.claimed_epsilon:.3f}"
    )


if __name__ == "__main__":
    main()
