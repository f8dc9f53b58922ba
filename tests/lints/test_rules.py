"""The rules of `lints/`: what each finds, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys

import pytest
from lints.rule import Rule, findings, rules
from lints.rules import class_names, docstrings, public_apis, repetition_laws, rings, words
from lints.source import Source

from tests.root import ROOT

RULES = {rule.name: rule for rule in rules()}

CASES = {
    "payments": [
        ("spender.reserve(price, label='x', identifier='i')", 1),
        ("self._budget.reserve(price).settle(output)", 2),
        ("search.settle()", 0),
        ("paid(run, price, spender=spender, label='x')", 0),
        ("def reserve(self): ...", 0),
    ],
    "searches": [
        ("while high - low > 1: middle = (low + high) // 2", 1),
        ("for _ in range(60): middle = 0.5 * (low + high)", 1),
        ("for _ in range(60): middle = (low + high + 1) / 2.0", 1),
        ("while high - low > 1: middle = low + (high - low) // 2", 1),
        ("while high - low > 1: middle = (low + high) >> 1", 1),
        ("while high > low: middle = math.sqrt(low * high)", 1),
        ("while not good(high): high *= 2", 1),
        ("while not good(high): low, high = high, 2 * high", 1),
        ("while not good(step): step = step / 2.0", 1),
        ("while not good(high): high <<= 1", 1),
        ("for _ in range(9): middle = np.floor((low + high) / 2)", 1),
        ("middle = (low + high) / 2", 0),
        ("for x in rows: total += 0.5 * x", 0),
        ("for x in rows: width = 2 * x", 0),
        ("while True: found = first_true(holds, 0, 9)", 0),
    ],
    "time-units": [
        ('values.astype("datetime64[ns]")', 1),
        ('values.astype(f"datetime64[{unit}]")', 1),
        ('values.astype("<M8[us]")', 1),
        ('cells / np.timedelta64(1, "s")', 1),
        ("np.datetime64(bound, unit)", 1),
        ("np.datetime64(text)", 1),
        ("values.astype(np.datetime64)", 1),
        ('np.dtype("datetime64[us]")', 1),
        ("np.array(rows, dtype=np.timedelta64)", 1),
        ("isinstance(cell, np.datetime64)", 0),
        ("dtype.kind == 'M'", 0),
        ("ticks_in(values, unit)", 0),
    ],
    "amounts": [
        ('f"costs {epsilon:.4f}"', 1),
        ('f"{guarantee.epsilon(delta):g}"', 1),
        ('f"{self.delta:.3g}"', 1),
        ("f\"{row['epsilon']:.6g}\"", 1),
        ("round(noise, 3)", 1),
        ('format(price, ".3g")', 1),
        ('"%.3f" % epsilon', 1),
        ('print("costs {epsilon:.4f}".format(epsilon=1.0))', 1),
        ('f"{delta:g}"', 0),
        ('f"{seconds:.1f}"', 0),
        ('f"{rounded_up(epsilon)}"', 0),
    ],
    "decodes": [
        ("json.loads(x)", 1),
        ("np.load(path, allow_pickle=False)", 1),
        ("Fraction(text)", 1),
        ('Decimal("x" if "_" in text else text)', 1),
        ("Fraction(body['epsilon'])", 1),
        ("Fraction(1, 3)", 0),
        ("Fraction(self.margin)", 0),
        ("json.dumps(x)", 0),
        ("json_of(x, DOCUMENT, 'it')", 0),
    ],
    "writes": [
        ("print(1)", 1),
        ("typer.echo('a', err=True)", 1),
        ("sys.stderr.write('a')", 1),
        ("stream.write('a')", 1),
        ("Console().print(1)", 1),
        ("file.write('a')", 0),
        ("say('a')", 0),
    ],
    "rounding": [
        ("epsilon = number('epsilon', epsilon)", 1),
        ("class A:\n    delta: float = real()", 1),
        ("epsilon = number('epsilon', epsilon, rounding=UP)", 0),
        ("rows = number('rows', rows)", 0),
    ],
    "copies": [
        ("class A:\n    def __reduce__(self): ...", 1),
        ("class A:\n    def __deepcopy__(self, memo): ...", 1),
        ("os.getpid()", 1),
        ("this_process() is process", 1),
        ("class A:\n    def __repr__(self): ...", 0),
    ],
    "mirrors": [("x = 1", 1), ("", 0)],
}
PLACES = {"writes": "cli/made.py", "rounding": "privacy/made.py"}


def broken(rule: Rule, code: str) -> list[tuple[int, str]]:
    return list(rule.broken(Source(PLACES.get(rule.name, "study/made.py"), code)))


def test_each_rule_of_one_file_has_cases():
    assert {name for name, rule in RULES.items() if isinstance(rule, Rule)} == CASES.keys()


@pytest.mark.parametrize(("name", "code", "count"), [(name, *case) for name, cases in CASES.items() for case in cases])
def test_what_a_rule_finds(name, code, count):
    found = broken(RULES[name], code)
    assert found == [(line, RULES[name].instead) for line, _ in found]
    assert len(found) == count


@pytest.mark.parametrize(("name", "code"), [(name, cases[0][0]) for name, cases in CASES.items()])
@pytest.mark.parametrize("form", ["{}  # {}: a reason", "# {1}: a reason\n{0}"])
def test_a_reason_excepts_a_line(name, code, form):
    if "class A" in code:
        code = code.replace("class A:\n    ", "")
    assert broken(RULES[name], code)
    assert not broken(RULES[name], form.format(code, name))
    assert broken(RULES[name], form.format(code, name).replace("a reason", ""))


def test_a_module_whose_test_has_its_name_is_left_alone():
    assert list(RULES["mirrors"].broken(Source("study/split.py", "x = 1"))) == []


def test_a_reason_at_the_head_excepts_a_function():
    code = "def f():  # copies: a reason\n    x = 1\n    y = 2\n    return os.getpid()"
    assert not broken(RULES["copies"], code)
    assert broken(RULES["copies"], code + "\n\nos.getpid()")


def test_an_exception_that_nothing_needs_is_found():
    assert broken(RULES["copies"], "x = 1  # copies: a reason") == [(1, "the exception is not needed")]


def test_classes_of_one_name_are_found():
    one = Source("study/one.py", "class A:\n    def f(self):\n        class B: ...")
    two = Source("study/two.py", "class B: ...")
    assert [(path, line) for path, line, _ in class_names.repeated([one, two])] == [("src/dpselect/study/one.py", 3)]
    assert not list(class_names.repeated([one]))
    assert not list(class_names.repeated([one, Source("study/two.py", "class B: ...  # class-names: why")]))
    assert list(class_names.repeated([Source("study/two.py", "class B: ...  # class-names: why")]))


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("isinstance(law, Poisson | Geometric)", 1),
        ("@shift.register(Poisson)\ndef f(law): ...", 1),
        ("match law:\n    case Poisson(): ...", 1),
        ("law = Poisson(mean=10)", 0),
        ("law.pure_shift(epsilon)", 0),
    ],
)
def test_laws_that_are_told_apart_are_found(code, count):
    law = Source("repetitions/poisson.py", "@repetition_law('poisson')\nclass Poisson(Law): ...")
    assert len(list(repetition_laws.by_type([law, Source("study/made.py", code)]))) == count
    assert not list(repetition_laws.by_type([law, Source("repetitions/made.py", code)]))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from dpselect.tuning.machine import Search", ("dpselect.tuning.machine", "Search", None)),
        ("def f():\n    import dpselect.tuning.machine", ("dpselect.tuning.machine", "", None)),
        ("from dpselect.tuning import machine", ("dpselect.tuning.machine", "", None)),
        ("from dpselect.tuning.tuner import tune", ("dpselect.tuning.tuner", "tune", "dpselect.tuning")),
        ("from dpselect.tuning import tune", None),
        ("from dpselect.ledger.store import Store", None),
        ("from dpselect.errors import ArgumentError", None),
        ("import numpy.random", None),
    ],
)
def test_an_import_past_a_public_api_is_found(code, found):
    modules = {"tuning/machine.py", "tuning/tuner.py", "tuning/__init__.py", "ledger/store.py", "errors.py"}
    inner = public_apis.inner_imports(Source("ledger/made.py", code), modules)
    assert [rest for _, *rest in inner] == ([list(found)] if found else [])


def test_shared_modules_are_read_from_the_architecture():
    assert "dpselect.numerics.moments" in public_apis.shared()
    assert len(public_apis.shared()) > 30


def test_a_ring_is_found():
    assert list(rings.rings({"a": {"b": 1}, "b": {"c": 1}, "c": {"a": 1}, "d": {"a": 1}})) == [["a", "b", "c"]]
    assert not list(rings.rings({"a": {"b": 1, "c": 1}, "b": {"c": 1}, "c": {}}))
    here = Source("study/a.py", "def f():\n    from dpselect.study import b")
    there = Source("study/b.py", "from dpselect.study.a import f")
    assert [(path, line) for path, line, _ in rings.in_rings([here, there])] == [("src/dpselect/study/a.py", 2)]


@pytest.mark.parametrize(
    ("text", "measures"),
    [
        ("Whoever reads this pays.", ["word", "clause"]),
        ("What it costs is printed.", ["clause"]),
        ("What does it cost?", []),
        ("One; two.", ["semicolon"]),
        ("`a; b` of which is code.", ["word"]),
        ("word " * 31 + ".", ["long"]),
        ("Return the price.", []),
    ],
)
def test_words_to_leave_are_found(text, measures):
    for code in (f'"""{text}"""', f'raise ValueError("{text}")', f'warnings.warn("{text}")'):
        assert [measure for _, measure, _ in words.places(Source("study/made.py", code))] == measures
    assert not list(words.places(Source("study/made.py", f'x = "{text}"')))


def test_a_measure_that_grows_is_named(monkeypatch):
    source = Source("study/made.py", '"""One; two."""')
    monkeypatch.setattr(words, "MOST", {"semicolon": 1})
    assert not list(words.grown([source]))
    monkeypatch.setattr(words, "MOST", {"semicolon": 0})
    assert len(list(words.grown([source]))) == 1


@pytest.mark.parametrize(
    ("code", "sections"),
    [
        ('def f(x): """Return x."""', ["Args"]),
        ('def f(x): """Price of x."""', ["Returns", "Args"]),
        ('def f(x): """Return x.\n\nArgs:\n    x: what.\n"""', []),
        ('def f(): """Price.\n\nReturns:\n    it.\n"""', []),
        ('class A:\n    """A."""\n    x: int', ["Args"]),
        ('class A:\n    """A."""\n    _x: int', []),
        ('class A:\n    """A.\n\n    Args:\n        x: what."""\n    x: int', []),
        ('class A:\n    """A."""\n    def __init__(self, x): """Args:\n x: what."""', []),
        ('class A:\n    """A."""\n    def __init__(self, x): ...', ["Args"]),
    ],
)
def test_sections_that_a_docstring_lacks_are_found(code, sections):
    node = Source("study/made.py", code).tree.body[0]
    assert list(docstrings.lacking(node)) == sections


def test_public_names_that_lack_sections_are_counted(monkeypatch):
    monkeypatch.setattr(docstrings, "public", lambda: {"dpselect.study": {"f": "made"}})
    source = Source("study/made.py", "def f(x): ...")
    assert [found[2:] for found in docstrings.missing([source])] == [("Returns", "f"), ("Args", "f")]
    monkeypatch.setattr(docstrings, "MOST", {"Args": 0, "Returns": 1})
    assert [message for _, _, message in docstrings.grown([source])] == ["1 public names lack Args:, at most 0"]


def test_findings_say_where(tmp_path):
    bad = Source("study/made.py", "x = 1\nos.getpid()")
    assert list(findings([bad], [RULES["copies"]])) == [
        ("src/dpselect/study/made.py", 2, "copies", RULES["copies"].instead)
    ]


@pytest.mark.full
def test_the_program_ends_with_a_status():
    ran = subprocess.run(
        [sys.executable, "-m", "lints", "copies"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, "")
    wrong = subprocess.run(
        [sys.executable, "-m", "lints", "nothing"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert wrong.returncode == 2
