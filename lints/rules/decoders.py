"""Documents of others are decoded by `dpselect.decoding`, under limits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from lints.rule import Rule
from lints.source import Source

DECODERS = {
    *("json.loads", "json.load", "json.JSONDecoder", "tomllib.loads", "tomllib.load", "gzip.open", "gzip.decompress"),
    *("gzip.GzipFile", "zlib.decompress", "zlib.decompressobj", "zipfile.ZipFile", "csv.reader", "csv.DictReader"),
    *("np.load", "np.loadtxt", "np.genfromtxt", "np.fromfile", "np.lib.format.read_array", "np.memmap"),
    "ast.literal_eval",
    *("yaml.load", "yaml.safe_load", "yaml.parse"),
}
TEXTS = {"text", "line", "word", "amount", "content"}
EXACT = {"Fraction", "Decimal", "fractions.Fraction", "decimal.Decimal"}


def decoders(source: Source) -> Iterator[ast.AST]:
    """Calls of decoders, and exact numbers made of texts: of names in `TEXTS`, and of what is in a table."""
    for node in source.nodes:
        if isinstance(node, ast.Call):
            called, parts = ast.unparse(node.func), (part for argument in node.args for part in ast.walk(argument))
            if called in DECODERS or (called in EXACT and any(map(_text, parts))):
                yield node


def _text(part: ast.AST) -> bool:
    match part:
        case ast.Name(id=name):
            return name in TEXTS
        case ast.Subscript(slice=ast.Constant(value=str())):
            return True
    return False


RULE = Rule("decodes", "use dpselect.decoding", decoders)
