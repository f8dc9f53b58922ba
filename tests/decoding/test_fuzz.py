"""Each decoder on ten minutes of changed documents (slow), and for a moment in the default tier.

DPSELECT_FUZZ_SECONDS=60 pytest -m slow tests/decoding/test_fuzz.py -k toml -s
"""

from __future__ import annotations

import time

import pytest

from tests.decoding.decoder_fuzz import SECONDS, fuzz
from tests.decoding.fuzzed_decoders import DECODERS


@pytest.mark.parametrize("name", DECODERS)
def test_some_changed_documents(name):
    result = fuzz(DECODERS[name], 1, cases=150)
    assert not result.found, result.found
    assert any(answer.startswith("read") for answer in result.answers)
    assert len(result.answers) > 2


@pytest.mark.slow
@pytest.mark.parametrize("name", DECODERS)
def test_ten_minutes_of_changed_documents(name):
    result = fuzz(DECODERS[name], time.time_ns(), seconds=SECONDS)
    print(f"{name}: {result}")
    assert not result.found, result.found
