"""Docstrings and messages are plain English: short sentences, plain subjects, the field's words.

`MOST` is what the library had when it was last lowered, and a change may not add to it. Print each place, with what to
write instead, by `python -m lints.rules.words`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator

from lints.rule import WholeRule
from lints.source import Source, called, library

MOST = {"long": 151, "clause": 59, "semicolon": 300, "word": 35}
"""Sentences of over 30 words, sentences that open with a clause, semicolons, and words to leave."""

LEAVE = {
    r"whoever": "anyone who",
    r"whatever": "any; regardless of",
    r"somebody|nobody|anybody": "an attacker, no user, anyone",
    r"of which": "split the sentence",
    r"beforehand": "in advance",
    r"dear|dearer|dearest": "expensive, costs more",
    r"anew": "again",
    r"mend|mends|mended": "fix",
    r"in the mean": "on average",
    r"all the same": "still, anyway",
    r"purse|purses": "error budget",
    r"behind the library's back": "outside dpselect",
    r"heavy atom|heavy atoms": "frequent value",
    r"cut off": "clipped, truncated",
    r"made-up rows?": "synthetic rows",
    r"truth values?": "booleans",
    r"right answers?": "correct predictions",
    r"fresh rows|further rows": "new rows",
    r"per cent": "%",
    r"evidently|surely": "(nothing)",
    r"seldom": "rarely",
    r"worked out": "computed",
    r"put right": "corrected",
    r"nothing else than": "only",
    r"is no number|are no numbers": "is not a number",
    r"counts nothing": "contributes 0",
    r"for want of": "because ... ran out",
    r"in silence": "without an error",
    r"whole numbers?": "integer",
    r"is told|told nothing|was told|are told": "is configured",
    r"owed": "due",
    r"the caller must ensure it": "you must ensure this",
    r"what becomes of": "how ... is handled",
    r"goes on|go on": "continues",
    r"lies|lie": "is",
    r"one's own|of your own": "your",
}
_LEAVE = [(re.compile(rf"\b(?:{pattern})\b", re.IGNORECASE), instead) for pattern, instead in LEAVE.items()]
_ANY = re.compile(rf"\b(?:{'|'.join(LEAVE)})\b", re.IGNORECASE)
_OPENING = re.compile(r"\W*(What|Who|Whoever|Whatever|Where|Which)\b(?!.*\?$)")
_END = re.compile(r"(?<=[.!?:])\s+(?=[A-Z*\"'(`])")
_CODE = re.compile(r"(^ *(>>>|\.\.\. ).*\n(.+\n)*)|``?[^`]*``?|^    .*\n", re.MULTILINE)


def texts(source: Source) -> Iterator[tuple[int, str]]:
    """(line, text) of each docstring, and of each message of an error or a warning."""
    for node in source.nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if text := ast.get_docstring(node):
                yield node.body[0].lineno, text
        elif isinstance(node, ast.Raise) or called(node).endswith("warn"):
            parts = [part for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
            yield from ((part.lineno, part.value) for part in parts if " " in part.value)


def places(source: Source) -> Iterator[tuple[int, str, str]]:
    """(line, measure, what is found) of all that is to be written in another way."""
    for line, text in texts(source):
        for pattern, instead in _LEAVE if _ANY.search(text) else ():
            yield from ((line, "word", f"{found[0]}: {instead}") for found in pattern.finditer(text))
        prose = _CODE.sub(" X ", text)
        for block in re.split(r"\n\s*\n", prose):
            for sentence in _END.split(" ".join(block.split())):
                words = sentence.split()
                if len(words) > 30:
                    yield line, "long", " ".join(words[:6])
                if len(words) > 2 and _OPENING.match(sentence):
                    yield line, "clause", " ".join(words[:6])
                yield from ((line, "semicolon", " ".join(words[:6])) for _ in range(sentence.count(";")))


def grown(sources: list[Source]) -> Iterator[tuple[str, int, str]]:
    """The measures that are above what they were."""
    found = Counter(measure for source in sources for _, measure, _ in places(source))
    for measure, most in MOST.items():
        if found[measure] > most:
            yield (
                "lints/rules/words.py",
                1,
                f"{measure}: {found[measure]}, at most {most}; python -m lints.rules.words {measure} lists them",
            )


RULE = WholeRule("words", grown)

if __name__ == "__main__":
    for source in library():
        for line, measure, found in places(source):
            if measure in sys.argv[1:] or not sys.argv[1:]:
                print(f"{source.path}:{line}: {measure}: {found}")
