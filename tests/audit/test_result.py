"""What an audit found, described in JSON."""

import pytest

from dpselect.audit import audit
from dpselect.randomness import keyed_source
from tests.audit.black_box_cases import NULLS


def test_describe_is_json():
    import json

    found = audit(NULLS["gaussian"], draws=400, random=keyed_source(3))
    described = json.loads(json.dumps(found.describe()))
    assert described["method"] == "black-box"
    assert described["note"] == "An audit finds faults; it never proves privacy."
    assert described["delta"] == 1e-5
    assert described["claimed_epsilon"] == pytest.approx(4.377178, abs=1e-5)
