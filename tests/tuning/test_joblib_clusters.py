"""Clusters of joblib: options and resources that are refused."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.tuning import JoblibExecutor


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"workers": 1}, "workers"),
        ({"backend": "ray", "workers": 0}, "workers"),
        ({"backend": "threading"}, "backend"),
        ({"address": "tcp://x"}, "address"),
        ({"resources": {"GPU": 1}}, "resources"),
        ({"backend": "dask", "resources": {"GPU": -1}}, "resources"),
    ],
)
def test_bad_executors(options, name):
    with pytest.raises(ArgumentError, match=name):
        JoblibExecutor(**options)
