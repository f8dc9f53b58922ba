"""No module but the room of decoders calls a decoder on what others wrote, unless the line says why."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.test_one_way import SOURCE, TREES

DECODERS = {
    *("json.loads", "json.load", "json.JSONDecoder", "tomllib.loads", "tomllib.load", "gzip.open", "gzip.decompress"),
    *("gzip.GzipFile", "zlib.decompress", "zlib.decompressobj", "zipfile.ZipFile", "csv.reader", "csv.DictReader"),
    *(
        "np.load",
        "np.loadtxt",
        "np.genfromtxt",
        "np.fromfile",
        "np.lib.format.read_array",
        "np.memmap",
        "ast.literal_eval",
    ),
}
TEXTS = {"text", "line", "word", "amount", "content"}
EXACT = {"Fraction", "Decimal", "fractions.Fraction", "decimal.Decimal"}


def decoded_by_hand(tree: ast.AST) -> Iterator[tuple[int, int]]:
    """Lines of calls of decoders, and of exact numbers made of texts: of what has such a name, or is in a table."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called, parts = ast.unparse(node.func), (part for argument in node.args for part in ast.walk(argument))
            if called in DECODERS or (called in EXACT and any(map(_text, parts))):
                yield node.lineno, node.end_lineno or node.lineno


def _text(part: ast.AST) -> bool:
    match part:
        case ast.Name(id=name):
            return name in TEXTS
        case ast.Subscript(slice=ast.Constant(value=str())):
            return True
    return False


@pytest.mark.cases(80)
@pytest.mark.parametrize("name", sorted(TREES, key=lambda name: name.startswith("testing/")))
def test_documents_are_decoded_in_one_room(name):
    source = (SOURCE / name).read_text().splitlines()
    lines = [
        first
        for first, last in decoded_by_hand(TREES[name])
        if not any("# decodes: " in line for line in source[max(0, first - 2) : last + 1])
    ]
    assert not lines, f"{name}, lines {lines}: use dpselect.decoding, or say behind `# decodes:` why not"


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("json.loads(x)", True),
        ("np.load(path, allow_pickle=False)", True),
        ("Fraction(text)", True),
        ('Decimal("x" if "_" in text else text)', True),
        ("Fraction(body['epsilon'])", True),
        ("Fraction(1, 3)", False),
        ("Fraction(self.margin)", False),
        ("json.dumps(x)", False),
        ("json_of(x, DOCUMENT, 'it')", False),
    ],
)
def test_decoding_by_hand_is_found(code, found):
    assert bool(list(decoded_by_hand(ast.parse(code)))) is found
