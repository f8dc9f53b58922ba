"""How a message is judged: it is no raw error of Python, and a piece of it works in place of what was wrong."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator

RAW = re.compile(
    r"unexpected keyword|positional argument|could not be broadcast|not subscriptable|not callable|not iterable"
    r"|unhashable|not supported between|unsupported operand|cannot unpack|truth value of an array|only length-1"
    r"|only 0-dim|setting an array element|could not convert|ufunc|Traceback|inhomogeneous|invalid literal"
    r"|object cannot be interpreted|object does not support|expected str, bytes|validation errors? for",
)
"""What Python, NumPy and their like say of a value that they cannot use."""
_RAW_KINDS = (AttributeError, KeyError, IndexError, UnboundLocalError, RecursionError, AssertionError)
_ADVICE = re.compile(r"write|use|give|call|did you mean|has no argument|there is no", re.IGNORECASE)

_CUES = re.compile(
    r"(?<![\w-])(?:write|use|give|type|run|add|declare|pass|say|did you mean|e\.g\.|such as|see|first:)\s+",
    re.IGNORECASE,
)
_TOKEN = re.compile(r"\"[^\"]*\"|'[^']*'|\w+|\s+|.", re.DOTALL)


def is_raw(error: BaseException | None, message: str) -> bool:
    """Whether the message is Python's own, or one that says as little."""
    return bool(RAW.search(message)) or (isinstance(error, _RAW_KINDS) and not _ADVICE.search(message))


LEFT_OUT = "leave it out"
"""The piece of a message that says to delete what is wrong."""


def fragments(message: str) -> Iterator[str]:
    """The pieces of a message that somebody may paste: between backticks, and after "write" and the like."""
    seen: set[str] = set()
    if re.search(r"[Ll]eave [\w ]{1,40}out", message):
        yield LEFT_OUT
    for found in re.finditer(r"`([^`]+)`", message):
        yield from _new([found[1]], seen)
    for cue in _CUES.finditer(message):
        yield from _new(_prefixes(message[cue.end() :].partition("\n")[0][:200]), seen)


def _new(texts: list[str], seen: set[str]) -> Iterator[str]:
    for text in texts:
        if text and text not in seen and not re.fullmatch(r"[\s.,;:]*", text):
            seen.add(text)
            yield text


def _prefixes(text: str) -> list[str]:
    """Beginnings of a text, the longest first, that end where code may end."""
    ends, at = [], 0
    for token in _TOKEN.findall(text):
        at += len(token)
        if not token.isspace():
            ends.append(at)
    return [text[:end] for end in reversed(ends[:60]) if _is_code(text[:end])]


def _is_code(text: str) -> bool:
    """Whether a piece is code of Python, of a shell or of TOML, and no sentence."""
    if re.fullmatch(r"(?:dpselect [a-z-]+|--[a-z])(?:[^;]|\";\")*", text) and not text.endswith((",", ".", ":")):
        return True
    if re.fullmatch(r"\{ .* \}|\[[a-z.]+\]|[\w.]+ = [^;]+|[\w.]+=|[\w-]+(?::[\w=.,%-]+)?", text):
        return True
    for form in (text, f"f({text})"):
        try:
            ast.parse(form, mode="eval")
        except (SyntaxError, ValueError):
            continue
        return True
    return False


def in_python(line: str, wrong: str, fragment: str) -> Iterator[str]:
    """Lines of Python with the piece in place of what was wrong. `...` stands for the values that were typed."""
    if fragment == LEFT_OUT:
        yield re.sub(rf",? ?{re.escape(wrong)}", "", line)
        return
    given = iter(_values(wrong or line))
    piece = re.sub(r"\.\.\.|(?<=[(*])(?!np\.)[a-z_]+(?=[,).])", lambda found: next(given, found[0]), fragment.strip())
    if wrong.startswith("."):
        yield line.replace(wrong, f".{piece.partition('.')[2]}")
    elif wrong and ("(" in piece or wrong != line):
        yield line.replace(wrong, piece)
        name, equals, value = wrong.partition("=")
        if equals and name.isidentifier() and re.fullmatch(r"\w+=?", piece):
            yield line.replace(wrong, f"{piece.rstrip('=')}={value}")
    if re.match(r"[\w.]+\(", piece):
        yield piece
    if re.match(r"\w+=.", piece) and "(" in line:
        yield from _with_arguments(line, piece)


def _with_arguments(line: str, piece: str) -> Iterator[str]:
    """The calls of the line with these arguments, changed in those that have one of them, or else added."""
    try:
        tree, new = ast.parse(line), ast.parse(f"f({piece})", mode="eval").body
    except (SyntaxError, ValueError):
        return
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {each.arg for each in getattr(new, "keywords", ())}
    if not names or not calls:
        return
    having = [call for call in calls if names & {each.arg for each in call.keywords}] or calls
    for call in having[:2]:
        before = call.keywords
        call.keywords = [each for each in before if each.arg not in names] + new.keywords
        yield ast.unparse(tree)
        call.keywords = before


def _values(text: str) -> list[str]:
    """The values that were typed in a call or as `name=value`."""
    try:
        call = ast.parse(text if re.match(r"[\w.]+\(", text) else f"f({text})", mode="eval").body
    except SyntaxError:
        return []
    values = [*call.args, *(each.value for each in call.keywords)] if isinstance(call, ast.Call) else []
    return [ast.unparse(each) for each in values]


def in_shell(line: str, wrong: str, fragment: str) -> Iterator[str]:
    """Command lines with the piece in place of what was wrong, or behind the others."""
    if fragment == LEFT_OUT:
        yield line.replace(wrong, "")
        return
    piece = fragment.strip().removeprefix("dpselect ")
    if piece != fragment.strip():
        yield piece
    if wrong:
        yield line.replace(wrong, piece)
        flag, blank, value = wrong.partition(" ")
        if flag.startswith("--") and blank and re.fullmatch(r"--[a-z-]+", piece):
            yield line.replace(wrong, f"{piece} {value}")
    if piece.startswith("--"):
        yield f"{line} {piece}"
    flag, blank, _ = piece.replace("=", " ").partition(" ")
    if flag.startswith("--") and blank and f"{flag} " in line:
        yield re.sub(rf"{flag} \S+", piece, line)
    if re.fullmatch(r"[a-z-]+:[\w=.,-]+", piece):  # a base or a distribution as a whole
        yield re.sub(r"(--(?:base|repetitions)) (?=[a-z-]*:)\S+", rf"\1 {piece}", line)
        yield re.sub(rf"(?<= ){piece.partition(':')[0]}:\S+", piece, line)
    name, equals, _ = piece.partition("=")
    if equals and re.search(rf"[:,]{name}=", line):  # a setting of a base or a distribution
        yield re.sub(rf"([:,]){name}=[^,\s]*", lambda found: found[1] + piece, line)


def in_study(text: str, wrong: str, fragment: str) -> Iterator[str]:
    """Studies with the piece in place of what was wrong (`{HERE}` in the text), or as one more line."""
    key, equals, value = wrong.partition(" = ")
    if fragment == LEFT_OUT:
        yield text.replace(HERE, wrong.rpartition("\n")[0])
        return
    if equals and re.fullmatch(r"\w+", fragment):
        yield text.replace(HERE, f"{fragment} = {value}")
    for piece in (fragment, f'"{fragment}"'):
        yield text.replace(HERE, piece)
        if equals and " = " not in piece:
            yield text.replace(HERE, f"{key} = {piece}")
    if " = " in fragment:
        yield text.replace(HERE, f"{wrong}\n{fragment}")
        *before, last = wrong.split("\n")
        yield text.replace(HERE, "\n".join([*before[:-1], fragment, last]))
    if wrong.startswith("["):
        yield text.replace(HERE, re.sub(r"\w+\]$", f"{fragment.strip(chr(39))}]", wrong))
    if fragment.startswith("["):
        yield text.replace(HERE, wrong) + f"\n{fragment}\n"


HERE = "{HERE}"
"""Where the wrong piece of a study was."""


def heals(message: str, attempts: Callable[[str], Iterator[str]], works: Callable[[str], bool]) -> str | None:
    """The first line made of a piece of the message that works."""
    tried = set()
    for fragment in fragments(message):
        for line in attempts(fragment):
            if line not in tried:
                tried.add(line)
                if works(line):
                    return line
    return None
