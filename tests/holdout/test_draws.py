"""Noise is a function of the sealed key and of the question."""

from __future__ import annotations

from dpselect.holdout.draws import Draws


def test_noise_is_a_function_of_the_sealed_key_and_of_the_question():
    def words(**changes):
        draws = Draws(**{"key": bytes(32), "predictions": "p", "question": "q", "run": 0, **changes})
        return [source.bits(64) for source in (draws.cut(), draws.answer(), draws.threshold(), draws.check())]

    same = words()
    assert same == words()
    assert len(set(same)) == 4
    # which of cut, answer, threshold and check stay as they were
    kept = {
        "key": [False] * 4,
        "predictions": [True, False, True, True],
        "question": [True, True, True, False],
        "run": [True, True, False, False],
    }
    for name, value in {"key": bytes(31) + b"1", "predictions": "x", "question": "x", "run": 1}.items():
        assert [a == b for a, b in zip(same, words(**{name: value}), strict=True)] == kept[name]
