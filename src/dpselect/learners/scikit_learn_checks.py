"""The scikit-learn conventions that a private estimator must break, each with the reason."""

from __future__ import annotations

__all__ = ["EXPECTED_FAILED_CHECKS", "EXPECTED_FAILED_REGRESSOR_CHECKS"]

_FRESH_NOISE = "every fit draws fresh noise, so two fits on the same data differ; a repeated draw would leak"

EXPECTED_FAILED_CHECKS = {
    "check_classifier_data_not_an_array": _FRESH_NOISE,
    "check_dtype_object": (
        "a cell that is not a number counts as zero: an error would reveal that some row holds such a cell"
    ),
    "check_fit_idempotent": _FRESH_NOISE,
    "check_supervised_y_2d": _FRESH_NOISE,
}
"""For `sklearn.utils.estimator_checks.check_estimator(..., expected_failed_checks=EXPECTED_FAILED_CHECKS)`.

Missing and infinite cells are announced by the tag `allow_nan`, so scikit-learn does not ask for an error on them.
"""

EXPECTED_FAILED_REGRESSOR_CHECKS = {
    "check_dtype_object": EXPECTED_FAILED_CHECKS["check_dtype_object"],
    "check_estimators_empty_data_messages": "no rows are a table like another: whether there is one is private",
    "check_fit_idempotent": _FRESH_NOISE,
    "check_regressor_data_not_an_array": _FRESH_NOISE,
    "check_regressors_int": _FRESH_NOISE,
    "check_supervised_y_2d": _FRESH_NOISE,
    "check_supervised_y_no_nan": "a label that is not a number leaves its row out: an error would reveal it",
}
"""The same for regressors."""
