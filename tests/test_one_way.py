"""Chores that are done in one place: the syntax tree of every file of the library is searched for a second one."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).parent.parent / "src" / "dpselect"
TREES = {str(path.relative_to(SOURCE)): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}

PAYS = {
    "privacy/paying.py": "the one place",
    "ledger/budget.py": "the ledger: a budget with a delta hands on to the budget",
    "integrations/sklearn/spending.py": "a spender: hands on to another one",
    "testing/ledger_contract.py": "the contract of ledgers",
    "tuning/tuner.py": "steps of the state machine (`search`), and the `payment` of a search, a `BoundPayment`",
}
"""Files that may call `reserve` or `settle` on something, and why."""


def payments_by_hand(tree: ast.AST) -> Iterator[Any]:
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and called.attr in ("reserve", "settle"):
            yield node


@pytest.mark.cases(372)
@pytest.mark.parametrize("name", TREES)
def test_prices_are_reserved_and_settled_in_one_place(name):
    found = list(payments_by_hand(TREES[name]))
    if name == "tuning/tuner.py":
        found = [call for call in found if ast.unparse(call.func.value) not in ("search", "payment")]
        assert not found
    elif name in PAYS:
        assert found, f"{name} pays no more: take it off the list"
    else:
        lines = [call.lineno for call in found]
        assert not lines, f"{name}, lines {lines}: use `paid` or `Payment` of dpselect.privacy"


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("spender.reserve(price, label='x', identifier='i')", 1),
        ("self._budget.reserve(price).settle(output)", 2),
        ("paid(run, price, spender=spender, label='x')", 0),
        ("def reserve(self): ...", 0),
    ],
)
def test_a_payment_by_hand_is_found(code, count):
    assert len(list(payments_by_hand(ast.parse(code)))) == count


TWO_MEANINGS = {
    "Column": "values under public bounds (`ordered`), and the columns that the published schema of a study names so",
    "Uniform": "users write both: the law of the number of runs (`repetitions`) and that of a parameter (`tuning`)",
}
"""Names of classes that are defined twice, and why."""


def classes(tree: ast.AST) -> list[str]:
    return [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]


@pytest.mark.full
def test_the_name_of_a_class_means_one_thing():
    places: dict[str, list[str]] = {}
    for name, tree in TREES.items():
        for defined in classes(tree):
            places.setdefault(defined, []).append(name)
    twice = {defined: files for defined, files in places.items() if len(files) > 1}
    assert {defined: files for defined, files in twice.items() if defined not in TWO_MEANINGS} == {}
    assert TWO_MEANINGS.keys() <= twice.keys(), "defined once now: take it off the list"


def test_a_class_within_a_function_counts():
    assert classes(ast.parse("class A:\n    def f(self):\n        class B: ...")) == ["A", "B"]


SEARCHES = {
    "numerics/search.py": "the one place",
    "accounting/optimal/cuts.py": "a root by Newton's steps; each evaluation is a search of its own",
    "accounting/optimal/direction.py": "a root by secant steps; each evaluation is dear",
    "accounting/optimal/peaks.py": "as many whole-number searches as there are columns, at once",
    "accounting/planning/calibrate.py": "a root by secant steps; each price is dear",
    "adaptive/medians.py": "a noisy binary search: the walk is the mechanism",
    "adaptive/multiplicative_weights.py": "a noisy binary search: the walk is the mechanism",
    "audit/limits.py": "moves limits outward by steps that grow, whole arrays at once",
    "mechanisms/noisy_ranking.py": "more bits of lazy numbers until their order is known",
    "ordered/interior_points/tree_log_tuning.py": "a pattern search over several shares",
    "ordered/labelled_rows/rectangle_plan.py": "a root by secant steps; each price is dear",
    "ordered/order_statistics/intervals.py": "wider windows of rows, more bits of lazy numbers: part of the draw",
    "ordered/order_statistics/joint.py": "wider windows of rows: part of the draw",
    "ordered/order_statistics/recursive.py": "the tree of cuts; nothing is searched",
    "ordered/sources/columns.py": "a coarser sample, and wider windows, while a file is read",
    "privacy/losses/composition.py": "a scale to a factor of two; powers by repeated squaring",
    "repetitions/panels.py": "panels of an integral, halved until its error is small",
    "tuning/joblib_executor.py": "halves of the runs that may have ended a worker",
}
"""Files that halve or double under a loop, each an algorithm of its own, and why."""


def halvings(tree: ast.AST) -> Iterator[ast.AST]:
    """Middles of two numbers, and variables that are multiplied by a constant, under a loop."""
    for loop in (node for node in ast.walk(tree) if isinstance(node, ast.For | ast.While)):
        for node in (inner for part in loop.body for inner in ast.walk(part)):
            if _middle(node) or _rescaled(node):
                yield node


def _middle(node: ast.AST) -> bool:
    """(a + b) / 2, 0.5 * (a + b), (a + b) >> 1, a + (b - a) / 2, the root of a product, mean of two; `x // 2` too."""
    match node:
        case ast.BinOp(left=ast.BinOp(op=ast.Add()), op=ast.Div(), right=ast.Constant(value=2)):
            return True
        case ast.BinOp(left=ast.Constant(value=0.5), op=ast.Mult(), right=ast.BinOp(op=ast.Add())):
            return True
        case ast.BinOp(left=ast.BinOp(op=ast.Add()), op=ast.Mult(), right=ast.Constant(value=0.5)):
            return True
        case ast.BinOp(op=ast.FloorDiv(), right=ast.Constant(value=2), left=ast.BinOp(op=ast.Add()) | ast.Call()):
            return True
        case ast.BinOp(op=ast.RShift(), right=ast.Constant(value=1), left=ast.BinOp(op=ast.Add())):
            return True
        case ast.BinOp(op=ast.Add(), right=ast.BinOp(left=one, right=other)):
            return any(isinstance(x, ast.BinOp) and isinstance(x.op, ast.Sub) for x in (one, other)) and any(
                isinstance(x, ast.Constant) and x.value in (2, 0.5, 1) for x in (one, other)
            )
        case ast.Call(
            func=ast.Name(id="sqrt") | ast.Attribute(attr="sqrt"), args=[ast.BinOp(op=ast.Mult()) as product]
        ):
            return isinstance(product.left, ast.Name) and isinstance(product.right, ast.Name)
        case ast.BinOp(left=ast.Call() as one, op=ast.Mult(), right=ast.Call() as other):
            return ast.unparse(one.func).endswith("sqrt") and ast.unparse(other.func).endswith("sqrt")
    return False


def _rescaled(node: ast.AST) -> bool:
    """x *= 2, x /= 2, x = 2 * x, low, high = high, 2 * high, and the same with other whole factors or a half."""
    match node:
        case ast.AugAssign(op=ast.Mult() | ast.Div() | ast.FloorDiv(), value=ast.Constant(value=factor)):
            return factor in (0.5, 2, 4, 8, 10, 16)
        case ast.AugAssign(op=ast.LShift() | ast.RShift(), value=ast.Constant(value=1)):
            return True
        case ast.Assign(targets=[target], value=value):
            values = value.elts if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) else [value]
            names = {x.id for x in ast.walk(target) if isinstance(x, ast.Name)}
            return any(_multiple(x, names) for x in values)
    return False


def _multiple(value: ast.AST, names: set[str]) -> bool:
    """A constant times one of the names that are assigned, or that over a constant."""
    match value:
        case ast.BinOp(left=ast.Constant(value=2), op=ast.Mult(), right=ast.Name(id=name)):
            return name in names
        case ast.BinOp(left=ast.Name(id=name), op=ast.Mult() | ast.Div() | ast.FloorDiv(), right=ast.Constant(value=2)):
            return name in names
    return False


@pytest.mark.cases(290)
@pytest.mark.parametrize("name", TREES)
def test_roots_and_first_true_places_are_searched_in_one_place(name):
    lines = sorted({node.lineno for node in halvings(TREES[name])})
    if name in SEARCHES:
        assert lines, f"{name} halves no more: take it off the list"
    else:
        assert not lines, (
            f"{name}, lines {lines}: use `first_true`, `root_between` or `supremum_over_cells` of numerics"
        )


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("while high - low > 1: middle = (low + high) // 2", True),
        ("for _ in range(60): middle = 0.5 * (low + high)", True),
        ("for _ in range(60): middle = (low + high + 1) / 2.0", True),
        ("while high - low > 1: middle = low + (high - low) // 2", True),
        ("while high - low > 1: middle = (low + high) >> 1", True),
        ("while high > low: middle = math.sqrt(low * high)", True),
        ("while not good(high): high *= 2", True),
        ("while not good(high): low, high = high, 2 * high", True),
        ("while not good(step): step = step / 2.0", True),
        ("while not good(high): high <<= 1", True),
        ("for _ in range(9): middle = np.floor((low + high) / 2)", True),
        ("middle = (low + high) / 2", False),
        ("for x in rows: total += 0.5 * x", False),
        ("for x in rows: width = 2 * x", False),
        ("while True: found = first_true(holds, 0, 9)", False),
    ],
)
def test_a_search_by_hand_is_found(body, found):
    assert bool(list(halvings(ast.parse(body)))) is found


AMOUNT = re.compile(r"epsilon|delta|noise|price|spent|left\b|remaining|\brho\b|sigma")
MOMENTS = "numerics/moments.py"


def conversions_of_moments(tree: ast.AST) -> Iterator[ast.AST]:
    """NumPy's types of time stamps and durations, called or named in a text: its conversions wrap around."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr="datetime64" | "timedelta64" | "datetime_as_string")):
                yield node
            case ast.Call(func=ast.Name(id="datetime64" | "timedelta64")):
                yield node
            case ast.Call(func=ast.Attribute(attr="astype" | "dtype" | "asarray" | "array")):
                named = [part for part in ast.walk(node) if isinstance(part, ast.Attribute | ast.Name)]
                if any(ast.unparse(part).endswith(("datetime64", "timedelta64")) for part in named):
                    yield node
            case ast.Constant(value=str() as text) if re.search(r"^[<>=]?(datetime64|timedelta64|[mM]8)(\[|$)", text):
                yield node


@pytest.mark.cases(372)
@pytest.mark.parametrize("name", TREES)
def test_units_of_time_are_converted_in_one_place(name):
    lines = sorted({node.lineno for node in conversions_of_moments(TREES[name])})
    if name == MOMENTS:
        assert lines
    else:
        assert not lines, f"{name}, lines {lines}: use dpselect.{MOMENTS[:-3].replace('/', '.')}"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('values.astype("datetime64[ns]")', True),
        ('values.astype(f"datetime64[{unit}]")', True),
        ('values.astype("<M8[us]")', True),
        ('cells / np.timedelta64(1, "s")', True),
        ("np.datetime64(bound, unit)", True),
        ("np.datetime64(text)", True),
        ("values.astype(np.datetime64)", True),
        ('np.dtype("datetime64[us]")', True),
        ("np.array(rows, dtype=np.timedelta64)", True),
        ("isinstance(cell, np.datetime64)", False),
        ("dtype.kind == 'M'", False),
        ("ticks_in(values, unit)", False),
    ],
)
def test_a_conversion_of_moments_is_found(code, found):
    assert bool(list(conversions_of_moments(ast.parse(code)))) is found


FORMATS = {
    "numerics/digits.py": "the one place",
    "audit/result.py": "what an audit shows at an epsilon that it chose: a finding, and neither spent nor left",
}
"""Files that may format amounts by themselves, and why."""


def formatted_amounts(tree: ast.AST) -> Iterator[ast.AST]:
    """Amounts with a format of floats. A bare `:g` may repeat a number that has a name, as its caller stated it."""
    for node in ast.walk(tree):
        match node:
            case ast.FormattedValue(value=value, format_spec=ast.JoinedStr() as spec):
                text = ast.unparse(spec)[1:].strip("'\"")
                plain = text == "g" and isinstance(value, ast.Name | ast.Attribute)
                if re.search(r"[.]|[eEfFgG%]$", text) and not plain and AMOUNT.search(ast.unparse(value)):
                    yield node
            case ast.Call(func=ast.Name(id="round" | "format"), args=[value, *_]) if AMOUNT.search(ast.unparse(value)):
                yield node
            case ast.BinOp(left=ast.Constant(value=str() as text), op=ast.Mod(), right=value):
                if re.search(r"%[-+ 0-9.]*[eEfFgG]", text) and AMOUNT.search(ast.unparse(value)):
                    yield node
            case ast.Constant(value=str() as text) if re.search(r"\{\w*(epsilon|delta)\w*:[^}]*[eEfFgG]\}", text):
                yield node


@pytest.mark.cases(140)
@pytest.mark.parametrize("name", list(TREES))
def test_amounts_are_printed_in_one_place(name):
    docstrings = {
        body[0].value
        for node in ast.walk(TREES[name])
        if isinstance(body := getattr(node, "body", None), list) and body and isinstance(body[0], ast.Expr)
    }
    lines = sorted({node.lineno for node in formatted_amounts(TREES[name]) if node not in docstrings})
    if name in FORMATS:
        assert lines or name == "numerics/digits.py", f"{name} formats no amounts any more: take it off the list"
    else:
        assert not lines, f"{name}, lines {lines}: use `rounded_up`, `rounded_down` or `rounded` of numerics.digits"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('f"costs {epsilon:.4f}"', True),
        ('f"{guarantee.epsilon(delta):g}"', True),
        ('f"{self.delta:.3g}"', True),
        ("f\"{row['epsilon']:.6g}\"", True),
        ("round(noise, 3)", True),
        ('format(price, ".3g")', True),
        ('"%.3f" % epsilon', True),
        ('"costs {epsilon:.4f}".format(epsilon=1.0)', True),
        ('f"{delta:g}"', False),
        ('f"{seconds:.1f}"', False),
        ('f"{rounded_up(epsilon)}"', False),
    ],
)
def test_a_format_of_an_amount_is_found(code, found):
    assert bool(list(formatted_amounts(ast.parse(code)))) is found


def laws_of_k() -> set[str]:
    return {
        node.name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and any("repetition_law" in ast.unparse(by) for by in node.decorator_list)
    }


def laws_told_apart(tree: ast.AST, laws: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        named = []
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("isinstance", "register"):
            named = [inner.id for part in node.args for inner in ast.walk(part) if isinstance(inner, ast.Name)]
        elif isinstance(node, ast.MatchClass):
            named = [ast.unparse(node.cls)]
        yield from (one for one in named if one in laws)


@pytest.mark.full
def test_a_law_is_asked_for_its_closed_forms():
    laws = laws_of_k()
    assert {"Poisson", "Conditioned", "Harmonic"} <= laws
    found = {name for name, tree in TREES.items() if any(laws_told_apart(tree, laws))}
    assert not {name for name in found if not name.startswith("repetitions/")}


@pytest.mark.full
def test_the_base_of_all_laws_knows_none_of_them():
    imported = [node for node in ast.walk(TREES["repetitions/law.py"]) if isinstance(node, ast.ImportFrom)]
    assert {node.module for node in imported if (node.module or "").startswith("dpselect.repetitions")} == {
        "dpselect.repetitions.one_run"
    }
    names = {node.id for node in ast.walk(TREES["repetitions/law.py"]) if isinstance(node, ast.Name)}
    assert not names & laws_of_k()


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("isinstance(law, Poisson | Geometric)", 2),
        ("@shift.register(Poisson)\ndef f(law): ...", 1),
        ("match law:\n    case Poisson(): ...", 1),
        ("law = Poisson(mean=10)", 0),
        ("law.pure_shift(epsilon)", 0),
    ],
)
def test_telling_laws_apart_is_found(code, count):
    assert len(list(laws_told_apart(ast.parse(code), {"Poisson", "Geometric"}))) == count


ROOMS = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
FACES = {
    f"dpselect.{path.parent.relative_to(SOURCE)}".replace("/", "."): {
        name.name: node.module
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    for path in SOURCE.rglob("*/__init__.pyi")
}
"""The face of each room, and of each folder within one: its names, and the modules that they come from."""

LOOK_ANYWHERE = {"testing"}
"""Packages that compare what is inside of the others with exact laws; no other package imports them."""


@functools.cache
def shared() -> frozenset[str]:
    """The table of ARCHITECTURE.md: modules that other rooms may import from."""
    text = (SOURCE.parent.parent / "ARCHITECTURE.md").read_text()
    table = text.split("## What rooms share beyond their faces\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1:3] for line in table.splitlines() if line.startswith("| `")]
    return frozenset(
        f"dpselect.{room.strip(' `')}.{module}" for room, cell in rows for module in re.findall(r"`([^`]+)`", cell)
    )


def past_faces(tree: ast.AST, room: str) -> Iterator[tuple[str, str, str | None]]:
    """The module and the name of each import from another room past its face, and the face that has the name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [(name.name, "") for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found = [(node.module or "", name.name) for name in node.names]
        else:
            continue
        for module, name in found:
            parts = module.split(".")
            if name and (TREES.keys() & {f"{'/'.join([*parts[1:], name])}{end}" for end in (".py", "/__init__.py")}):
                parts, name = [*parts, name], ""  # a module, imported from its folder
                module = ".".join(parts)
            if parts[0] != "dpselect" or len(parts) < 3 or parts[1] == room or parts[1] not in ROOMS or module in FACES:
                continue
            faces = (".".join(parts[:end]) for end in range(2, len(parts)))
            yield module, name, next((one for one in faces if FACES.get(one, {}).get(name)), None)


def room_of(name: str) -> str:
    return name.split("/")[0]


@pytest.mark.full
def test_what_stands_on_a_face_is_imported_from_it():
    imports = ((name, one) for name, tree in TREES.items() for one in past_faces(tree, room_of(name)))
    assert not [f"{name}: {what} from {face}" for name, (_, what, face) in imports if face]


@functools.cache
def reached() -> set[tuple[str, str]]:
    """The files, and the modules that they import past the face of another room."""
    return {
        (name, module)
        for name, tree in TREES.items()
        if room_of(name) not in LOOK_ANYWHERE
        for module, _, _ in past_faces(tree, room_of(name))
    }


@pytest.mark.full
def test_rooms_reach_past_faces_into_shared_modules_only():
    found = {(name, module) for name, module in reached() if module not in shared()}
    assert not found, "put the name on the face, or the module with a reason into the table of ARCHITECTURE.md"


@pytest.mark.full
def test_the_table_of_shared_modules_has_no_others():
    used = {module for _, module in reached()}
    assert shared() <= used, "other rooms do not need it any more: take it off the table"
    assert len(shared()) > 30


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from dpselect.tuning.machine import Search", ("dpselect.tuning.machine", "Search", None)),
        ("def f():\n    import dpselect.tuning.machine", ("dpselect.tuning.machine", "", None)),
        ("from dpselect.tuning import machine", ("dpselect.tuning.machine", "", None)),
        ("from dpselect.tuning.tuner import tune", ("dpselect.tuning.tuner", "tune", "dpselect.tuning")),
        ("from dpselect.tuning import tune", None),
        ("from dpselect.study.metrics import METRICS", None),
        ("from dpselect.ledger.store import Store", None),
        ("from dpselect.errors import ArgumentError", None),
        ("import numpy.random", None),
    ],
)
def test_an_import_past_a_face_is_found(code, found):
    assert list(past_faces(ast.parse(code), "ledger")) == ([found] if found else [])
