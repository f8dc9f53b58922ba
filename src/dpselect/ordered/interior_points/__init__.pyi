from .quasi_concave import (
    RisingAndFalling as RisingAndFalling,
    ScoreRuns as ScoreRuns,
    maximize_quasi_concave as maximize_quasi_concave,
    quasi_concave_hull as quasi_concave_hull,
)
