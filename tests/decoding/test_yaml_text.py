"""YAML: texts, maps and lists under limits, and nothing that a document can make of itself."""

import sys

import pytest

pytest.importorskip("yaml")

from dpselect.decoding.limits import STUDY, DecodingLimits, LimitError
from dpselect.decoding.yaml_text import yaml_of
from dpselect.errors import ContentError, MissingExtraError
from tests.decoding.limits_cases import cost

MIB = 1 << 20
HOSTILE = {
    "lists": lambda n: b"[" * (n // 2) + b"]" * (n // 2),
    "maps": lambda n: b"{a: " * (n // 5) + b"}" * (n // 5),
    "indents": lambda n: b"".join(b" " * i + b"a:\n" for i in range(int(n**0.5))),
    "dashes": lambda n: b"- " * (n // 2) + b"a",
    "keys": lambda n: b"".join(b"k%x: 1\n" % i for i in range(n // 9)),
    "questions": lambda n: b"? " * (n // 2),
    "quotes": lambda n: b'"' * n,
    "a text": lambda n: b"a" * n,
    "comment": lambda n: b"#" * n,
    "anchors": lambda n: b"".join(b"- &a%d [*a%d, *a%d]\n" % (i + 1, i, i) for i in range(n // 30)),
    "open brackets": lambda n: b"[a, " * (n // 4),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_it_takes_little_memory_and_time(kind):
    document = HOSTILE[kind](60_000)
    seconds, peak = cost(lambda: yaml_of(document, "it"), len(document))
    assert seconds < 1.0
    assert peak <= 7 * len(document) + 64 * MIB


def test_scalars_stay_texts():
    found = yaml_of(b"a: 1.0\nb: '2'\nc: true\nd: 1e-5\ne: !!python/name:os.system x\nf: ~\ng: 'null'\nh:\n", "it")
    assert found == {"a": "1.0", "b": "2", "c": "true", "d": "1e-5", "e": "x", "f": None, "g": "null", "h": None}


def test_an_alias_is_not_followed():
    assert yaml_of(b"a: &x {b: 1}\nc: *x\n", "it") == {"a": {"b": "1"}, "c": "*x"}


def test_an_empty_document():
    assert yaml_of(b"", "it") is None


@pytest.mark.parametrize(
    "content",
    [
        b"a: 1\na: 2\n",
        b"? [1]\n: 2\n",
        b"a: 1\n---\nb: 2\n",
        b"a: b: c\n",
        b"\xff",
        b"a: [",
        b"~: 1\n",
    ],
)
def test_what_is_refused(content):
    with pytest.raises(ContentError, match="it "):
        yaml_of(content, "it")


@pytest.mark.parametrize(
    ("limits", "content", "message"),
    [
        ({"size": 3}, b"a: 1", "larger than 3 bytes"),
        ({"depth": 2}, b"a: {b: {c: 1}}", "nested more than 2"),
        ({"entries": 3}, b"a: 1\nb: 2\n", "more than 3 entries"),
        ({"entries": 3}, b"[[[[]]]]", "more than 3 entries"),
    ],
)
def test_limits_are_exact(limits, content, message):
    narrow = DecodingLimits(**{"size": 100, "depth": 9, "entries": 99, **limits})
    with pytest.raises(LimitError, match=message):
        yaml_of(content, "it", limits=narrow)
    wider = DecodingLimits(**{"size": 100, "depth": 9, "entries": 99, **{name: n + 2 for name, n in limits.items()}})
    yaml_of(content, "it", limits=wider)


def test_without_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(MissingExtraError, match=r"dpselect\[sweeps\]"):
        yaml_of(b"a: 1", "it", limits=STUDY)
