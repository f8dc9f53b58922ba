"""Widths of the intervals of figures at 1,000 held-out rows, as multiples of exact ones without noise.

python -m tests.study.metrics.widths prints the table of docs/reference/metrics.md.
"""

import numpy as np
from scipy.stats import beta, binom

from dpselect.randomness import keyed_source
from dpselect.study.metrics import METRICS, ScoreNoise
from dpselect.study.target import Target
from tests.study.metrics.metrics_cases import ADD

ROWS, TABLES = 1000, 40
NOISE = ScoreNoise(None, ADD, 1.43)


class Given:
    """Answers what it is given."""

    def predict(self, X):
        return X


def exact_share(good):
    """The width of the exact interval of a share."""
    return beta.ppf(0.975, good + 1, ROWS - good) - beta.ppf(0.025, good, ROWS - good + 1)


def exact_quantile(numbers, quantile):
    """The width of the interval between two order statistics."""
    first, last = binom.ppf([0.025, 0.975], ROWS, quantile).astype(int)
    ordered = np.sort(numbers)
    return ordered[last] - ordered[first]


def of_classes(classes, right, random):
    """Widths of accuracy and of balanced accuracy, for classes of equally many rows."""
    metric, widths = METRICS["accuracy"](Target(tuple(range(classes)))), []
    for k in range(TABLES):
        y = random.integers(0, classes, ROWS)
        answers = np.where(random.random(ROWS) < right, y, (y + 1) % classes)
        cells = metric.noisy(metric.cells(Given(), answers, y), NOISE, keyed_source(k))
        found = metric.figures(cells, noise=NOISE, failure=0.05)
        widths.append([(one.estimate.high - one.estimate.low) / exact_share(np.sum(answers == y)) for one in found])
    return np.median(widths, axis=0)


def of_errors(draw, random):
    """Widths of the median error, of the 90 % error and of the mean absolute error."""
    target, widths = Target(bounds=(0.0, 1.0)), []
    metric, mean = METRICS["median-error"](target), METRICS["absolute-error"](target)
    for k in range(TABLES):
        labels, errors = np.full(ROWS, 0.4), np.minimum(draw(ROWS), 0.6)
        noisy = metric.noisy(metric.cells(Given(), labels + errors, labels), NOISE, keyed_source(k))
        found = zip(metric.figures(noisy, noise=NOISE, failure=0.05), (0.5, 0.9), strict=True)
        both = [(one.estimate.high - one.estimate.low) / exact_quantile(errors, q) for one, q in found]
        noisy = mean.noisy(mean.cells(Given(), labels + errors, labels), NOISE, keyed_source(k))
        one = mean.estimate(noisy, noise=NOISE, failure=0.05)
        widths.append([*both, (one.high - one.low) / (2.0 * 1.96 * np.std(errors) / np.sqrt(ROWS))])
    return np.median(widths, axis=0)


if __name__ == "__main__":
    source = np.random.default_rng(1)
    for count, share in ((2, 0.9), (2, 0.75), (4, 0.8), (10, 0.9), (10, 0.6)):
        print(
            f"{count} classes, {share} right: accuracy, balanced accuracy {of_classes(count, share, source).round(2)}"
        )
    laws = {
        "normal": lambda rows: np.abs(source.normal(0.0, 0.05, rows)),
        "heavy": lambda rows: 0.02 * np.abs(source.standard_t(2, rows)),
    }
    for name, law in laws.items():
        print(f"{name} errors: median, 90 %, mean {of_errors(law, source).round(2)}")
